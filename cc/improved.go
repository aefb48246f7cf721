package cc

import "time"

// improved is the production law. Its states:
//
//	slow start ──backlog or loss──► steady ◄──backlog or loss── probe
//	    ▲                           │  ▲ │                        ▲
//	    └──persistent congestion────┘  │ └──little backlog────────┘
//	                             every │ 5 s
//	                                 drain
//
// One file per state: improved_start.go, improved_steady.go (with probe) and
// improved_drain.go; improved_loss.go answers loss in all of them.
type improved struct {
	p  Params
	st State

	// What the last half round trip showed.
	gamma      float64 // gain of the last update
	backlog    float64 // bytes
	queueDelay int64   // ns
	pathRTT    int64   // ns; lowest RTT sample of the interval
	wOld       int64   // bytes in flight when that sample's packet was sent
	interval   interval
	holdUntil  int64 // packets sent before this say nothing about the window

	alphaScale float64 // lowered by loss
	jitter     float64 // ns; smoothed spread of the RTT within an interval
	calmUntil  int64   // no probing before this time

	train     trainMeter
	atCap     int // rounds at the trains' capacity without a backlog
	probe     probe
	drain     drain
	compete   compete
	shift     shift
	nextDrain int64 // when the next drain is due
}

// interval collects the RTT samples between two updates of the window. The
// lowest is used: jitter and ACKs held back only ever add to the queue's delay.
type interval struct {
	began   int64
	lowest  int64 // ns
	wOld    int64 // bytes in flight when the packet of the lowest sample was sent
	sum     int64 // ns
	samples int
	peak    int64 // most bytes that were in flight
	limited bool  // the application was the limit
}

func (i *interval) add(rtt, wOld int64) {
	if i.samples == 0 || rtt < i.lowest {
		i.lowest, i.wOld = rtt, wOld
	}
	i.sum += rtt
	i.samples++
}

// spread is how far the samples lay above the lowest on average, ns.
func (i *interval) spread() float64 {
	return float64(i.sum)/float64(i.samples) - float64(i.lowest)
}

// NewImproved returns a controller running the production law: Algorithm 2's
// end of slow start and Algorithm 3's gain, with what a paced QUIC sender on
// real paths needs besides (see doc.go).
func NewImproved(p Params, maxDatagramSize int64, rtt RTTSource) Controller {
	s := newSender(&improved{p: p, st: StateSlowStart, alphaScale: 1}, p.BaseWindow, maxDatagramSize, rtt)
	s.short = p.ShortPathWindow
	return s
}

func (l *improved) name() Law    { return LawImproved }
func (l *improved) state() State { return l.st }

func (l *improved) onAck(s *sender, p *sentPacket, sampled bool) {
	if sampled {
		s.base.add(s.now, s.latestRTT, int64(s.avgRTT-float64(s.base.value))/2)
		l.interval.add(s.latestRTT, p.inFlight)
	}
	l.interval.limited = l.interval.limited || s.appLimited
	l.interval.peak = max(l.interval.peak, p.inFlight)
	switch l.st {
	case StateSlowStart:
		l.start(s, p)
	case StateSteady:
		l.steady(s, p)
	case StateProbe:
		l.growAgain(s, p)
	case StateDrain:
		l.drained(s)
	case StateCompetitive:
		l.competing(s, p)
	}
}

func (l *improved) onRound(s *sender) {
	if s.loss.rate < l.p.LossAlpha/2 {
		l.alphaScale = min(1, l.alphaScale*1.01+0.001)
	}
	switch l.st {
	case StateSlowStart:
		l.raiseCapacity(s)
	case StateSteady:
		l.considerProbe(s)
	}
}

// alpha is the backlog to hold, in bytes.
func (l *improved) alpha(s *sender) float64 {
	return l.alphaAt(s, s.delivery.rate())
}

// alphaAt is alpha for a rate in bytes/s. Jitter adds to it: while packets or ACKs
// are held back, a window without them would leave the link idle.
func (l *improved) alphaAt(s *sender, rate float64) float64 {
	a := l.p.Alpha(rate, l.capacity(s)) * float64(s.datagram)
	a += min(l.p.JitterAlpha*rate*l.jitter/1e9, a)
	return max(a*l.alphaScale, float64(minWindowPackets*s.datagram))
}

// capacity is what the path could carry, bytes/s.
func (l *improved) capacity(s *sender) float64 {
	return max(s.delivery.peak, l.train.capacity)
}

// sense takes the queue from the interval's lowest RTT, and the backlog from the
// window that was in flight then.
func (l *improved) sense(s *sender) {
	if l.interval.samples == 0 {
		return
	}
	low := l.interval.lowest
	l.pathRTT, l.wOld = low, l.interval.wOld
	l.queueDelay = max(low-s.base.value, 0)
	l.backlog = Backlog(float64(l.interval.wOld), float64(s.base.value), float64(low))
}

// nextInterval starts collecting anew.
func (l *improved) nextInterval(s *sender) {
	l.interval = interval{began: s.now}
	s.publish()
}

// land ends a phase of growth at equilibrium: what the path delivers in a base
// RTT, and alpha. rate is in bytes per second.
func (l *improved) land(s *sender, rate float64) {
	s.delivery.restart(rate)
	bdp := rate * float64(s.base.value) / 1e9
	s.setWindow(min(s.window, max(bdp+l.alpha(s), float64(initialWindowPackets*s.datagram))))
	l.enter(s, StateSteady)
	l.holdUntil = s.now
}

func (l *improved) enter(s *sender, to State) {
	l.st = to
	l.probe.rounds = 0
	l.nextInterval(s)
}

const steadyBurst, steadyGrain = 4, int64(250 * time.Microsecond)

func (l *improved) pacing(s *sender) (float64, int64, int64) {
	// By the lowest RTT of late: the average lags after a pause of the path, and
	// would hold the sender back.
	rtt := s.pathRTT()
	if l.pathRTT > 0 {
		rtt = min(rtt, float64(l.pathRTT)+float64(s.base.value)/16)
	}
	rate := s.window * 1e9 / rtt
	switch l.st {
	case StateSlowStart:
		return l.startPacing(s, rate)
	case StateProbe:
		return l.probeGrowth(s) * rate, steadyBurst, steadyGrain
	}
	return l.p.PacingGain * rate, steadyBurst, steadyGrain
}

func (l *improved) report(s *sender, to *Snapshot) {
	to.Alpha = l.alpha(s) / float64(s.datagram)
	to.Gamma = l.gamma
	to.Backlog = l.backlog / float64(s.datagram)
	to.QueueDelay = time.Duration(l.queueDelay)
}
