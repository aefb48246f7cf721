package ccsim

import (
	"time"

	"fastpacs/cc"
)

// Result holds what a simulation showed, sampled every Config.Sample. The first
// sample is taken one such time after the start.
type Result struct {
	Config Config // as run
	Link   []LinkSample
	Flows  []FlowResult
}

// LinkSample is the bottleneck's state at one time. Counters run from the start.
type LinkSample struct {
	At       time.Duration
	Carried  int64   // bytes that left the link
	Capacity float64 // bytes it could have carried
	Dropped  int64   // packets for which the buffer had no room
	Lost     int64   // packets lost at random or while the link was down

	Queue     int64         // bytes waiting now
	PeakQueue int64         // most bytes waiting since the last sample
	Delay     time.Duration // mean wait of the packets sent since the last sample
	PeakDelay time.Duration // wait behind PeakQueue at the rate of now

	waits  int64
	waited float64 // ns
}

// FlowResult is one flow's course.
type FlowResult struct {
	Samples []FlowSample

	Sent, Lost, Spurious int64 // packets sent, declared lost, and declared so wrongly
	// Spins counts the times at which the controller refused a packet and named no
	// later time for it: quic-go would have used up a processor there.
	Spins int
}

// FlowSample is a flow's state at one time.
type FlowSample struct {
	Running   bool  // started before, and not stopped before
	Delivered int64 // bytes that reached the receiver since the start
	Queued    int64 // bytes of the flow's that wait at the bottleneck
	cc.Snapshot
}

// Rate is the window over the smoothed RTT, in bytes per second: the rate as the
// article's figures show it. 0 before the first RTT sample.
func (s *FlowSample) Rate() float64 {
	if !s.Running || s.RTT <= 0 {
		return 0
	}
	return float64(s.Window) / s.RTT.Seconds()
}

func newResult(c Config) *Result {
	n := int(c.Duration / c.Sample)
	r := &Result{Config: c, Link: make([]LinkSample, 0, n), Flows: make([]FlowResult, len(c.Flows))}
	for i := range r.Flows {
		r.Flows[i].Samples = make([]FlowSample, 0, n)
	}
	return r
}

func (r *Result) add(now int64, s *sim) {
	t := &s.link.total
	sample := *t
	sample.At = time.Duration(now)
	sample.Queue = s.link.queued
	if t.waits > 0 {
		sample.Delay = time.Duration(t.waited / float64(t.waits))
	} else if s.link.busy {
		sample.Delay = time.Duration(float64(s.link.queued) * 1e9 / s.link.config.Rate)
	}
	sample.PeakDelay = time.Duration(float64(t.PeakQueue) * 1e9 / s.link.config.Rate)
	r.Link = append(r.Link, sample)
	t.PeakQueue, t.waits, t.waited = s.link.queued, 0, 0
	for i, f := range s.flows {
		r.Flows[i].Samples = append(r.Flows[i].Samples, FlowSample{
			Running: f.runs(now), Delivered: f.receiver.delivered, Queued: f.queued,
			Snapshot: f.sender.snapshot(),
		})
	}
}
