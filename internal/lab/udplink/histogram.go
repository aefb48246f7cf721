package udplink

import (
	"math/bits"
	"time"
)

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

func (h *histogram) sub(earlier *histogram) {
	for i := range h.weight {
		h.weight[i] -= earlier.weight[i]
	}
	h.total -= earlier.total
	h.sum -= earlier.sum
}

// Spread describes how a duration was distributed. Percentile and maximum are
// rounded up by at most 1/32 of themselves.
type Spread struct {
	Mean, P95, P99, Max time.Duration
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
		before := seen
		seen += w
		edge := upperEdge(i)
		for _, p := range []struct {
			share float64
			to    *time.Duration
		}{{0.95, &s.P95}, {0.99, &s.P99}} {
			at := p.share * float64(h.total)
			if float64(before) < at && float64(seen) >= at {
				*p.to = edge
			}
		}
		s.Max = edge
	}
	return s
}
