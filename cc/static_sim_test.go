package cc_test

import (
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/cc/ccsim"
)

// TestStaticEquilibrium is the article's worked example: every flow holds exactly
// alpha packets in the queue, so that q = N*alpha/c, whatever c, N and alpha.
func TestStaticEquilibrium(t *testing.T) {
	for _, c := range []struct {
		name   string
		rate   float64 // Mb/s
		alpha  float64
		n      int
		rtt    time.Duration
		within float64 // of alpha, each flow
	}{
		{"one flow", 100, 50, 1, 40 * ms, 0.05},
		{"Experiment 1", 96, 200, 3, 100 * ms, 0.05},
		{"Experiment 3 at a fifth", 192, 400, 3, 100 * ms, 0.05},
		{"ten flows", 100, 20, 10, 30 * ms, 0.15},
	} {
		t.Run(c.name, func(t *testing.T) {
			params := cc.DefaultStaticParams()
			params.Alpha = c.alpha
			config := ccsim.Config{Link: path(c.rate, second), Duration: 10 * second}
			for range c.n {
				config.Flows = append(config.Flows, ccsim.Flow{
					RTT: c.rtt, Packet: packet,
					Paced: func(size int64, rtt cc.RTTSource) cc.Controller { return cc.NewStatic(params, size, rtt) },
				})
			}
			r := simulate(t, config)
			from := 7 * second
			q := cc.EquilibriumQueueDelay(float64(c.n), c.alpha, mbps(c.rate)/packet)
			between(t, "q/q*", r.QueueDelay(from, 0).Seconds()/q, 0.95, 1.05)
			between(t, "utilization", r.Utilization(from, 0), 0.999, 1.001)
			between(t, "Jain", r.Jain(from, 0), 0.995, 1)
			for i := range c.n {
				between(t, "backlog/alpha", r.Backlog(i, from, 0)/packet/c.alpha, 1-c.within, 1+c.within)
				between(t, "what the controller sees of it", last(r, i).Backlog/c.alpha, 1-c.within, 1+c.within)
			}
			if r.Dropped(0, 0) > 0 {
				t.Error("packets dropped with an ample buffer")
			}
		})
	}
}

// TestStaticRateFollowsAlpha: rates are in proportion to alpha whatever the RTTs
// (x_i = alpha_i/q), once the base RTTs are true.
func TestStaticRateFollowsAlpha(t *testing.T) {
	flow := func(alpha float64, rtt time.Duration) ccsim.Flow {
		params := cc.DefaultStaticParams()
		params.Alpha = alpha
		return ccsim.Flow{
			RTT: rtt, Packet: packet,
			Paced: func(size int64, rtt cc.RTTSource) cc.Controller { return cc.NewStatic(params, size, rtt) },
		}
	}
	r := simulate(t, ccsim.Config{
		Link: path(100, second), Duration: 40 * second,
		Flows: []ccsim.Flow{flow(50, 20*ms), flow(100, 80*ms)},
	})
	from := 30 * second
	between(t, "rate of twice the alpha over that of one", r.Goodput(1, from, 0)/r.Goodput(0, from, 0), 1.8, 2.2)
	between(t, "utilization", r.Utilization(from, 0), 0.999, 1.001)
}

// TestStaticHalvesOnLoss: the original FAST treats loss as TCP Reno does, which is
// why random loss costs it rate, and why it survives a buffer below alpha.
func TestStaticHalvesOnLoss(t *testing.T) {
	link := path(50, 100*ms)
	link.Loss = 0.01
	r := simulate(t, ccsim.Config{Link: link, Flows: flows(1, cc.LawStatic, 100*ms), Duration: 30 * second, Seed: 1})
	between(t, "utilization at 1 % loss", r.Utilization(5*second, 0), 0.3, 0.95)
}

func TestStaticKeepsTime(t *testing.T) {
	keepsTime(t, cc.LawStatic)
}

// keepsTime holds that only differences of time count: a run on a clock that
// starts far below zero is the same run.
func keepsTime(t *testing.T, law cc.Law) {
	t.Helper()
	config := ccsim.Config{Link: path(20, 400*ms), Flows: flows(2, law, 40*ms), Duration: 12 * second, Seed: 2}
	config.Link.Loss = 0.001
	// Drains fall on the clock's multiples of 5 s, and -5e18 ns is one.
	var sent [2]int64
	for i, clock := range []int64{0, -5e18} {
		config.Clock = clock
		sent[i] = simulate(t, config).Flows[0].Sent
	}
	if sent[1] != sent[0] {
		t.Errorf("packets sent differ by the clock's zero: %v", sent)
	}
	// A clock that passes 0, which means "at once" or "none" elsewhere.
	config.Clock = -int64(5 * second)
	r := simulate(t, config)
	between(t, "utilization", r.Utilization(second, 0), 0.9, 1.001)
	between(t, "utilization around 0", r.Utilization(4*second, 4900*ms)-r.Utilization(5100*ms, 6*second), -0.1, 0.1)
}
