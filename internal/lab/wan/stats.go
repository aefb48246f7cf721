package wan

import (
	"math/bits"
	"time"
)

// Stats is what passed a direction since the link was set.
type Stats struct {
	Offered        int64 // packets that came to the buffer
	TailDrops      int64 // packets that found no room in it
	Lost           int64 // packets lost on the wire
	Delivered      int64 // packets that reached the far end
	DeliveredBytes int64 // and their bytes
	WriteErrors    int64 // packets that the far end's interface did not take
	// Queueing is how long packets waited for their turn, weighted by size.
	Queueing Spread
	// Late is how much after their time packets were delivered: the emulator's
	// own error.
	Late Spread
}

// Spread describes how a duration was distributed. Percentiles and maximum are
// rounded up by at most 1/32 of themselves.
type Spread struct {
	Mean, P95, P99, Max time.Duration
}

func (n *counts) stats() Stats {
	return Stats{
		Offered: n.offered, TailDrops: n.tailDrops, Lost: n.lost,
		Delivered: n.delivered, DeliveredBytes: n.deliveredBytes, WriteErrors: n.writeErrors,
		Queueing: n.queueing.spread(), Late: n.late.spread(),
	}
}

const (
	// subBuckets per doubling: a value is known to 1/32 of itself, or to 1 us.
	subBuckets = 32
	// histogramSize covers up to 2^31 us, 35 minutes.
	histogramSize = 28 * subBuckets
)

// histogram counts durations, with weights, in buckets of about 3 %.
type histogram struct {
	weight [histogramSize]int64
	total  int64
	sum    float64 // of value times weight, ns
}

func (h *histogram) add(ns, weight int64) {
	h.weight[bucket(ns)] += weight
	h.total += weight
	h.sum += float64(ns) * float64(weight)
}

// bucket is linear up to 64 us and then has subBuckets for each doubling.
func bucket(ns int64) int {
	us := uint64(max(ns, 0)) / 1000
	e := max(bits.Len64(us)-6, 0)
	return min(e*subBuckets+int(us>>e), histogramSize-1)
}

// upperEdge is the inverse: the largest duration that falls into the bucket.
func upperEdge(i int) time.Duration {
	e := max(i/subBuckets-1, 0)
	return time.Duration((i-e*subBuckets+1)<<e)*time.Microsecond - 1
}

func (h *histogram) spread() Spread {
	if h.total == 0 {
		return Spread{}
	}
	s := Spread{Mean: time.Duration(h.sum / float64(h.total))}
	var seen int64
	for i, w := range h.weight {
		if w == 0 {
			continue
		}
		seen += w
		edge := upperEdge(i)
		if s.P95 == 0 && float64(seen) >= 0.95*float64(h.total) {
			s.P95 = edge
		}
		if s.P99 == 0 && float64(seen) >= 0.99*float64(h.total) {
			s.P99 = edge
		}
		s.Max = edge
	}
	return s
}
