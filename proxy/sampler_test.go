package proxy

import (
	"context"
	"net"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/proxy/quicnet"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// fakePaths stands for quicnet.Controllers.
type fakePaths struct {
	paths  []quicnet.Path
	totals quicnet.Totals
}

func (f *fakePaths) sampler() *sampler {
	return &sampler{
		metrics: newControllerMetrics(),
		each: func(yield func(quicnet.Path)) {
			for _, p := range f.paths {
				yield(p)
			}
		},
		totals: func() quicnet.Totals { return f.totals },
	}
}

func samplePath(port int, sent uint64) quicnet.Path {
	return quicnet.Path{
		Remote: &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port},
		Snapshot: cc.Snapshot{
			Law: cc.LawImproved, State: cc.StateSteady,
			RTT: 82 * time.Millisecond, BaseRTT: 80 * time.Millisecond, QueueDelay: 2 * time.Millisecond,
			Backlog: 19, Alpha: 20, Gamma: .3, Window: 1 << 20, LossRate: .004, PacketsSent: sent,
		},
	}
}

func observations(t *testing.T, h *prometheus.HistogramVec) (n uint64, sum float64) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(h)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n += m.GetHistogram().GetSampleCount()
			sum += m.GetHistogram().GetSampleSum()
		}
	}
	return n, sum
}

func TestSamplerCopiesSnapshots(t *testing.T) {
	f := &fakePaths{paths: []quicnet.Path{samplePath(1, 10)}, totals: quicnet.Totals{Migrations: 1, PacketsSent: 10, PacketsLost: 2}}
	s := f.sampler()
	s.sample()
	for name, tt := range map[string]struct {
		histogram *prometheus.HistogramVec
		want      float64
	}{
		"rtt": {s.metrics.rtt, .082}, "base rtt": {s.metrics.baseRTT, .08}, "queue delay": {s.metrics.queueDelay, .002},
		"backlog": {s.metrics.backlog, 19}, "alpha": {s.metrics.alpha, 20}, "gamma": {s.metrics.gamma, .3},
		"window": {s.metrics.window, 1 << 20}, "loss": {s.metrics.loss, .004},
	} {
		if n, got := observations(t, tt.histogram); n != 1 || got != tt.want {
			t.Errorf("%s: %d observations of %v, want one of %v", name, n, got, tt.want)
		}
	}
	if got := testutil.ToFloat64(s.metrics.paths.WithLabelValues("improved", "steady")); got != 1 {
		t.Errorf("%v paths in steady state, want 1", got)
	}
	for name, tt := range map[string]struct {
		counter prometheus.Counter
		want    float64
	}{"migrations": {s.metrics.migrations, 1}, "sent": {s.metrics.sent, 10}, "lost": {s.metrics.lost, 2}} {
		if got := testutil.ToFloat64(tt.counter); got != tt.want {
			t.Errorf("%s = %v, want %v", name, got, tt.want)
		}
	}
}

// Paths that send nothing would drown the others in the histograms.
func TestSamplerLeavesIdlePathsOut(t *testing.T) {
	f := &fakePaths{paths: []quicnet.Path{samplePath(1, 10), samplePath(2, 10), samplePath(3, 0)}}
	s := f.sampler()
	s.sample() // 1 and 2; 3 has sent nothing yet
	f.paths[0] = samplePath(1, 11)
	s.sample() // 1 alone
	f.paths[1].Snapshot.RTT = 0
	f.paths[1].Snapshot.PacketsSent++
	s.sample() // none: no RTT yet
	if n, _ := observations(t, s.metrics.rtt); n != 3 {
		t.Errorf("%d observations, want 3", n)
	}
	if got := testutil.ToFloat64(s.metrics.paths.WithLabelValues("improved", "steady")); got != 3 {
		t.Errorf("%v live paths, want 3", got)
	}
}

// Gauges of states that no path is in any more go; counters stay and never
// decrease.
func TestSamplerAfterConnectionsEnd(t *testing.T) {
	f := &fakePaths{paths: []quicnet.Path{samplePath(1, 10)}, totals: quicnet.Totals{PacketsSent: 10, PacketsLost: 3}}
	s := f.sampler()
	s.sample()
	f.paths, f.totals = nil, quicnet.Totals{PacketsSent: 12, PacketsLost: 2}
	s.sample()
	if n := testutil.CollectAndCount(s.metrics.paths); n != 0 {
		t.Errorf("%d gauges of paths, want none", n)
	}
	if sent, lost := testutil.ToFloat64(s.metrics.sent), testutil.ToFloat64(s.metrics.lost); sent != 12 || lost != 3 {
		t.Errorf("sent %v, lost %v; want 12 and 3", sent, lost)
	}
	if len(s.sentBefore) != 0 {
		t.Errorf("remembers %d paths that have ended", len(s.sentBefore))
	}
}

func TestSamplerKnowsOnlyRTTAndWindowOfReno(t *testing.T) {
	p := samplePath(1, 10)
	p.Snapshot.Law, p.Snapshot.State = cc.LawReno, ""
	f := &fakePaths{paths: []quicnet.Path{p}}
	s := f.sampler()
	s.sample()
	if n, _ := observations(t, s.metrics.window); n != 1 {
		t.Errorf("%d observations of the window, want 1", n)
	}
	if n, _ := observations(t, s.metrics.alpha); n != 0 {
		t.Errorf("%d observations of alpha, which Reno has not", n)
	}
}

func TestSamplerRun(t *testing.T) {
	f := &fakePaths{}
	s := f.sampler()
	ctx, cancel := context.WithCancel(t.Context())
	ticks := make(chan time.Time)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.run(ctx, ticks)
	}()
	ticks <- time.Time{}
	ticks <- time.Time{} // the first sample is done
	cancel()
	<-done
}
