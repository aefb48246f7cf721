package ccsim

import (
	"time"

	"fastpacs/cc"
)

// rttEstimate is the RTT estimate of RFC 9002 section 5.3, in ns.
type rttEstimate struct {
	min, latest, smoothed, deviation int64
}

var _ cc.RTTSource = (*rttEstimate)(nil)

func (r *rttEstimate) MinRTT() time.Duration      { return time.Duration(r.min) }
func (r *rttEstimate) LatestRTT() time.Duration   { return time.Duration(r.latest) }
func (r *rttEstimate) SmoothedRTT() time.Duration { return time.Duration(r.smoothed) }

func (r *rttEstimate) update(sample, ackDelay int64) {
	if r.min == 0 || sample < r.min {
		r.min = sample
	}
	if sample-r.min >= ackDelay {
		sample -= ackDelay
	}
	first := r.latest == 0
	r.latest = sample
	if first {
		r.smoothed, r.deviation = sample, sample/2
		return
	}
	off := r.smoothed - sample
	r.deviation = (3*r.deviation + max(off, -off)) / 4
	r.smoothed = (7*r.smoothed + sample) / 8
}

// pto is the probe timeout, RFC 9002 section 6.2.1.
func (r *rttEstimate) pto() int64 {
	if r.latest == 0 {
		return 2 * initialRTT
	}
	return r.smoothed + max(4*r.deviation, granularity) + maxAckDelay
}
