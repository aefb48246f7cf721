package cc

import "time"

// StaticParams are the parameters of Algorithm 1.
type StaticParams struct {
	// Alpha is the number of packets kept in the queue. 200 in the article.
	Alpha float64
	// Gamma is the gain. 0.5 in the article.
	Gamma float64
	// Theta is the queueing delay at which slow start pauses. 0.75 ms: the public
	// ns-2 FAST module's default (reconstructed).
	Theta time.Duration
}

// DefaultStaticParams are the article's.
func DefaultStaticParams() StaticParams {
	return StaticParams{Alpha: 200, Gamma: 0.5, Theta: 750 * time.Microsecond}
}

// NewStatic returns a controller running Algorithm 1, the original FAST: fixed
// alpha and gamma, slow start while the queueing delay is below theta, one
// update per round trip. We deviate where a QUIC sender must: packets are
// paced, w_old stands in the law, and loss halves the window once per round.
func NewStatic(p StaticParams, maxDatagramSize int64, rtt RTTSource) Controller {
	return newSender(&static{p: p, slow: true}, 0, maxDatagramSize, rtt)
}

type static struct {
	p    StaticParams
	slow bool

	sum     int64 // RTT samples of this round
	samples int64
	wOld    int64
	limited bool    // the application was the limit in this round
	backlog float64 // bytes
}

func (l *static) name() Law { return LawStatic }

func (l *static) state() State {
	if l.slow {
		return StateSlowStart
	}
	return StateSteady
}

func (l *static) onAck(s *sender, p *sentPacket, sampled bool) {
	if sampled {
		s.base.add(s.now, s.latestRTT, 0)
		l.sum += s.latestRTT
		l.samples++
		l.wOld = p.inFlight
		// Not latched, as in ns-2: below theta the window grows again.
		l.slow = s.latestRTT-s.base.value < int64(l.p.Theta)
	}
	l.limited = l.limited || s.appLimited
	if l.slow && !l.limited {
		s.setWindow(s.window + float64(p.size))
	}
}

func (l *static) onRound(s *sender) {
	if l.samples == 0 {
		return
	}
	rtt, base := float64(l.sum)/float64(l.samples), float64(s.base.value)
	alpha := l.p.Alpha * float64(s.datagram)
	l.backlog = Backlog(float64(l.wOld), base, rtt)
	if !l.slow && !l.limited && !s.appLimited && rtt > 0 {
		s.setWindow(NextWindow(s.window, float64(l.wOld), base, rtt, alpha, l.p.Gamma))
	}
	l.sum, l.samples, l.limited = 0, 0, false
}

func (l *static) onCongestion(s *sender) {
	s.cut()
	s.setWindow(s.window / 2)
}

func (l *static) onPersistentCongestion(*sender) {}

func (l *static) pacing(s *sender) (float64, int64, int64) {
	gain := 1.25 // the law needs the window, not the pacer, to be the limit
	if l.slow {
		gain = 2
	}
	return gain * s.window * 1e9 / s.pathRTT(), 10, int64(time.Millisecond)
}

func (l *static) report(s *sender, to *Snapshot) {
	to.Alpha, to.Gamma = l.p.Alpha, l.p.Gamma
	to.Backlog = l.backlog / float64(s.datagram)
	to.QueueDelay = time.Duration(max(s.avgRTT-float64(s.base.value), 0))
}
