package lab

import (
	"math"
	"time"
)

// Moments of the scenarios that more than one place refers to.
const (
	joined      = 20 * time.Second // join: the third flow starts
	left        = 40 * time.Second // join: the second flow leaves
	rerouted    = 10 * time.Second // reroute-*
	stepDown    = 20 * time.Second // rate-step
	stepUp      = 40 * time.Second // rate-step
	renoLeaves  = 60 * time.Second // vs-reno
	linkDies    = 20 * time.Second // blackout
	linkReturns = 23 * time.Second // blackout
	hourCalm    = 2 * time.Minute  // hour: nothing changes at either end for so long
	hourRTT     = 40 * time.Millisecond
)

// full is the time in seconds from event until the end of the first 200 ms,
// beginning skip after it, in which the link sent a share of what it could.
func (r *Record) full(event, skip time.Duration, share float64) Figure {
	const length = 200 * time.Millisecond
	return Figure((skip + length).Seconds()) + r.Until(event+skip, r.End(), length, func(from, to time.Duration) bool {
		return r.Utilization(from, to) >= share
	})
}

func joinFigures(r *Record) map[string]Figure {
	return map[string]Figure{
		"third_80_s": Figure(smoothing.Seconds()) + r.Until(joined, left, smoothing, func(from, to time.Duration) bool {
			return r.Goodput(2, from, to) >= 0.8*r.fairShare(from, to)
		}),
		// the packets of the leaver are still in the queue for a moment
		"full_after_leave_s": r.full(left, 200*time.Millisecond, 0.95),
		"jain_2":             r.jain(10*time.Second, joined),
		"jain_3":             r.jain(30*time.Second, left),
		"jain_after":         r.jain(50*time.Second, r.End()),
	}
}

func rerouteFigures(r *Record) map[string]Figure {
	before := r.MeanQueueMs(3*time.Second, rerouted)
	return map[string]Figure{
		// half a second: what was under way on the old path is through
		"back_s":          r.full(rerouted, 500*time.Millisecond, 0.9),
		"queue_before_ms": Figure(before),
		"queue_vs_before": Figure(r.MeanQueueMs(rerouted+10*time.Second, r.End()) / before),
	}
}

func rateStepFigures(r *Record) map[string]Figure {
	around := func(step time.Duration) float64 { return r.LossPct(step-time.Second, step+5*time.Second) }
	return map[string]Figure{
		"down_90_s":             r.full(stepDown, 0, 0.9),
		"up_90_s":               r.full(stepUp, 0, 0.9),
		"step_loss_pct":         Figure(max(around(stepDown), around(stepUp))),
		"utilization_low":       Figure(r.Utilization(stepDown+3*time.Second, stepUp)),
		"utilization_high":      Figure(r.Utilization(stepUp+3*time.Second, r.End())),
		"queue_low_ms":          Figure(r.MeanQueueMs(stepDown+3*time.Second, stepUp)),
		"queue_high_ms":         Figure(r.MeanQueueMs(stepUp+3*time.Second, r.End())),
		"down_utilization_5s":   Figure(r.Utilization(stepDown, stepDown+5*time.Second)),
		"down_queue_settled_s":  r.lowQueue(stepDown, stepUp, 15),
		"after_up_max_queue_ms": Figure(ms(maxQueue(r, stepUp, stepUp+5*time.Second))),
	}
}

func maxQueue(r *Record, from, to time.Duration) time.Duration {
	l := r.Link(from, to)
	return l.QueueMax
}

// lowQueue is the time in seconds from start until the end of the first half
// second whose mean queue is at most limit ms.
func (r *Record) lowQueue(start, end time.Duration, limit float64) Figure {
	const length = 500 * time.Millisecond
	return Figure(length.Seconds()) + r.Until(start, end, length, func(from, to time.Duration) bool {
		return r.MeanQueueMs(from, to) <= limit
	})
}

func vsRenoFigures(r *Record) map[string]Figure {
	return map[string]Figure{
		"low_queue_after_leave_s": r.lowQueue(renoLeaves, r.End(), 10),
		"utilization_alone":       Figure(r.Utilization(renoLeaves+5*time.Second, r.End())),
		"queue_alone_ms":          Figure(r.MeanQueueMs(renoLeaves+5*time.Second, r.End())),
	}
}

func shortFigures(r *Record) map[string]Figure {
	objects := r.Objects[0]
	if len(objects) < 2 {
		return nil
	}
	ideal := r.Scenario.Path.RTT.Seconds() + float64(r.Flows[0].Object)*8/r.Scenario.Path.Rate
	sum, worst := 0.0, 0.0
	for _, d := range objects[1:] {
		sum += d.Seconds()
		worst = max(worst, d.Seconds())
	}
	mean := sum / float64(len(objects)-1)
	return map[string]Figure{
		"objects":            Figure(len(objects)),
		"first_object_s":     Figure(objects[0].Seconds()),
		"later_object_s":     Figure(mean),
		"worst_object_s":     Figure(worst),
		"later_object_ratio": Figure(mean / ideal),
	}
}

func blackoutFigures(r *Record) map[string]Figure {
	sent, ok := r.FirstReturn(linkReturns)
	if !ok {
		return nil
	}
	ack := sent + r.Scenario.Path.RTT/2
	return map[string]Figure{
		"first_ack_s": Figure((ack - linkReturns).Seconds()),
		"back_s":      r.full(ack, 0, 0.9),
	}
}

func hourFigures(r *Record) map[string]Figure {
	calm := func(from, to time.Duration) (queue, utilization float64) {
		return r.MeanQueueMs(from, to), r.Utilization(from, to)
	}
	q0, u0 := calm(hourCalm/2, hourCalm)
	q1, u1 := calm(r.End()-hourCalm/2, r.End())
	return map[string]Figure{
		"queue_first_ms":    Figure(q0),
		"queue_last_ms":     Figure(q1),
		"queue_drift":       Figure(q1 / q0),
		"utilization_first": Figure(u0),
		"utilization_last":  Figure(u1),
		"base_rtt_error_ms": Figure(math.Abs(ms(r.last[0].BaseRTT - hourRTT))),
	}
}
