package ccsim

import "fastpacs/cc"

// paced is a sender that asks its controller as quic-go v0.65.0 does: the same
// calls, in the same order.
type paced struct {
	flow *flow
	c    cc.Controller
	rtt  rttEstimate
	size int64 // of a packet, bytes

	next         int64 // packet number
	oldest       int64 // no packet below is in flight
	sent         []sentPacket
	inFlight     int64 // bytes
	outstanding  int   // packets
	largestAcked int64
	lastSentAt   int64

	// Once a packet declared lost has arrived after all, the packet threshold no
	// longer counts, and the time threshold grows if it was to blame.
	packetThreshold bool
	eighths         int64 // of an RTT, above one RTT
	relaxFrom       int64 // only packets from this number on may make it grow

	lossAt   int64 // when the oldest suspect will be declared lost, or never
	probes   int   // packets to send whatever the window says
	ptoCount uint

	offered float64 // bytes the application has taken back: of lost packets
	used    float64 // bytes taken from the application

	pace, alarm, app timer
	stopped          bool
	spins            int

	acked    []sentPacket // of one ACK
	spurious []int64
}

type sentPacket struct {
	number, sentAt, size int64
	state                packetState
}

type packetState uint8

const (
	settled packetState = iota // acknowledged, or given up for a probe
	inFlight
	lost
)

func newPaced(f *flow, makeController func(int64, cc.RTTSource) cc.Controller, size int64) *paced {
	p := &paced{
		flow: f, size: size, sent: make([]sentPacket, 64),
		largestAcked: -1, lossAt: never, packetThreshold: true, eighths: 1,
	}
	p.c = makeController(size, &p.rtt)
	p.pace = newTimer(p.send)
	p.alarm = newTimer(p.alarmed)
	p.app = newTimer(p.send)
	return p
}

func (p *paced) start(now int64) { p.send(now) }

func (p *paced) stop() {
	p.stopped = true
	p.flow.sim.events.clear(&p.alarm)
}

// send sends what window and pacer allow.
func (p *paced) send(now int64) {
	events := p.flow.sim.events
	events.clear(&p.pace)
	defer p.setAlarm()
	for !p.stopped {
		if p.probes > 0 {
			p.probes--
			p.giveUpOldest()
			p.transmit(now)
			continue
		}
		if !p.c.CanSend(p.inFlight) || p.outstanding >= maxOutstanding {
			return
		}
		if !p.c.HasPacingBudget(p.clock(now)) {
			at := p.c.NextSend(p.inFlight)
			if at == 0 || at <= p.clock(now) {
				// quic-go would turn round without time passing.
				p.spins++
				at = p.clock(now) + 1000
			}
			events.set(&p.pace, at-p.flow.sim.config.Clock)
			return
		}
		if at := p.appReady(now); at > now {
			events.set(&p.app, at)
			return
		}
		p.transmit(now)
	}
}

// appReady is when the application has a packet's worth to send.
func (p *paced) appReady(now int64) int64 {
	f := &p.flow.config
	until := int64(f.AppUntil)
	if f.AppRate == 0 || until > 0 && now >= until {
		return now
	}
	at := int64(f.Start) + int64((p.used-p.offered+float64(p.size))*1e9/f.AppRate)
	if until > 0 {
		at = min(at, until)
	}
	return at
}

func (p *paced) clock(now int64) int64 { return now + p.flow.sim.config.Clock }

func (p *paced) transmit(now int64) {
	for p.next-p.oldest >= int64(len(p.sent)) {
		p.grow()
	}
	*p.record(p.next) = sentPacket{p.next, now, p.size, inFlight}
	p.inFlight += p.size
	p.outstanding++
	p.used += float64(p.size)
	p.lastSentAt = now
	p.flow.sentPackets++
	p.c.OnPacketSent(p.clock(now), p.inFlight, p.next, p.size, true)
	p.flow.emit(now, p.next, p.size)
	p.next++
}

func (p *paced) record(number int64) *sentPacket {
	return &p.sent[number&int64(len(p.sent)-1)]
}

func (p *paced) grow() {
	old := p.sent
	p.sent = make([]sentPacket, 2*len(old))
	for i := range old {
		*p.record(old[i].number) = old[i]
	}
}

// known returns the record of a packet, or nil if it has been overwritten.
func (p *paced) known(number int64) *sentPacket {
	if r := p.record(number); r.number == number && r.size > 0 {
		return r
	}
	return nil
}

