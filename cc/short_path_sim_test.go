package cc_test

import (
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/cc/ccsim"
)

// TestImprovedOnAShortPath: on loopback and in one room it is the receiver that
// drops packets, when more of them wait than it keeps; the window stays below.
func TestImprovedOnAShortPath(t *testing.T) {
	limit := cc.DefaultParams().ShortPathWindow
	for _, c := range []struct {
		rtt       time.Duration
		low, high float64 // packets of window
	}{
		{ms / 10, limit - 1, limit},
		{2 * ms, 2 * limit, 20 * limit},
	} {
		t.Run(c.rtt.String(), func(t *testing.T) {
			r := simulate(t, ccsim.Config{
				Link: path(9600, 50*ms), Flows: flows(1, cc.LawImproved, c.rtt), Duration: second / 4, Seed: 1,
			})
			between(t, "window, packets", float64(last(r, 0).Window)/packet, c.low, c.high)
			between(t, "utilization", r.Utilization(second/8, 0), 0.98, 1.001)
		})
	}
}
