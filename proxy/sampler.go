package proxy

import (
	"context"
	"time"

	"fastpacs/cc"
	"fastpacs/proxy/quicnet"

	"github.com/prometheus/client_golang/prometheus"
)

// controllerMetrics show what the congestion controllers see. A histogram gets
// one observation for each path at each sample, and only of paths that sent
// since the sample before: idle ones would drown the busy ones.
type controllerMetrics struct {
	rtt, baseRTT, queueDelay            *prometheus.HistogramVec // law
	backlog, alpha, gamma, window, loss *prometheus.HistogramVec // law

	paths                   *prometheus.GaugeVec // law, state
	connections, migrations *monotone
	sent, lost              *monotone
}

func newControllerMetrics() controllerMetrics {
	histogram := func(name, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"law"})
	}
	rtts := []float64{.0005, .001, .002, .005, .01, .02, .03, .05, .075, .1, .15, .2, .3, .5, 1, 2}
	queue := []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .02, .03, .05, .1, .25, .5, 1}
	packets := []float64{0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}
	return controllerMetrics{
		rtt:        histogram("fastpacs_cc_rtt_seconds", "Smoothed round-trip time of busy paths, sampled.", rtts),
		baseRTT:    histogram("fastpacs_cc_base_rtt_seconds", "Round-trip time believed to be free of queueing, of busy paths, sampled.", rtts),
		queueDelay: histogram("fastpacs_cc_queue_delay_seconds", "Queueing delay of busy paths, sampled.", queue),
		backlog:    histogram("fastpacs_cc_backlog_packets", "Packets that a busy path holds in the bottleneck's queue, sampled.", packets),
		alpha:      histogram("fastpacs_cc_alpha_packets", "Packets that a busy path wants to hold in the bottleneck's queue, sampled.", packets),
		gamma:      histogram("fastpacs_cc_gamma_ratio", "Gain of the last window update of busy paths, sampled.", []float64{.05, .1, .2, .25, .3, .4, .5, .6, .7, .8, .9, 1}),
		window:     histogram("fastpacs_cc_window_bytes", "Congestion window of busy paths, sampled.", prometheus.ExponentialBuckets(4096, 4, 9)),
		loss:       histogram("fastpacs_cc_loss_ratio", "Smoothed share of lost bytes on busy paths, sampled.", []float64{0, .0005, .001, .0025, .005, .01, .02, .05, .1, .2, .5, 1}),
		paths: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "fastpacs_cc_paths", Help: "Live QUIC paths, by law and state of their controller.",
		}, []string{"law", "state"}),
		connections: newMonotone("fastpacs_quic_connections_total", "QUIC connections that began a handshake."),
		migrations:  newMonotone("fastpacs_quic_migrations_total", "QUIC connections' moves to another path."),
		sent:        newMonotone("fastpacs_quic_packets_sent_total", "Ack-eliciting QUIC packets sent (law reno: all packets)."),
		lost:        newMonotone("fastpacs_quic_packets_lost_total", "QUIC packets declared lost."),
	}
}

func (m controllerMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{
		m.rtt, m.baseRTT, m.queueDelay, m.backlog, m.alpha, m.gamma, m.window, m.loss,
		m.paths, m.connections, m.migrations, m.sent, m.lost,
	}
}

// monotone is a counter fed with absolute values that never decrease.
type monotone struct {
	prometheus.Counter
	last uint64 // owned by the sampler
}

func newMonotone(name, help string) *monotone {
	return &monotone{Counter: prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})}
}

func (m *monotone) raiseTo(v uint64) {
	if v > m.last {
		m.Add(float64(v - m.last))
		m.last = v
	}
}

// sampler copies the state of live controllers into the metrics.
type sampler struct {
	metrics controllerMetrics
	each    func(func(quicnet.Path))
	totals  func() quicnet.Totals

	sentBefore map[string]uint64 // packets sent at the last sample, by peer
}

func newSampler(m controllerMetrics, c *quicnet.Controllers) *sampler {
	return &sampler{metrics: m, each: c.Each, totals: c.Totals}
}

// run takes a sample at every tick until ctx ends, and one more then.
func (s *sampler) run(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ticks:
			s.sample()
		case <-ctx.Done():
			s.sample()
			return
		}
	}
}

func (s *sampler) sample() {
	type kind struct{ law, state string }
	paths := make(map[kind]int)
	sent := make(map[string]uint64, len(s.sentBefore))
	s.each(func(p quicnet.Path) {
		v := p.Snapshot
		paths[kind{string(v.Law), string(v.State)}]++
		peer := p.Remote.String()
		sent[peer] = v.PacketsSent
		if before, known := s.sentBefore[peer]; (known && before == v.PacketsSent) || v.PacketsSent == 0 || v.RTT == 0 {
			return
		}
		s.observe(v)
	})
	s.sentBefore = sent

	s.metrics.paths.Reset()
	for k, n := range paths {
		s.metrics.paths.WithLabelValues(k.law, k.state).Set(float64(n))
	}
	t := s.totals()
	s.metrics.connections.raiseTo(t.Connections)
	s.metrics.migrations.raiseTo(t.Migrations)
	s.metrics.sent.raiseTo(t.PacketsSent)
	s.metrics.lost.raiseTo(t.PacketsLost)
}

func (s *sampler) observe(v cc.Snapshot) {
	law := string(v.Law)
	m := &s.metrics
	m.rtt.WithLabelValues(law).Observe(v.RTT.Seconds())
	m.baseRTT.WithLabelValues(law).Observe(v.BaseRTT.Seconds())
	m.window.WithLabelValues(law).Observe(float64(v.Window))
	if v.Law == cc.LawReno {
		return // quic-go's own controller tells no more
	}
	m.queueDelay.WithLabelValues(law).Observe(v.QueueDelay.Seconds())
	m.backlog.WithLabelValues(law).Observe(v.Backlog)
	m.alpha.WithLabelValues(law).Observe(v.Alpha)
	m.gamma.WithLabelValues(law).Observe(v.Gamma)
	m.loss.WithLabelValues(law).Observe(v.LossRate)
}
