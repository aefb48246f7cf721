package cc

import (
	"math"
	"time"
)

// Params are the parameters of the production law. Each says its unit, its
// default and where the value comes from: *stated* or *reconstructed* from the
// article, *published* elsewhere, or *measured* in the laboratory.
type Params struct {
	// AlphaPackets is alpha, in packets, for a flow alone on a path of AlphaRate.
	// 8 packets at 10 Mb/s: the FAST TCP distribution's table (published).
	AlphaPackets float64
	// AlphaRate is in bytes per second. 1.25e6 (10 Mb/s).
	AlphaRate float64
	// AlphaOwn and AlphaPath are the exponents by which alpha grows with the flow's
	// own rate and with the path's capacity: 0.15 and 0.35, the square root of
	// rate^0.3 * capacity^0.7 (measured). Alpha in proportion to the own rate would
	// make every division of the link an equilibrium; a small exponent keeps the
	// flows fair, and the capacity keeps a newcomer's alpha from being small.
	AlphaOwn, AlphaPath float64
	// AlphaMin is the least alpha in packets. 4 (measured).
	AlphaMin float64
	// JitterAlpha adds to alpha what the flow sends in this many times the mean
	// spread of the RTT, at most alpha again. 1 (measured).
	JitterAlpha float64

	// GammaMin is the gain at equilibrium. 0.5 (measured: with 0.25, the least that
	// settles in the article's Experiment 1 (reconstructed), a flow that joins two
	// others takes 4.8 s to 80 % of its share instead of 3.3 s).
	GammaMin float64
	// PacingGain multiplies window/RTT. 1.05: above 1 so that the window, not the
	// pacer, is the limit; 1.25 costs 4 % of a path with jitter (measured).
	PacingGain float64

	// Slow start multiplies the window by StartGrowth per round trip up to the
	// share StartNear of the capacity that packet trains promise, by
	// StartGrowthNear from there. 2, 0.125 and 1.5 (measured: the queue's peak is
	// 36 ms with doubling all the way, 3 to 5 ms so).
	StartGrowth, StartNear, StartGrowthNear float64
	// ExitBacklog is the backlog that ends slow start, as a share of alpha. 0.1
	// (stated: 0.09 to 0.1).
	ExitBacklog float64

	// ShortPathWindow is the largest window in packets while baseRTT is below 1 ms,
	// as on loopback and in one room: RTTs there tell of schedulers, not of queues,
	// and receivers drop what they have no time for (quic-go keeps 256 packets). 220
	// (measured on loopback, one connection: no loss where there was 2 % and more).
	ShortPathWindow float64

	// BaseWindow is how long an RTT sample may serve as baseRTT. 8 s, above the
	// drain period (measured).
	BaseWindow time.Duration
	// DrainPeriod is how often the queue is drained. 5 s (published: BBR's
	// ProbeRTT, 5 to 10 s). Drains fall on multiples of it, so that all senders that
	// share a clock drain together.
	DrainPeriod time.Duration
	// DrainDepth is the share of the bandwidth-delay product kept in flight during
	// a drain. 0.75 (measured).
	DrainDepth float64
	// DrainTime is how long the drained state is held, at least one base RTT.
	// 100 ms (measured).
	DrainTime time.Duration

	// ProbeBacklog: with less than this share of alpha queued for ProbeRounds round
	// trips the path has more to give, and the window grows by ProbeGrowth per round
	// trip until a backlog shows. 0.3, 4 and 1.25 (measured).
	ProbeBacklog, ProbeGrowth float64
	ProbeRounds               int
	// ProbeBackoff is the wait after a probe that found nothing; it doubles up to
	// ProbeBackoffMax. 1 s and 30 s (measured).
	ProbeBackoff, ProbeBackoffMax time.Duration

	// Smoothed loss above LossAlpha lowers alpha by AlphaBackoff, to not less than
	// AlphaScaleMin of it: the buffer may be too shallow for alpha. 0.006, 0.8 and
	// 0.1 (measured).
	LossAlpha, AlphaBackoff, AlphaScaleMin float64
	// Smoothed loss above LossCap holds the window at rate*baseRTT + alpha. 0.03
	// (published: about 2 % per round is congestion whatever the delay; measured).
	LossCap float64
	// Smoothed loss above LossCut, or a burst above LossBurst within a round,
	// multiplies the window by WindowBackoff. 0.09, 0.1 and 0.85 (measured).
	LossCut, LossBurst, WindowBackoff float64
}

// DefaultParams are the parameters of the production law.
func DefaultParams() Params {
	return Params{
		AlphaPackets: 8, AlphaRate: 1.25e6, AlphaOwn: 0.15, AlphaPath: 0.35, AlphaMin: 4, JitterAlpha: 1,
		GammaMin: 0.5, PacingGain: 1.05,
		StartGrowth: 2, StartNear: 0.125, StartGrowthNear: 1.5, ExitBacklog: 0.1,
		ShortPathWindow: 220, BaseWindow: 8 * time.Second, DrainPeriod: 5 * time.Second, DrainDepth: 0.75, DrainTime: 100 * time.Millisecond,
		ProbeBacklog: 0.3, ProbeGrowth: 1.25, ProbeRounds: 4, ProbeBackoff: time.Second, ProbeBackoffMax: 30 * time.Second,
		LossAlpha: 0.006, AlphaBackoff: 0.8, AlphaScaleMin: 0.1,
		LossCap: 0.03, LossCut: 0.09, LossBurst: 0.1, WindowBackoff: 0.85,
	}
}

// Alpha is the number of packets a flow wants in the queue, for its own rate and
// the path's capacity in bytes per second.
func (p *Params) Alpha(rate, capacity float64) float64 {
	capacity = max(capacity, rate)
	if capacity <= 0 {
		return p.AlphaMin
	}
	a := p.AlphaPackets * math.Pow(rate/p.AlphaRate, p.AlphaOwn) * math.Pow(capacity/p.AlphaRate, p.AlphaPath)
	return max(a, p.AlphaMin)
}
