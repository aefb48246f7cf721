package ccsim

import (
	"math/rand/v2"
	"time"

	"fastpacs/cc"
)

// sender is the sending side of a flow.
type sender interface {
	start(now int64)
	// stop ends the sending of new packets.
	stop()
	// onAck takes an ACK of packets, in ascending order.
	onAck(now int64, numbers []int64, delay int64)
	snapshot() cc.Snapshot
}

// flow is one sender with its receiver.
type flow struct {
	sim      *sim
	config   Flow
	delay    int64 // half the round trip, ns
	sender   sender
	receiver *receiver

	queued int64 // bytes waiting at the bottleneck

	// The sender's own link, if it has one.
	access     ring[packet]
	accessFree int64
	accessDone timer

	starting, stopping timer

	sentPackets, lostPackets, spurious int64
}

// runs says whether the flow has just been running: a sample describes the time
// that ends with it.
func (f *flow) runs(now int64) bool {
	return now > int64(f.config.Start) && (f.config.Stop == 0 || now <= int64(f.config.Stop))
}

// emit puts a packet on its way to the bottleneck.
func (f *flow) emit(now, number, size int64) {
	p := packet{flow: f, number: number, size: size}
	if f.config.Access == 0 {
		f.sim.link.enqueue(now, p)
		return
	}
	if f.config.Overhead > 0 {
		now += f.sim.link.random.Int64N(int64(f.config.Overhead) + 1)
	}
	f.accessFree = max(f.accessFree, now) + int64(float64(size)*1e9/f.config.Access)
	p.at = f.accessFree
	f.access.push(p)
	if f.access.len() == 1 {
		f.sim.events.set(&f.accessDone, p.at)
	}
}

func (f *flow) leaveAccess(now int64) {
	f.sim.link.enqueue(now, f.access.pop())
	if f.access.len() > 0 {
		f.sim.events.set(&f.accessDone, f.access.at(0).at)
	}
}

// sim is a simulation while it runs.
type sim struct {
	config Config
	events *events
	link   *link
	flows  []*flow
	result *Result

	sampling timer
	changing timer
	changed  int // changes made
}

// Run simulates c. The error is that of Config.Validate.
func Run(c Config) (*Result, error) {
	if c.Sample == 0 {
		c.Sample = 10 * time.Millisecond
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	s := &sim{config: c, events: &events{}}
	random := rand.New(rand.NewPCG(c.Seed, 0x66617374)) //nolint:gosec // must be reproducible
	s.link = newLink(c.Link, s.events, random)
	for i := range c.Flows {
		s.flows = append(s.flows, s.newFlow(c.Flows[i]))
	}
	s.result = newResult(c)
	s.sampling = newTimer(s.sample)
	s.events.set(&s.sampling, int64(c.Sample))
	s.changing = newTimer(s.change)
	if len(c.Changes) > 0 {
		s.events.set(&s.changing, int64(c.Changes[0].At))
	}
	s.events.run(int64(c.Duration))
	s.finish()
	return s.result, nil
}

func (s *sim) newFlow(config Flow) *flow {
	if config.Packet == 0 {
		config.Packet = 1000
	}
	f := &flow{sim: s, config: config, delay: int64(config.RTT) / 2}
	f.accessDone = newTimer(f.leaveAccess)
	if config.Paced != nil {
		f.sender = newPaced(f, config.Paced, config.Packet)
		f.receiver = newReceiver(f, packetsPerAck, int64(s.config.Link.AckGrain))
	} else {
		f.sender = newNS2Sender(f, *config.NS2, config.Packet)
		f.receiver = newReceiver(f, 1, int64(s.config.Link.AckGrain))
	}
	f.starting = newTimer(f.sender.start)
	s.events.set(&f.starting, int64(config.Start))
	if config.Stop > 0 {
		f.stopping = newTimer(func(int64) { f.sender.stop() })
		s.events.set(&f.stopping, int64(config.Stop))
	}
	return f
}

func (s *sim) change(now int64) {
	c := s.config.Changes[s.changed]
	s.changed++
	if c.Rate > 0 {
		s.link.setRate(now, c.Rate)
	}
	if c.RTT > 0 {
		for _, f := range s.flows {
			f.delay = int64(c.RTT) / 2
		}
	}
	if c.Down != c.Up {
		s.link.count(now)
		s.link.down = c.Down
	}
	if s.changed < len(s.config.Changes) {
		s.events.set(&s.changing, int64(s.config.Changes[s.changed].At))
	}
}

func (s *sim) sample(now int64) {
	s.link.count(now)
	s.result.add(now, s)
	s.events.set(&s.sampling, now+int64(s.config.Sample))
}

// finish closes the totals.
func (s *sim) finish() {
	for i, f := range s.flows {
		r := &s.result.Flows[i]
		r.Sent, r.Lost, r.Spurious = f.sentPackets, f.lostPackets, f.spurious
		if p, ok := f.sender.(*paced); ok {
			r.Spins = p.spins
		}
	}
}
