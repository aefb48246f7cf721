package cc

// sentPacket is what is remembered of a packet until it is acknowledged or
// lost. Times are controller times (see sender.time).
type sentPacket struct {
	number   int64
	sentAt   int64
	inFlight int64 // bytes in flight just after sending: the w_old of the window law
	size     int64

	// State of the delivery meter when the packet left.
	delivered   int64
	deliveredAt int64
	firstSentAt int64

	live       bool // neither acknowledged nor lost yet
	appLimited bool
}

// The log starts small, as most connections of a viewer carry little, and
// grows up to more than the packets quic-go tracks per connection (25,000).
const (
	minSentLog = 64
	maxSentLog = 1 << 15
)

// sentLog keeps the records of recent packets in a ring indexed by packet
// number. It allocates only when it doubles.
type sentLog struct {
	ring []sentPacket
}

// add makes the record of a packet, when about so many are in flight. The pointer
// is good until the next add.
//
// A live record in the way is a reason to grow only if that many are in flight:
// a transport drops packets without a word too (keys discarded, path changed),
// and their records must not be kept for ever.
func (l *sentLog) add(number, inFlight int64) *sentPacket {
	if l.ring == nil {
		l.ring = make([]sentPacket, minSentLog)
	}
	p := l.slot(number)
	for p.live && p.number != number && inFlight > int64(len(l.ring)/2) && len(l.ring) < maxSentLog {
		l.grow()
		p = l.slot(number)
	}
	*p = sentPacket{number: number, live: true}
	return p
}

// get returns the record of a packet, or nil if it is no longer known.
func (l *sentLog) get(number int64) *sentPacket {
	if l.ring == nil {
		return nil
	}
	if p := l.slot(number); p.number == number && p.size > 0 {
		return p
	}
	return nil
}

func (l *sentLog) slot(number int64) *sentPacket {
	return &l.ring[number&int64(len(l.ring)-1)]
}

func (l *sentLog) grow() {
	old := l.ring
	l.ring = make([]sentPacket, 2*len(old))
	for i := range old {
		if old[i].size > 0 {
			*l.slot(old[i].number) = old[i]
		}
	}
}
