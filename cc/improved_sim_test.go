package cc_test

import (
	"fmt"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/cc/ccsim"
)

// TestImprovedFillsTheLink: a single flow keeps a link full with a backlog of
// about alpha, and alpha is what the parameters say for that rate.
func TestImprovedFillsTheLink(t *testing.T) {
	for _, c := range []struct {
		rate, rtt float64 // Mb/s, ms
	}{{10, 40}, {100, 1}, {100, 80}, {480, 100}} {
		t.Run(fmt.Sprintf("%.0f Mb/s, %.0f ms", c.rate, c.rtt), func(t *testing.T) {
			rtt := time.Duration(c.rtt * float64(ms))
			r := simulate(t, ccsim.Config{
				Link: path(c.rate, max(rtt, 50*ms)), Flows: flows(1, cc.LawImproved, rtt), Duration: 11 * second,
			})
			// Between two drains, which fall on multiples of 5 s.
			from, to := 6*second, 9500*ms
			between(t, "utilization", r.Utilization(from, to), 0.99, 1.001)
			between(t, "utilization with drains", r.Utilization(2*second, 0), 0.97, 1.001)
			params := cc.DefaultParams()
			alpha := params.Alpha(mbps(c.rate), mbps(c.rate))
			between(t, "alpha over the parameters'", last(r, 0).Alpha/alpha, 0.9, 1.2)
			between(t, "backlog/alpha", r.Backlog(0, from, to)/packet/alpha, 0.7, 1.3)
			if r.Dropped(0, 0) > 0 {
				t.Error("packets dropped with an ample buffer")
			}
		})
	}
}

// TestImprovedLands: slow start ends at equilibrium, without the peak that
// Algorithm 2 taken literally has in a paced sender (57 to 135 ms, trap 1).
func TestImprovedLands(t *testing.T) {
	for _, c := range []struct {
		name string
		link ccsim.Link
		n    int
		rtt  time.Duration
		peak time.Duration
	}{
		{"one flow", path(100, 80*ms), 1, 80 * ms, 10 * ms},
		{"one fast flow", path(960, 100*ms), 1, 100 * ms, 10 * ms},
		{"three together", path(960, 100*ms), 3, 100 * ms, 35 * ms},
		{"deep buffer", path(20, 2*second), 1, 40 * ms, 15 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := simulate(t, ccsim.Config{Link: c.link, Flows: flows(c.n, cc.LawImproved, c.rtt), Duration: 3 * second})
			between(t, "peak, ms", r.PeakQueueDelay(0, 0).Seconds()*1e3, 0, c.peak.Seconds()*1e3)
			between(t, "utilization from 1.5 s", r.Utilization(1500*ms, 0), 0.95, 1.001)
			if last(r, 0).State == cc.StateSlowStart {
				t.Error("still in slow start after 3 s")
			}
		})
	}
}

// TestImprovedShares: three flows together settle fast, at equal rates and a
// queue of alpha each.
func TestImprovedShares(t *testing.T) {
	r := simulate(t, ccsim.Config{Link: path(960, 100*ms), Flows: flows(3, cc.LawImproved, 100*ms), Duration: 5 * second})
	after, settled := r.Convergence(0.1, 0, 0)
	if !settled {
		t.Error("not settled")
	}
	between(t, "convergence, s", after.Seconds(), 0, 2)
	between(t, "Jain", r.Jain(2*second, 0), 0.99, 1)
	var alpha float64
	for i := range r.Flows {
		alpha += last(r, i).Alpha
	}
	between(t, "queue over the sum of alpha", r.QueueDelay(3*second, 4900*ms).Seconds()*mbps(960)/packet/alpha, 0.8, 1.2)
}

// TestImprovedIgnoresRandomLoss: loss without a queue is not congestion (trap 4).
func TestImprovedIgnoresRandomLoss(t *testing.T) {
	for _, c := range []struct{ loss, utilization float64 }{{0.005, 0.96}, {0.01, 0.95}, {0.02, 0.93}} {
		t.Run(fmt.Sprint(c.loss), func(t *testing.T) {
			link := path(50, 100*ms)
			link.Loss = c.loss
			r := simulate(t, ccsim.Config{Link: link, Flows: flows(1, cc.LawImproved, 100*ms), Duration: 40 * second, Seed: 1})
			between(t, "utilization", r.Utilization(20*second, 0), c.utilization, 1.001)
			between(t, "loss seen", float64(r.Flows[0].Lost)/float64(r.Flows[0].Sent), 0.8*c.loss, 1.2*c.loss)
		})
	}
}

// TestImprovedShallowBuffer: below alpha, loss is the only signal (trap 4).
func TestImprovedShallowBuffer(t *testing.T) {
	link := path(100, 0)
	link.Buffer = 20 * packet
	r := simulate(t, ccsim.Config{Link: link, Flows: flows(1, cc.LawImproved, 50*ms), Duration: 40 * second})
	between(t, "utilization", r.Utilization(20*second, 0), 0.94, 1.001)
	between(t, "dropped", r.Dropped(20*second, 0), 0, 0.007)
}

