package lab

import (
	"math"
	"time"

	"fastpacs/cc"
)

const (
	// StartupPeriod is what counts as start-up for the peak queue and overshoot.
	StartupPeriod = 4 * time.Second
	// smoothing is the interval over which goodput is averaged to judge
	// convergence and overshoot.
	smoothing = 500 * time.Millisecond
)

// Record is what a finished run left, for the figures of a Result.
type Record struct {
	*Series
	Scenario   *Scenario
	Flows      []Flow // defaults filled in
	PacketSize int    // UDP payload of a full packet, bytes
	Queue      *QueueHistogram
	Objects    [][]time.Duration // by flow: request to last byte
	Errors     []string
}

// result computes the figures every scenario has.
func (r *Record) result() Result {
	from, to := r.Scenario.window()
	link := r.Link(from, to)
	first, last := r.starts()
	all := r.Link(0, r.End())
	startup := r.Link(0, first+StartupPeriod)
	res := Result{
		Scenario:           r.Scenario.Name,
		Seeds:              1,
		Utilization:        Figure(r.Utilization(from, to)),
		MeanQueueMs:        Figure(ms(link.MeanQueue())),
		P95QueueMs:         Figure(ms(r.Queue.Quantile(0.95))),
		PeakStartupQueueMs: Figure(ms(startup.QueueMax)),
		LossPct:            Figure(r.LossPct(from, to)),
		Jain:               r.jain(from, to),
		ConvergenceS:       r.Convergence(last, r.undisturbedUntil(last)),
		TimeTo90S:          r.reaches(first, 0.9),
		Share:              r.share(from, to),
		Survived:           len(r.Errors) == 0,
		Errors:             r.Errors,
		Extra: map[string]Figure{
			"goodput_mbps":    Figure(r.TotalGoodput(from, to) / 1e6),
			"drops":           Figure(all.Drops),
			"random_loss_pct": Figure(100 * float64(link.Lost) / float64(max(link.Packets, 1))),
			"overshoot_pct":   r.overshoot(last, last+StartupPeriod),
		},
	}
	if alpha := r.Alpha(from, to); alpha > 0 {
		// N*alpha/c, what the queue is at the law's equilibrium
		wire := float64(r.PacketSize+headerBytes) * 8
		rate := (r.capacity[r.index(to)] - r.capacity[r.index(from)]) * 8 / r.seconds(from, to)
		equilibrium := alpha * wire / rate * 1e3
		res.Extra["alpha_packets"] = Figure(alpha)
		res.Extra["equilibrium_queue_ms"] = Figure(equilibrium)
		res.Extra["queue_vs_equilibrium"] = res.MeanQueueMs / Figure(equilibrium)
	}
	for state, n := range r.states {
		if state != "" {
			res.Extra[stateMetric(state)] = Figure(100 * float64(n) / float64(r.snapshots))
		}
	}
	if r.Scenario.Extra != nil {
		for k, v := range r.Scenario.Extra(r) {
			res.Extra[k] = v
		}
	}
	return res
}

// stateMetric names the share of time, in percent, that controllers spent in a state.
func stateMetric(s cc.State) string { return "in_" + string(s) + "_pct" }

// starts returns the first and the last start of a flow.
func (r *Record) starts() (first, last time.Duration) {
	first = r.Flows[0].Start
	for _, f := range r.Flows {
		first, last = min(first, f.Start), max(last, f.Start)
	}
	return first, last
}

// undisturbedUntil is when something first changes after t.
func (r *Record) undisturbedUntil(t time.Duration) time.Duration {
	end := r.Scenario.Duration
	for _, f := range r.Flows {
		if f.Stop > t {
			end = min(end, f.Stop)
		}
	}
	for _, e := range r.Scenario.Events {
		if e.At > t {
			end = min(end, e.At)
		}
	}
	return end
}

// fairShare is the goodput, in bit/s, that each flow active over an interval
// would have if they shared what the link carries at its full rate.
func (r *Record) fairShare(from, to time.Duration) float64 {
	active := 0
	for _, f := range r.Flows {
		if f.Start <= from && f.Stop >= to {
			active++
		}
	}
	a, b := r.index(from), r.index(to)
	rate := 8 * (r.capacity[b] - r.capacity[a]) / r.seconds(from, to)
	all := r.Link(0, r.End())
	received := 0.0
	for _, n := range r.received[len(r.received)-1] {
		received += float64(n)
	}
	return rate * received / float64(max(all.Bytes, 1)) / float64(max(active, 1))
}

// Convergence is the time in seconds from start until every active flow's
// goodput over half a second is within 10 % of its fair share, for good as far as
// end; None if they end up outside. Half seconds are left out in which a
// controller drained the queue, or refilled it in the two RTTs after that.
func (r *Record) Convergence(start, end time.Duration) Figure {
	last := start
	for t := start + smoothing; t <= end; t += Tick {
		if r.Drained(t-smoothing-r.refill(), t) {
			continue
		}
		fair := r.fairShare(t-smoothing, t)
		for i, f := range r.Flows {
			if f.Start > t-smoothing || f.Stop < t {
				continue
			}
			if math.Abs(r.Goodput(i, t-smoothing, t)/fair-1) > 0.1 {
				last = t
			}
		}
	}
	if last+Tick > end-smoothing {
		return None()
	}
	return Figure((last - start).Seconds())
}

// refill is how long a drain shows in goodput after it is over.
func (r *Record) refill() time.Duration {
	longest := time.Duration(0)
	for _, f := range r.Flows {
		longest = max(longest, f.RTT)
	}
	return 2*longest + 100*time.Millisecond
}

// overshoot is the article's: how far the fastest flow's goodput over half a
// second rose above its fair share, in percent.
func (r *Record) overshoot(start, end time.Duration) Figure {
	top := 0.0
	for t := start + smoothing; t <= min(end, r.End()); t += Tick {
		fair := r.fairShare(t-smoothing, t)
		for i := range r.Flows {
			top = max(top, r.Goodput(i, t-smoothing, t)/fair-1)
		}
	}
	return Figure(100 * top)
}

// reaches is the time in seconds from start to the end of the first 100 ms in
// which the link sent a given share of what it could.
func (r *Record) reaches(start time.Duration, share float64) Figure {
	const length = 100 * time.Millisecond
	return Figure(length.Seconds()) + r.Until(start, r.End(), length, func(from, to time.Duration) bool {
		return r.Utilization(from, to) >= share
	})
}

// jain is Jain's index of goodput over the flows that ran the whole interval.
func (r *Record) jain(from, to time.Duration) Figure {
	n, sum, squares := 0.0, 0.0, 0.0
	for i, f := range r.Flows {
		if f.Start <= from && f.Stop >= to {
			x := r.Goodput(i, from, to)
			n, sum, squares = n+1, sum+x, squares+x*x
		}
	}
	if squares == 0 {
		return None()
	}
	return Figure(sum * sum / (n * squares))
}

// share is what the flows of the law under test got of all goodput.
func (r *Record) share(from, to time.Duration) Figure {
	ours, cross := 0.0, false
	for i, f := range r.Flows {
		if f.Law == "" {
			ours += r.Goodput(i, from, to)
		} else {
			cross = true
		}
	}
	if !cross {
		return None()
	}
	return Figure(ours / r.TotalGoodput(from, to))
}
