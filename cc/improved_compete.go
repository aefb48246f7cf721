package cc

import "time"

// A loss-based sender on the same bottleneck fills the buffer, and a sender that
// wants a small queue yields to it all the way. As Copa does (Arun and
// Balakrishnan, NSDI 2018), we look whether the queue ever empties, give up the
// small queue while others keep it full, and return when they have gone.

// compete is what is known of others.
type compete struct {
	fails    int     // drains in a row that left a queue
	passes   int     // drains in a row that did not
	capacity float64 // bytes/s, of the path when competition began
	since    int64   // alone or without a queue since then; 0: neither
	left     int64   // when competition last ended
	ramp     bool    // still growing from a starved window
}

const (
	// competeBackoff and one packet per round trip are those of the Reno that
	// others run (quic-go's and CUBIC's share kept on loss is 0.7).
	competeBackoff = 0.7
	// competeFails drains in a row must find a queue, since a newcomer in slow start
	// fills it too; one, if competition ended only a short while ago.
	competeFails = 3
	// competePasses drains in a row must find none before it ends: a single one may
	// fall into the moment after the others' cut.
	competePasses = 3
	// competeDepth is the share of the bandwidth-delay product kept in flight in a
	// drain meanwhile: it costs less of our share, and still empties a queue that is
	// only ours.
	competeDepth = 0.9
	// aloneShare of the path's capacity, held for aloneTime, shows that nobody
	// else is there.
	aloneShare = 0.93
	aloneTime  = int64(1500 * time.Millisecond)
	// rampShare of the capacity is the most a starved sender takes back at once, by
	// rampGrowth per round trip, and only until the first loss: AIMD alone would
	// need half a minute to its share.
	rampShare  = 0.4
	rampGrowth = 1.25
	// competeMemory is how long the last competition makes the next one likelier.
	competeMemory = int64(30 * time.Second)
)

// othersHoldQueue judges a drain that has just ended: with our packets gone, and
// those of all senders that share our clock, the queue should have been empty.
func (l *improved) othersHoldQueue(s *sender) bool {
	if l.queueDelay <= l.foreignQueue(s) {
		l.compete.fails = 0
		l.compete.passes++
		return l.drain.competing && l.compete.passes < competePasses
	}
	l.compete.passes = 0
	if l.compete.fails++; l.drain.competing {
		return true
	}
	recent := l.compete.left > 0 && s.now-l.compete.left < competeMemory
	return l.compete.fails >= competeFails || recent
}

// foreignQueue is a queueing delay, in ns, that senders like us do not leave
// behind in a drain.
func (l *improved) foreignQueue(s *sender) int64 {
	c := l.capacity(s)
	alone := int64(l.alphaAt(s, c) / c * 1e9)
	return max(2*alone, s.base.value/8, 3*granularity)
}

func (l *improved) startCompeting(s *sender) {
	l.compete = compete{capacity: l.capacity(s), ramp: true}
	s.base.frozen = true
	l.enter(s, StateCompetitive)
}

// competing adds one packet per round trip, as Reno does, and looks whether there
// is still a reason to. Drains go on: senders like us that took each other for
// others find out so.
func (l *improved) competing(s *sender, p *sentPacket) {
	if l.compete.ramp && s.window*1e9 > rampShare*l.compete.capacity*s.avgRTT {
		l.compete.ramp = false
	}
	switch {
	case l.interval.limited:
	case l.compete.ramp:
		s.setWindow(s.window + (rampGrowth-1)*float64(p.size))
	default:
		s.setWindow(s.window + float64(s.datagram)*float64(p.size)/s.window)
	}
	if l.interval.samples < 2 || float64(s.now-l.interval.began) < s.roundTrip()/2 {
		return
	}
	l.sense(s)
	if l.considerDrain(s) {
		return
	}
	alone := s.delivery.rate() > aloneShare*l.compete.capacity
	empty := l.queueDelay < max(s.base.value/16, 2*granularity)
	switch {
	case !alone && !empty:
		l.compete.since = 0
	case l.compete.since == 0:
		l.compete.since = s.now
	case s.now-l.compete.since > aloneTime:
		l.stopCompeting(s)
		return
	}
	l.nextInterval(s)
}

func (l *improved) stopCompeting(s *sender) {
	l.compete = compete{left: s.now}
	s.base.frozen = false
	l.land(s, s.delivery.rate())
}
