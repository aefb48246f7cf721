package cc

// drain empties the queue for a moment, so that baseRTT is seen again. Without
// it the base of a flow that came late holds the others' queue, and every base
// that expires moves up to the queue of the day. Drains fall on multiples of the
// period on the senders' common clock: separate drains would each see the others'
// queue.
type drain struct {
	window float64 // to return to, bytes
	until  int64   // end of the drained state; 0 while the queue still empties
}

func (l *improved) considerDrain(s *sender) {
	period := int64(l.p.DrainPeriod)
	shared := s.now + s.origin
	if s.now < l.nextDrain {
		return
	}
	// A queue that was empty since the last drain has shown the base already.
	due := l.nextDrain > 0 && s.now-l.emptyAt > period*3/4
	l.nextDrain = s.now + period - (shared%period+period)%period
	if !due || l.interval.limited {
		return
	}
	l.drain = drain{window: s.window}
	bdp := s.delivery.rate() * float64(s.base.value) / 1e9
	s.setWindow(l.p.DrainDepth * min(bdp, s.window))
	l.enter(s, StateDrain)
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
	if l.othersHoldQueue(s) {
		l.startCompeting(s)
		return
	}
	l.enter(s, StateSteady)
	// Packets sent while draining would make the queue look empty.
	l.holdUntil = s.now + int64(s.avgRTT)/2
}