func (p *paced) settle(r *sentPacket, as packetState) {
	r.state = as
	p.inFlight -= r.size
	p.outstanding--
}

// giveUpOldest makes room for a probe. quic-go does not tell the controller.
func (p *paced) giveUpOldest() {
	p.skipSettled()
	if p.oldest < p.next {
		r := p.record(p.oldest)
		p.settle(r, settled)
		p.offered += float64(r.size)
	}
}

func (p *paced) skipSettled() {
	for p.oldest < p.next && p.record(p.oldest).state != inFlight {
		p.oldest++
	}
}

func (p *paced) onAck(now int64, numbers []int64, delay int64) {
	prior := p.inFlight
	p.acked = p.acked[:0]
	for _, n := range numbers {
		if r := p.known(n); r != nil && r.state == inFlight {
			p.acked = append(p.acked, *r)
			r.state = settled // bytes leave with OnPacketAcked, below
		}
	}
	largest := numbers[len(numbers)-1]
	if n := len(p.acked); n > 0 && largest > p.largestAcked && p.acked[n-1].number == largest {
		p.rtt.update(now-p.acked[n-1].sentAt, min(delay, maxAckDelay))
		p.c.OnAckBegin()
	}
	p.spurious = p.spurious[:0]
	relaxed := p.findSpurious(now-min(delay, maxAckDelay), numbers)
	p.largestAcked = max(p.largestAcked, largest)
	if len(p.acked) > 0 || relaxed {
		p.detectLost(now)
	}
	for _, n := range p.spurious {
		p.c.OnSpuriousLoss(n)
	}
	if len(p.acked) == 0 {
		return
	}
	for i := range p.acked {
		a := &p.acked[i]
		p.c.OnPacketAcked(p.clock(now), a.number, a.size, prior)
		p.inFlight -= a.size
		p.outstanding--
	}
	p.skipSettled()
	p.ptoCount, p.probes = 0, 0
	p.send(now)
}

// findSpurious finds the packets of an ACK that were declared lost, and says
// whether that relaxed the time threshold. ackedAt is when the receiver had them.
func (p *paced) findSpurious(ackedAt int64, numbers []int64) bool {
	longest := int64(0)
	for _, n := range numbers {
		r := p.known(n)
		if r == nil || r.state != lost {
			continue
		}
		r.state = settled
		p.spurious = append(p.spurious, n)
		if n >= p.relaxFrom {
			longest = max(longest, ackedAt-r.sentAt)
		}
	}
	if len(p.spurious) == 0 {
		return false
	}
	p.flow.spurious += int64(len(p.spurious))
	p.packetThreshold = false
	if longest <= p.lossDelay() || p.eighths >= 8 {
		return false
	}
	p.eighths *= 2
	p.relaxFrom = p.next
	return true
}

func (p *paced) detectLost(now int64) {
	prior := p.inFlight
	delay := p.lossDelay()
	p.lossAt = never
	p.skipSettled()
	for n := p.oldest; n <= p.largestAcked; n++ {
		r := p.record(n)
		if r.state != inFlight {
			continue
		}
		if r.sentAt > now-delay && !(p.packetThreshold && p.largestAcked-n >= packetThreshold) {
			p.lossAt = r.sentAt + delay
			return // those sent later are not due either
		}
		p.settle(r, lost)
		p.offered += float64(r.size)
		p.flow.lostPackets++
		p.c.OnPacketLost(n, r.size, prior)
	}
}

// lossDelay is the time threshold of RFC 9002 section 6.1.2.
func (p *paced) lossDelay() int64 {
	return max(max(p.rtt.latest, p.rtt.smoothed)*(8+p.eighths)/8, granularity)
}

func (p *paced) setAlarm() {
	switch events := p.flow.sim.events; {
	case p.outstanding == 0 || p.stopped:
		events.clear(&p.alarm)
	case p.lossAt != never:
		events.set(&p.alarm, p.lossAt)
	default:
		events.set(&p.alarm, p.lastSentAt+min(p.rtt.pto()<<min(p.ptoCount, 30), maxPTO))
	}
}

func (p *paced) alarmed(now int64) {
	if p.lossAt != never {
		p.detectLost(now)
	} else {
		p.ptoCount++
		p.probes += 2
	}
	p.send(now)
}

func (p *paced) snapshot() cc.Snapshot { return p.c.Snapshot() }
