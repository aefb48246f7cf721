package cc

// steady updates the window twice per round trip by the window law with
// Algorithm 3's gain, in its backlog form.
func (l *improved) steady(s *sender, p *sentPacket) {
	if l.interval.samples >= 2 && float64(s.now-l.interval.began) >= s.roundTrip()/2 {
		l.update(s, p)
		l.nextInterval(s)
	}
	l.considerDrain(s)
}

func (l *improved) update(s *sender, p *sentPacket) {
	l.sense(s)
	if l.rerouted(s) {
		return
	}
	// Not grown while the application or the peer's flow control is the limit
	// (RFC 9002 section 7.8), and not judged by packets of another window.
	if l.interval.limited || p.sentAt < l.holdUntil {
		return
	}
	l.jitter += (min(l.interval.spread(), maxJitter) - l.jitter) * jitterWeight
	alpha := l.alpha(s)
	l.gamma = Gain(l.backlog, alpha, l.p.GammaMin)
	// This update has its part of one application of the law.
	part := min(float64(s.now-l.interval.began)/(roundsPerLaw*s.roundTrip()), 1)
	next := max(BacklogStep(s.window, l.backlog, alpha, l.gamma*part), s.window/2)
	// A window that was not used, because the machine was busy, is not grown.
	if next > s.window && float64(l.interval.peak) < usedShare*s.window {
		return
	}
	s.setWindow(next)
}

const (
	jitterWeight = 1.0 / 32
	maxJitter    = 30e6 // ns; more is a pause of the path
	usedShare    = 0.8  // of the window in flight makes it one that is used
)

// roundsPerLaw: the law is applied once in two round trips, as in FAST TCP and in
// the article's ns-2 runs, where windows change in alternate round trips so that
// one change is seen before the next. We spread it over them instead; at once per
// round trip flows of 20 and 200 ms drive each other in a cycle (measured).
const roundsPerLaw = 2

// probe looks for capacity that has become free: the law's own growth, alpha
// per round trip at most, would take minutes on a fast path.
type probe struct {
	rounds int     // round trips with little backlog
	rate   float64 // delivery rate when the probe began
	wait   int64   // ns to wait after a probe in vain
	next   int64   // no probe before this time
}

func (l *improved) considerProbe(s *sender) {
	full := float64(l.wOld) > 0.9*s.window
	settled := float64(s.now-l.holdUntil) > 2*s.roundTrip()
	if l.interval.limited || s.now < l.calmUntil || l.backlog >= l.p.ProbeBacklog*l.alpha(s) || !settled || !full {
		l.probe.rounds = 0
		return
	}
	if l.probe.rounds++; l.probe.rounds >= l.p.ProbeRounds && s.now >= l.probe.next {
		l.probe.rate = s.delivery.rate()
		l.enter(s, StateProbe)
	}
}

// probeGrowth is the factor per round trip; at most 400 packets each, so that an
// overshoot stays below the 1000 gaps a stream may have.
func (l *improved) probeGrowth(s *sender) float64 {
	return 1 + min(l.p.ProbeGrowth-1, 400*float64(s.datagram)/s.window)
}

// growAgain grows the window for one acknowledged packet and looks for the end.
func (l *improved) growAgain(s *sender, p *sentPacket) {
	if !l.interval.limited {
		s.setWindow(s.window + (l.probeGrowth(s)-1)*float64(p.size))
	}
	if l.interval.samples < 4 || float64(s.now-l.interval.began) < s.roundTrip()/4 {
		return
	}
	l.sense(s)
	if l.backlog > 0.5*l.alpha(s) {
		l.endProbe(s)
		return
	}
	l.nextInterval(s)
}

func (l *improved) endProbe(s *sender) {
	rate := l.landingRate(s)
	if rate > 1.1*l.probe.rate {
		l.probe.wait = 0
	} else {
		l.probe.wait = min(max(2*l.probe.wait, int64(l.p.ProbeBackoff)), int64(l.p.ProbeBackoffMax))
	}
	l.probe.next = s.now + l.probe.wait
	l.land(s, rate)
}
