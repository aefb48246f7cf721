package cc

import "math"

// Slow start. Algorithm 2 leaves it on a backlog; taken literally, a paced
// sender overshoots its rate by 82 to 128 % there, since pacing removes the
// bursts that end it early in ns-2. So growth slows near the capacity that
// packet trains promise, the pacing rate is held to it, and the exit lands on
// the measured equilibrium instead of keeping the window of the moment.

// start grows the window for one acknowledged packet and looks for the exit.
func (l *improved) start(s *sender, p *sentPacket) {
	l.train.onAcked(s.now, p)
	if !l.interval.limited {
		limit := math.Inf(1)
		if l.train.capacity > 0 {
			limit = l.train.capacity*float64(s.base.value)/1e9 + 2*l.alphaAt(s, l.train.capacity)
		}
		grown := s.window + (l.startGrowth(s)-1)*float64(p.size)
		s.setWindow(max(s.window, min(grown, limit)))
	}
	if l.interval.samples < 4 || s.now-l.interval.began < max(int64(s.roundTrip())/8, granularity) {
		return
	}
	l.sense(s)
	// The threshold stands on the path's alpha: on its own small one, a latecomer
	// to a busy path would leave at once. Queueing below 1/256 of the RTT is noise,
	// and the initial window says nothing.
	alpha := l.alphaAt(s, l.capacity(s))
	if LeavesSlowStart(l.backlog, alpha, l.p.ExitBacklog) &&
		l.queueDelay > int64(s.avgRTT)/256 &&
		l.interval.wOld > initialWindowPackets*s.datagram*3/2 {
		l.land(s, l.landingRate(s))
		return
	}
	l.nextInterval(s)
}

// startGrowth is the factor per round trip.
func (l *improved) startGrowth(s *sender) float64 {
	if c := l.train.capacity; c > 0 && s.window*1e9/s.pathRTT() > c*l.p.StartNear {
		return l.p.StartGrowthNear
	}
	return l.p.StartGrowth
}

// landingRate is the highest of the rates measured over a flight and over parts
// of a round trip, as the flight's average lags behind growth.
func (l *improved) landingRate(s *sender) float64 {
	rtt := int64(s.avgRTT)
	rate := max(s.delivery.rate(), s.delivery.over(rtt/8), s.delivery.over(rtt/4), s.delivery.over(rtt*7/16))
	if c := l.train.capacity; c > 0 {
		rate = min(rate, c)
	}
	return rate
}

// raiseCapacity lifts the trains' estimate when the window has stood at it for
// two round trips without a backlog: it was too low.
func (l *improved) raiseCapacity(s *sender) {
	c := l.train.capacity
	if c == 0 || s.window < c*float64(s.base.value)/1e9 {
		l.atCap = 0
		return
	}
	if l.atCap++; l.atCap > 2 {
		l.train.capacity = 1.25 * c
		l.atCap = 1
	}
}

// startPacing sends packets in trains, spaced at the rate of growth.
func (l *improved) startPacing(s *sender, rate float64) (float64, int64, int64) {
	rate *= l.startGrowth(s)
	if c := l.train.capacity; c > 0 {
		rate = min(rate, c)
	}
	grain := min(trainPackets*float64(s.datagram)*1e9/rate, s.pathRTT()/4)
	return rate, trainPackets, max(int64(grain), steadyGrain)
}
