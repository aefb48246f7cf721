package ccsim

import (
	"fmt"
	"math"
	"time"

	"fastpacs/cc"
)

// Config is one simulation.
type Config struct {
	Link    Link
	Flows   []Flow
	Changes []Change // by ascending At

	// Duration is the virtual time to simulate.
	Duration time.Duration
	// Sample is the time between two samples of the result. 0: 10 ms.
	Sample time.Duration
	// Seed of the random numbers: loss, jitter.
	Seed uint64
	// Clock is the transport time, in ns, at which the simulation starts.
	// Controllers must not care, even for large negative values.
	Clock int64
}

// Link is the bottleneck.
type Link struct {
	Rate   float64 // bytes per second
	Buffer int64   // bytes that may wait, besides the packet being sent
	Loss   float64 // share of packets lost at random behind the queue, 0 to 1

	// Jitter delays packets behind the queue by up to so much, drawn anew every
	// JitterEpoch, or for each packet if that is 0. Packets stay in order unless
	// Reorder is set.
	Jitter, JitterEpoch time.Duration
	Reorder             bool

	// AckGrain holds ACKs back to the next multiple of it, as radio links do.
	AckGrain time.Duration
}

// Flow is one sender and its receiver. Exactly one of Paced and NS2 is set.
type Flow struct {
	// Paced makes the controller of a flow that is sent as quic-go does.
	Paced func(datagram int64, rtt cc.RTTSource) cc.Controller
	// NS2 makes the flow an ns-2 FAST sender.
	NS2 *NS2

	RTT    time.Duration // without queueing
	Packet int64         // bytes. 0: 1000, as in the article
	Access float64       // rate of the sender's own link, bytes per second. 0: unlimited
	// Overhead delays each packet by a random time up to so much before it enters
	// the sender's own link, against the phase effects of flows in lockstep (as
	// ns-2's overhead_). It needs Access.
	Overhead time.Duration

	Start time.Duration
	Stop  time.Duration // 0: at the end

	// AppRate limits what the application offers, in bytes per second, until
	// AppUntil (0: always). 0: unlimited.
	AppRate  float64
	AppUntil time.Duration
}

// Law makes controllers of a law by its name, for Flow.Paced.
func Law(law cc.Law) func(int64, cc.RTTSource) cc.Controller {
	return func(datagram int64, rtt cc.RTTSource) cc.Controller { return cc.New(law, datagram, rtt) }
}

// Change alters the path during the simulation. Zero fields leave things as they
// are.
type Change struct {
	At   time.Duration
	Rate float64       // new rate of the link, bytes per second
	RTT  time.Duration // new round trip of all flows
	Down bool          // from here on the link delivers nothing, in neither direction
	Up   bool          // it delivers again
}

// Limits that keep a simulation finite.
const (
	maxFlows    = 1000
	maxDuration = 24 * time.Hour
	maxPacket   = 65507 // the largest UDP payload of IPv4
)

// Validate names the first field that cannot be simulated.
func (c *Config) Validate() error {
	l := &c.Link
	switch {
	case !(l.Rate >= 1e3 && l.Rate <= 1e11):
		return fmt.Errorf("ccsim: Link.Rate is %v: must be 1e3 to 1e11 bytes per second", l.Rate)
	case l.Buffer < 0:
		return fmt.Errorf("ccsim: Link.Buffer is %d: must be at least 0 bytes", l.Buffer)
	case !(l.Loss >= 0 && l.Loss <= 1):
		return fmt.Errorf("ccsim: Link.Loss is %v: must be 0 to 1", l.Loss)
	case l.Jitter < 0 || l.JitterEpoch < 0 || l.AckGrain < 0:
		return fmt.Errorf("ccsim: Link.Jitter, JitterEpoch, AckGrain are %v, %v, %v: must be at least 0", l.Jitter, l.JitterEpoch, l.AckGrain)
	case c.Duration <= 0 || c.Duration > maxDuration:
		return fmt.Errorf("ccsim: Duration is %v: must be above 0, at most %v", c.Duration, maxDuration)
	case c.Sample < 0 || c.Sample > 0 && c.Duration/c.Sample > 10e6:
		return fmt.Errorf("ccsim: Sample is %v: must be at least 0, and at most 10 million per run", c.Sample)
	case c.Clock > math.MaxInt64-int64(2*maxDuration):
		return fmt.Errorf("ccsim: Clock is %d: must leave room for %v", c.Clock, 2*maxDuration)
	case len(c.Flows) < 1 || len(c.Flows) > maxFlows:
		return fmt.Errorf("ccsim: %d Flows: must be 1 to %d", len(c.Flows), maxFlows)
	}
	for i := range c.Flows {
		if err := c.Flows[i].validate(); err != nil {
			return fmt.Errorf("ccsim: Flows[%d]: %w", i, err)
		}
	}
	for i, ch := range c.Changes {
		switch {
		case i > 0 && ch.At < c.Changes[i-1].At || ch.At < 0:
			return fmt.Errorf("ccsim: Changes[%d].At is %v: must be ascending from 0", i, ch.At)
		case ch.Rate != 0 && !(ch.Rate >= 1e3 && ch.Rate <= 1e11):
			return fmt.Errorf("ccsim: Changes[%d].Rate is %v: must be 1e3 to 1e11 bytes per second", i, ch.Rate)
		case ch.RTT < 0:
			return fmt.Errorf("ccsim: Changes[%d].RTT is %v: must be at least 0", i, ch.RTT)
		}
	}
	return nil
}

func (f *Flow) validate() error {
	switch {
	case (f.Paced == nil) == (f.NS2 == nil):
		return fmt.Errorf("exactly one of Paced and NS2 must be set")
	case f.RTT <= 0 || f.RTT > time.Minute:
		return fmt.Errorf("its RTT is %v: must be above 0, at most 1m", f.RTT)
	case f.Packet < 0 || f.Packet > maxPacket:
		return fmt.Errorf("its Packet is %d: must be 0 to %d bytes", f.Packet, maxPacket)
	case f.Access != 0 && !(f.Access >= 1e3 && f.Access <= 1e12):
		return fmt.Errorf("its Access is %v: must be 0, or 1e3 to 1e12 bytes per second", f.Access)
	case f.Overhead < 0 || f.Overhead > 0 && f.Access == 0:
		return fmt.Errorf("its Overhead is %v: must be at least 0, and 0 without Access", f.Overhead)
	case f.Start < 0 || f.Stop != 0 && f.Stop <= f.Start:
		return fmt.Errorf("its Start and Stop are %v and %v: Stop must be 0 or above Start", f.Start, f.Stop)
	case f.AppRate != 0 && !(f.AppRate >= 1 && f.AppRate <= 1e12):
		return fmt.Errorf("its AppRate is %v: must be 0, or 1 to 1e12 bytes per second", f.AppRate)
	case f.AppUntil < 0:
		return fmt.Errorf("its AppUntil is %v: must be at least 0", f.AppUntil)
	}
	if f.NS2 != nil {
		return f.NS2.Validate()
	}
	return nil
}
