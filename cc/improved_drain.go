package cc

// drain empties the queue for a moment, so that baseRTT is seen again. Without
// it the base of a flow that came late holds the others' queue, and every base
// that expires moves up to the queue of the day. Drains fall on multiples of the
// period on the senders' common clock: separate drains would each see the others'
// queue.
type drain struct {
	window float64 // to return to, bytes
	until  int64   // end of the drained state; 0 while the queue still empties

	competing bool // return to competition, if others still hold the queue
}

// considerDrain begins a drain if one is due, and says whether.
func (l *improved) considerDrain(s *sender) bool {
	period := int64(l.p.DrainPeriod)
	shared := s.now + s.origin
	if s.now < l.nextDrain {
		return false
	}
	// Below 1 ms RTTs tell of schedulers, and a drain would only cost time.
	due := l.nextDrain > 0 && s.base.value >= granularity
	l.nextDrain = s.now + period - (shared%period+period)%period
	if !due || l.interval.limited {
		return false
	}
	l.drain = drain{window: s.window, competing: l.st == StateCompetitive}
	bdp := s.delivery.rate() * float64(s.base.value) / 1e9
	depth := l.p.DrainDepth
	if l.drain.competing {
		depth = competeDepth
	}
	s.setWindow(depth * min(bdp, s.window))
	l.enter(s, StateDrain)
	return true
}

func (l *improved) drained(s *sender) {
	if l.drain.until == 0 {
		if float64(s.inFlight) <= s.window+float64(2*s.datagram) {
			l.drain.until = s.now + max(int64(l.p.DrainTime), s.base.value)
		}
		return
	}
	if s.now < l.drain.until {
		return
	}
	l.sense(s)
	s.setWindow(l.drain.window)
	if l.queueDelay > l.foreignQueue(s) && l.movedInDrain(s) {
		return
	}
	switch others := l.othersHoldQueue(s); {
	case others && l.drain.competing:
		l.enter(s, StateCompetitive)
		return
	case others:
		l.startCompeting(s)
		return
	case l.drain.competing:
		l.stopCompeting(s)
	default:
		l.enter(s, StateSteady)
	}
	// Packets sent while draining would make the queue look empty.
	l.holdUntil = s.now + int64(s.avgRTT)/2
}
