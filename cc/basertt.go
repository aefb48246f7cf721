package cc

import "time"

// baseRTT estimates the round trip without queueing as the lowest RTT of a
// sliding window, so that a longer path is believed in the end (trap 3 of
// doc.go), while a drain or an idle moment within the window keeps it true. A
// higher value is believed at the window's end only if the RTT's floor stood
// still throughout, as a path's does: a queue of others that moves up and down
// must not become the base. In the end, after baseForgets windows, it is believed
// anyway.
type baseRTT struct {
	value int64 // ns; 0 before the first sample
	span  int64 // ns per bucket; 0: samples never expire

	buckets [baseBuckets]int64 // lowest RTT of each, 0 if none
	cur     int
	curAt   int64 // when the current bucket began
	seenAt  int64 // when the value was last set or seen
	started bool
	frozen  bool // the value does not rise: no RTT is free of queueing for now
}

const (
	baseBuckets = 10
	baseForgets = 8 // windows

	floorBuckets = 4
)

func newBaseRTT(window time.Duration) baseRTT { return baseRTT{span: int64(window) / baseBuckets} }

// add takes a sample. near is how far above the value a sample may lie to count
// as seeing the value again: the old value then lives on. (Adopting the sample
// instead would let the base ratchet up with the standing queue.)
func (b *baseRTT) add(now, rtt, near int64) {
	if !b.started {
		b.started, b.curAt = true, now
	}
	b.turn(now)
	if b.value > 0 && rtt > b.value && rtt <= b.value+near {
		rtt = b.value
	}
	if rtt <= b.value {
		b.seenAt = now
	}
	if c := &b.buckets[b.cur]; *c == 0 || rtt < *c {
		*c = rtt
	}
	if b.value == 0 || rtt < b.value {
		b.value, b.seenAt = rtt, now
	}
}

// set starts anew from one value: the path has changed.
func (b *baseRTT) set(now, rtt int64) {
	b.buckets = [baseBuckets]int64{}
	b.buckets[b.cur] = rtt
	b.value, b.seenAt, b.curAt, b.started = rtt, now, now, true
}

// floor is the lowest RTT of the last few complete buckets, and whether it stood
// still, within near, over all of them. It is 0 if one of them has no sample.
func (b *baseRTT) floor(near int64) (lowest int64, still bool) {
	var highest int64
	for i := 1; i <= floorBuckets; i++ {
		v := b.buckets[(b.cur+baseBuckets-i)%baseBuckets]
		if v == 0 {
			return 0, false
		}
		if lowest == 0 || v < lowest {
			lowest = v
		}
		highest = max(highest, v)
	}
	return lowest, highest-lowest <= near
}

// turn drops the buckets that have left the window. A bucket without samples
// keeps nothing; with no sample in the whole window the value stays.
func (b *baseRTT) turn(now int64) {
	if b.span <= 0 || now-b.curAt < b.span {
		return
	}
	steps := (now - b.curAt) / b.span
	b.curAt += steps * b.span
	for range min(steps, baseBuckets) {
		b.cur = (b.cur + 1) % baseBuckets
		b.buckets[b.cur] = 0
	}
	var lowest, highest int64
	for _, v := range b.buckets {
		if v > 0 && (lowest == 0 || v < lowest) {
			lowest = v
		}
		highest = max(highest, v)
	}
	if lowest == 0 || b.frozen && lowest > b.value {
		return
	}
	still := highest-lowest <= max(lowest/32, granularity)
	if lowest <= b.value || still || now-b.seenAt >= baseForgets*baseBuckets*b.span {
		b.value, b.seenAt = lowest, now
	}
}
