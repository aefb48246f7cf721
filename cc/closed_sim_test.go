package cc_test

import (
	"math"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/cc/ccsim"
)

// The closed-loop tests run controllers in package ccsim. Figures of merit on the
// real transport are the laboratory's (internal/lab); these hold what the law
// promises, on paths with nothing else to blame.

const (
	ms     = time.Millisecond
	second = time.Second
	packet = 1250 // bytes
)

// mbps turns Mb/s into bytes per second.
func mbps(x float64) float64 { return x * 1e6 / 8 }

// path is a bottleneck of so many Mb/s with a buffer of so much time.
func path(rate float64, buffer time.Duration) ccsim.Link {
	return ccsim.Link{Rate: mbps(rate), Buffer: int64(mbps(rate) * buffer.Seconds())}
}

// flows makes n flows of a law that start together.
func flows(n int, law cc.Law, rtt time.Duration) []ccsim.Flow {
	f := make([]ccsim.Flow, n)
	for i := range f {
		f[i] = ccsim.Flow{Paced: ccsim.Law(law), RTT: rtt, Packet: packet}
	}
	return f
}

// simulate runs c, and holds what holds in every run: windows of at least two
// packets, finite rates, and a sender that always knows when to send next.
func simulate(t *testing.T, c ccsim.Config) *ccsim.Result {
	t.Helper()
	r, err := ccsim.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	for f := range r.Flows {
		if n := r.Flows[f].Spins; n > 0 {
			t.Errorf("flow %d: %d times no packet may go, and no later time is named", f, n)
		}
		for i := range r.Flows[f].Samples {
			s := &r.Flows[f].Samples[i]
			if s.Window < 2*packet || !finite(s.PacingRate, s.DeliveryRate, s.Backlog, s.Alpha, s.Gamma, s.LossRate) {
				t.Fatalf("flow %d at %v: %+v", f, r.Link[i].At, s.Snapshot)
			}
		}
	}
	return r
}

func finite(values ...float64) bool {
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return false
		}
	}
	return true
}

// between reports a figure outside of its range.
func between(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if !(got >= low && got <= high) {
		t.Errorf("%s = %.4g, want %.4g to %.4g", what, got, low, high)
	}
}

// last is a flow's last sample.
func last(r *ccsim.Result, flow int) *ccsim.FlowSample {
	samples := r.Flows[flow].Samples
	return &samples[len(samples)-1]
}
