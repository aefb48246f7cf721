package ccsim

import (
	"time"

	"fastpacs/cc"
)

// span returns the range of samples taken after from and up to to. A to of 0
// stands for the end.
func (r *Result) span(from, to time.Duration) (first, last int) {
	step := r.Config.Sample
	if to <= 0 || to > r.Config.Duration {
		to = r.Config.Duration
	}
	return min(int(from/step), len(r.Link)), min(int(to/step), len(r.Link))
}

// linkAt is the sample number i-1, or the state at the start.
func (r *Result) linkAt(i int) LinkSample {
	if i == 0 {
		return LinkSample{}
	}
	return r.Link[i-1]
}

func (r *Result) delivered(flow, i int) int64 {
	if i == 0 {
		return 0
	}
	return r.Flows[flow].Samples[i-1].Delivered
}

// Utilization is the share of the link's capacity that was used between from and
// to (0: the end).
func (r *Result) Utilization(from, to time.Duration) float64 {
	first, last := r.span(from, to)
	a, b := r.linkAt(first), r.linkAt(last)
	if b.Capacity <= a.Capacity {
		return 0
	}
	return float64(b.Carried-a.Carried) / (b.Capacity - a.Capacity)
}

// QueueDelay is the mean wait of packets between from and to (0: the end).
func (r *Result) QueueDelay(from, to time.Duration) time.Duration {
	first, last := r.span(from, to)
	var waits, waited float64
	for _, s := range r.Link[first:last] {
		waits += float64(s.waits)
		waited += s.waited
	}
	if waits == 0 {
		return 0
	}
	return time.Duration(waited / waits)
}

// PeakQueueDelay is the longest wait that the buffer held between from and to
// (0: the end).
func (r *Result) PeakQueueDelay(from, to time.Duration) time.Duration {
	first, last := r.span(from, to)
	var peak time.Duration
	for _, s := range r.Link[first:last] {
		peak = max(peak, s.PeakDelay)
	}
	return peak
}

// Dropped is the share of packets that the buffer had no room for between from
// and to (0: the end).
func (r *Result) Dropped(from, to time.Duration) float64 {
	first, last := r.span(from, to)
	a, b := r.linkAt(first), r.linkAt(last)
	var sent float64
	for _, s := range r.Link[first:last] {
		sent += float64(s.waits)
	}
	dropped := float64(b.Dropped - a.Dropped)
	if dropped == 0 {
		return 0
	}
	return dropped / (sent + dropped)
}

// Goodput is what reached a flow's receiver between from and to (0: the end), in
// bytes per second.
func (r *Result) Goodput(flow int, from, to time.Duration) float64 {
	first, last := r.span(from, to)
	if last <= first {
		return 0
	}
	return float64(r.delivered(flow, last)-r.delivered(flow, first)) / (time.Duration(last-first) * r.Config.Sample).Seconds()
}

// Backlog is the mean number of bytes that a flow had waiting at the bottleneck
// between from and to (0: the end).
func (r *Result) Backlog(flow int, from, to time.Duration) float64 {
	first, last := r.span(from, to)
	var sum float64
	for _, s := range r.Flows[flow].Samples[first:last] {
		sum += float64(s.Queued)
	}
	return sum / float64(max(last-first, 1))
}

// Jain is Jain's index of the flows' goodputs between from and to (0: the end):
// 1 if all are equal, 1/n if one flow has all.
func (r *Result) Jain(from, to time.Duration) float64 {
	var sum, squares float64
	for i := range r.Flows {
		x := r.Goodput(i, from, to)
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / (float64(len(r.Flows)) * squares)
}

// Convergence is the time from from to the last sample before to (0: the end) in
// which the rate of a running flow was not within band (0.1: 10 %) of the equal
// share of the link. settled is false if the flows were not within it at the end.
// Drains are left out: they are meant to leave the band.
func (r *Result) Convergence(band float64, from, to time.Duration) (after time.Duration, settled bool) {
	first, last := r.span(from, to)
	for i := last - 1; i >= first; i-- {
		share := r.share(i)
		for f := range r.Flows {
			s := &r.Flows[f].Samples[i]
			if !s.Running || s.State == cc.StateDrain || r.drainedLately(f, i) {
				continue
			}
			if rate := s.Rate(); rate < (1-band)*share || rate > (1+band)*share {
				return r.Link[i].At - from, i < last-1
			}
		}
	}
	return 0, true
}

// drainedLately says whether a drain ended within the last two round trips: RTT
// averages hold it for so long.
func (r *Result) drainedLately(flow, i int) bool {
	samples := r.Flows[flow].Samples
	back := int(2*samples[i].RTT/r.Config.Sample) + 1
	for j := max(i-back, 0); j < i; j++ {
		if samples[j].State == cc.StateDrain {
			return true
		}
	}
	return false
}

// share is a running flow's equal share of the link at sample i, bytes/s.
func (r *Result) share(i int) float64 {
	rate := r.Config.Link.Rate
	for _, c := range r.Config.Changes {
		if c.At <= r.Link[i].At && c.Rate > 0 {
			rate = c.Rate
		}
	}
	running := 0
	for f := range r.Flows {
		if r.Flows[f].Samples[i].Running {
			running++
		}
	}
	return rate / float64(max(running, 1))
}

// Overshoot is how far the highest rate of any flow between from and to (0: the
// end) lay above its equal share, as a share of it. With flows named, only theirs
// counts.
func (r *Result) Overshoot(from, to time.Duration, flows ...int) float64 {
	if len(flows) == 0 {
		for f := range r.Flows {
			flows = append(flows, f)
		}
	}
	first, last := r.span(from, to)
	var worst float64
	for i := first; i < last; i++ {
		share := r.share(i)
		for _, f := range flows {
			worst = max(worst, r.Flows[f].Samples[i].Rate()/share-1)
		}
	}
	return worst
}