// TestImprovedBlackout: nothing passes for 3 s. The connection finds the path
// again, and its rate, without an overflow.
func TestImprovedBlackout(t *testing.T) {
	r := simulate(t, ccsim.Config{
		Link: path(50, 100*ms), Flows: flows(1, cc.LawImproved, 40*ms), Duration: 18 * second,
		Changes: []ccsim.Change{{At: 8 * second, Down: true}, {At: 11 * second, Up: true}},
	})
	back := 11 * second
	for at := back; at < 18*second; at += 10 * ms {
		if r.Goodput(0, at, at+10*ms) > 0 {
			back = at
			break
		}
	}
	between(t, "utilization from 1 s after the first packet", r.Utilization(back+second, back+2*second), 0.9, 1.001)
	between(t, "peak queue, ms", r.PeakQueueDelay(back, 0).Seconds()*1e3, 0, 20)
	between(t, "dropped", r.Dropped(back, 0), 0, 0)
}

// TestImprovedChangesOfThePath: a longer path is not taken for a queue for ever
// (trap 3), a shorter one is used at once, and a slower link is not overfilled.
func TestImprovedChangesOfThePath(t *testing.T) {
	for _, c := range []struct {
		name    string
		rate    float64
		rtt     time.Duration
		changes ccsim.Change
		delay   time.Duration // most, from 10 s after the change
	}{
		{"longer", 50, 40 * ms, ccsim.Change{RTT: 120 * ms}, 8 * ms},
		{"shorter", 50, 120 * ms, ccsim.Change{RTT: 40 * ms}, 8 * ms},
		{"slower", 100, 80 * ms, ccsim.Change{Rate: mbps(20)}, 15 * ms},
		{"faster", 20, 80 * ms, ccsim.Change{Rate: mbps(100)}, 8 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.changes.At = 12 * second
			r := simulate(t, ccsim.Config{
				Link: path(c.rate, 120*ms), Flows: flows(1, cc.LawImproved, c.rtt), Duration: 32 * second,
				Changes: []ccsim.Change{c.changes},
			})
			between(t, "utilization", r.Utilization(22*second, 0), 0.95, 1.001)
			between(t, "queue, ms", r.QueueDelay(22*second, 0).Seconds()*1e3, 0, c.delay.Seconds()*1e3)
		})
	}
}

// TestImprovedJitter: the queue is read through jitter, reordering and ACKs that
// come in bunches (trap 6).
func TestImprovedJitter(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*ccsim.Link)
	}{
		{"jitter", func(l *ccsim.Link) { l.Jitter, l.JitterEpoch = 10*ms, 5*ms }},
		{"reordering", func(l *ccsim.Link) { l.Jitter, l.Reorder = 10*ms, true }},
		{"bunched ACKs", func(l *ccsim.Link) { l.AckGrain = 10 * ms }},
	} {
		t.Run(c.name, func(t *testing.T) {
			link := path(50, 80*ms)
			c.set(&link)
			r := simulate(t, ccsim.Config{Link: link, Flows: flows(1, cc.LawImproved, 40*ms), Duration: 30 * second, Seed: 1})
			between(t, "utilization", r.Utilization(15*second, 0), 0.95, 1.001)
			between(t, "queue, ms", r.QueueDelay(15*second, 0).Seconds()*1e3, 0, 12)
		})
	}
}

// TestImprovedLatecomers: flows that start into a standing queue get their share
// all the same, since drains show all of them the true base RTT (trap 2).
func TestImprovedLatecomers(t *testing.T) {
	config := ccsim.Config{Link: path(96, 100*ms), Flows: flows(3, cc.LawImproved, 100*ms), Duration: 40 * second}
	for i := range config.Flows {
		config.Flows[i].Start = time.Duration(i) * second
	}
	r := simulate(t, config)
	between(t, "Jain", r.Jain(20*second, 0), 0.95, 1)
	between(t, "utilization", r.Utilization(20*second, 0), 0.95, 1.001)
	var alpha float64
	for i := range r.Flows {
		alpha += last(r, i).Alpha
	}
	between(t, "queue over the sum of alpha", r.QueueDelay(20*second, 0).Seconds()*mbps(96)/packet/alpha, 0.7, 1.3)
}

func TestImprovedKeepsTime(t *testing.T) {
	keepsTime(t, cc.LawImproved)
}

// TestImprovedDoesNotGrowWhileTheApplicationIsTheLimit: a steady trickle uses a
// part of the link, and the link must not be flooded when there is more to send.
func TestImprovedDoesNotGrowWhileTheApplicationIsTheLimit(t *testing.T) {
	config := ccsim.Config{Link: path(50, 40*ms), Flows: flows(1, cc.LawImproved, 40*ms), Duration: 20 * second}
	config.Flows[0].AppRate, config.Flows[0].AppUntil = mbps(2), 10*second
	r := simulate(t, config)
	between(t, "window, packets", float64(r.Flows[0].Samples[998].Window)/packet, 2, 30)
	between(t, "peak queue once there is more to send, ms", r.PeakQueueDelay(10*second, 0).Seconds()*1e3, 0, 15)
	between(t, "utilization then", r.Utilization(13*second, 0), 0.97, 1.001)
}

// TestImprovedCollapsesAfterABlackout: persistent congestion (RFC 9002 7.6) sets
// the minimum window.
func TestImprovedCollapsesAfterABlackout(t *testing.T) {
	r := simulate(t, ccsim.Config{
		Link: path(50, 100*ms), Flows: flows(1, cc.LawImproved, 40*ms), Duration: 14 * second, Sample: ms,
		Changes: []ccsim.Change{{At: 8 * second, Down: true}, {At: 11 * second, Up: true}},
	})
	lowest := int64(1 << 40)
	for _, s := range r.Flows[0].Samples[11000:] {
		lowest = min(lowest, s.Window)
	}
	between(t, "lowest window, packets", float64(lowest)/packet, 2, 2)
	between(t, "utilization after", r.Utilization(13*second, 0), 0.9, 1.001)
}
