package lab

import (
	"fmt"
	"slices"
	"time"

	"fastpacs/cc"
)

// Scenario is a path, what it goes through, and who uses it. All flows share the
// bottleneck in the direction of the data; each has a return link of its own.
//
//	server 0 ──┐  bottleneck: Rate, Buffer, RTT/2, jitter, loss   ┌── client 0
//	server 1 ──┼──────────────────────────────────────────────────┼── client 1
//	           └◄─────── return link i: RTT(i) - RTT/2 ───────────┘
type Scenario struct {
	Name  string
	About string // one line: link and what happens
	Path  PathConfig

	Flows  []Flow  // nil: one flow of the law under test
	Events []Event // by ascending At

	Duration time.Duration
	From, To time.Duration // what is measured; To 0: until the end; both 0: the second half

	Seeds int // runs with different seeds that make one result, 0: 1

	// Bars are what the production law is held to.
	Bars []Bar
	// Extra adds figures of this scenario's own to a result, nil: none.
	Extra func(*Record) map[string]Figure
}

// PathConfig is the path at the start of a scenario.
type PathConfig struct {
	Rate   float64       // bit/s
	RTT    time.Duration // of a flow that names none, at least 0; half of it lies behind the bottleneck
	Buffer int           // bytes

	Loss        float64       // see LinkConfig
	Jitter      time.Duration // see LinkConfig
	JitterEpoch time.Duration // see LinkConfig
	Reorder     bool          // see LinkConfig
	AckGrain    time.Duration // the return links' LinkConfig.Grain
}

// Flow is one connection that fetches from its server.
type Flow struct {
	Law         cc.Law        // "": the law under test; another one makes the flow cross traffic
	Start, Stop time.Duration // Stop 0: at the end
	RTT         time.Duration // 0: the path's; at least half of the path's
	Object      int64         // bytes of one request's answer; 0: one endless answer
	Pause       time.Duration // between the last byte and the next request
}

// Event changes the path while a scenario runs.
type Event struct {
	At   time.Duration
	Name string // for the trace
	Do   func(*Path)
}

// Path gives events a hold on a scenario's links.
type Path struct {
	Bottleneck *Link
	Returns    []*Link // one a flow
}

// SetRate gives the bottleneck a new rate, in bit/s.
func (p *Path) SetRate(rate float64) {
	p.Bottleneck.Change(func(c *LinkConfig) { c.Rate = rate })
}

// SetRTT moves every flow to a path with a new RTT, half of it each way. A
// datagram on the shorter path overtakes those under way on the longer one.
func (p *Path) SetRTT(rtt time.Duration) {
	p.each(func(c *LinkConfig) { c.Delay, c.Reorder = rtt/2, true })
}

// SetDown cuts both directions, or joins them again.
func (p *Path) SetDown(down bool) {
	p.each(func(c *LinkConfig) { c.Down = down })
}

func (p *Path) each(f func(*LinkConfig)) {
	p.Bottleneck.Change(f)
	for _, l := range p.Returns {
		l.Change(f)
	}
}

// Validate reports the first thing that makes no sense.
func (s *Scenario) Validate() error {
	bad := func(field string, value any, allowed string) error {
		return fmt.Errorf("lab: scenario %s: %s is %v: must be %s", s.Name, field, value, allowed)
	}
	if s.Path.Rate <= 0 {
		return bad("Path.Rate", s.Path.Rate, "above 0")
	}
	if s.Duration <= 0 {
		return bad("Duration", s.Duration, "above 0")
	}
	if from, to := s.window(); from < 0 || from >= to || to > s.Duration {
		return bad("From, To", []time.Duration{s.From, s.To}, "an interval within Duration")
	}
	for i, f := range s.Flows {
		switch {
		case f.Start < 0 || f.Start >= s.Duration:
			return bad(fmt.Sprintf("Flows[%d].Start", i), f.Start, "within Duration")
		case f.Stop != 0 && f.Stop <= f.Start:
			return bad(fmt.Sprintf("Flows[%d].Stop", i), f.Stop, "0 or after Start")
		case f.RTT != 0 && f.RTT < s.Path.RTT/2:
			return bad(fmt.Sprintf("Flows[%d].RTT", i), f.RTT, "0 or at least half of Path.RTT")
		}
	}
	if !slices.IsSortedFunc(s.Events, func(a, b Event) int { return int(a.At - b.At) }) {
		return bad("Events", len(s.Events), "by ascending At")
	}
	return nil
}

// flows returns the flows with defaults filled in.
func (s *Scenario) flows() []Flow {
	flows := slices.Clone(s.Flows)
	if flows == nil {
		flows = make([]Flow, 1)
	}
	for i := range flows {
		if flows[i].RTT == 0 {
			flows[i].RTT = s.Path.RTT
		}
		if flows[i].Stop == 0 || flows[i].Stop > s.Duration {
			flows[i].Stop = s.Duration
		}
	}
	return flows
}

// window returns what is measured.
func (s *Scenario) window() (from, to time.Duration) {
	if s.To == 0 {
		if s.From == 0 {
			return s.Duration / 2, s.Duration
		}
		return s.From, s.Duration
	}
	return s.From, s.To
}
