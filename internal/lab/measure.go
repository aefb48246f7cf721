package lab

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"fastpacs/cc"
	"fastpacs/internal/selfsign"
	"fastpacs/proxy/quicnet"
)

// Options are what a run of a scenario can vary.
type Options struct {
	Law cc.Law // under test; "": cc.LawImproved
	// New, if not nil, makes the sending controller of each flow under test
	// instead of Law; it may return nil for quic-go's own.
	New func(flow int, maxDatagramSize int64, rtt cc.RTTSource) cc.Controller
	// Label is Result.CC, "": the law's name.
	Label string
	Seed  uint64
	// Duration cuts the scenario short, 0: as it is. Bars of a run that was cut
	// mean little.
	Duration time.Duration
	// PacketSize is the UDP payload of a full packet in bytes, 0: 1280.
	PacketSize uint16

	Trace      io.Writer     // nil: none
	TraceEvery time.Duration // 0: 100 ms
}

func (o Options) withDefaults() Options {
	if o.Law == "" {
		o.Law = cc.LawImproved
	}
	if o.Label == "" {
		o.Label = string(o.Law)
	}
	if o.PacketSize == 0 {
		o.PacketSize = 1280
	}
	if o.TraceEvery == 0 {
		o.TraceEvery = 100 * time.Millisecond
	}
	return o
}

// Measure runs a scenario once by the clock of its caller: the wall's, or that
// of a synctest bubble. An error means that there was nothing to measure; a
// connection that fails is a result.
func Measure(ctx context.Context, s Scenario, o Options) (Result, error) {
	o = o.withDefaults()
	if o.Duration > 0 && o.Duration < s.Duration {
		s = s.cut(o.Duration)
	}
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	network := NewNetwork(o.Seed)
	defer network.Close()
	path, flows, err := s.build(network, o)
	if err != nil {
		return Result{}, fmt.Errorf("lab: scenario %s: %w", s.Name, err)
	}
	serverTLS, clientTLS, err := tlsConfigs()
	if err != nil {
		return Result{}, fmt.Errorf("lab: scenario %s: %w", s.Name, err)
	}
	runCtx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for _, f := range flows {
		running.Go(func() { f.run(runCtx, serverTLS, clientTLS) })
	}
	record := sampleRun(ctx, &s, o, path, flows)
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("lab: scenario %s: %w", s.Name, context.Cause(ctx))
	}
	res := record.result()
	res.CC, res.Seed = o.Label, o.Seed
	if o.Duration == 0 {
		res.Judge(s.bars())
	}
	return res, nil
}

// cut returns the scenario ended early; it measures the second half if the end
// of its own window is lost.
func (s Scenario) cut(d time.Duration) Scenario {
	s.Duration = d
	if s.To > d || s.From >= d {
		s.From, s.To = 0, 0
	}
	var flows []Flow
	for _, f := range s.Flows {
		if f.Start < d {
			flows = append(flows, f)
		}
	}
	s.Flows = flows
	return s
}

// build makes the links and end points of a scenario.
func (s *Scenario) build(n *Network, o Options) (*Path, []*flow, error) {
	p := s.Path
	bottleneck, err := n.NewLink(LinkConfig{
		Rate: p.Rate, Buffer: p.Buffer, Delay: p.RTT / 2, Loss: p.Loss,
		Jitter: p.Jitter, JitterEpoch: p.JitterEpoch, Reorder: p.Reorder,
	})
	if err != nil {
		return nil, nil, err
	}
	path := &Path{Bottleneck: bottleneck}
	var flows []*flow
	t0 := time.Now()
	clock := newClock(t0, o.Seed)
	for i, spec := range s.flows() {
		back, err := n.NewLink(LinkConfig{Delay: spec.RTT - p.RTT/2, Grain: p.AckGrain})
		if err != nil {
			return nil, nil, err
		}
		path.Returns = append(path.Returns, back)
		f := &flow{Flow: spec, tie: time.Duration(i) * time.Microsecond, t0: t0, cfg: o.quicConfig(i, spec, clock)}
		serverAddr, clientAddr := flowAddrs(i)
		if f.server, err = n.Listen(serverAddr, bottleneck); err != nil {
			return nil, nil, err
		}
		if f.client, err = n.Listen(clientAddr, back); err != nil {
			return nil, nil, err
		}
		flows = append(flows, f)
	}
	return path, flows, nil
}

// quicConfig is the product's default, with packets of one size: end points
// that are no UDP sockets get no path MTU discovery.
func (o Options) quicConfig(i int, f Flow, clock *clock) quicnet.Config {
	c := quicnet.DefaultConfig()
	c.InitialPacketSize, c.DisablePathMTUDiscovery = o.PacketSize, true
	c.Law = o.Law
	if f.Law != "" {
		c.Law = f.Law
	}
	make := func(maxDatagramSize int64, rtt cc.RTTSource) cc.Controller {
		return cc.New(c.Law, maxDatagramSize, rtt)
	}
	if o.New != nil && f.Law == "" {
		make = func(maxDatagramSize int64, rtt cc.RTTSource) cc.Controller {
			return o.New(i, maxDatagramSize, rtt)
		}
	} else if c.Law == cc.LawReno {
		return c
	}
	c.NewController = func(_ bool, maxDatagramSize int64, rtt cc.RTTSource) cc.Controller {
		return clock.fit(make(maxDatagramSize, rtt))
	}
	return c
}

// tlsConfigs returns what a server and a client that trusts it need. The
// signatures are Ed25519's because those are all of one length: ECDSA's vary,
// and so would the size of the handshake from run to run.
func tlsConfigs() (server, client *tls.Config, err error) {
	addr, _ := flowAddrs(0)
	host := addr.Addr().String()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)) // it guards nothing
	cert, err := selfsign.NewWithKey(key, time.Now(), 24*time.Hour, host)
	if err != nil {
		return nil, nil, err
	}
	protos := []string{alpn}
	return &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: protos},
		&tls.Config{RootCAs: selfsign.Pool(cert), ServerName: host, NextProtos: protos}, nil
}

// sampleRun watches a run until its end and fires its events.
func sampleRun(ctx context.Context, s *Scenario, o Options, path *Path, flows []*flow) *Record {
	t0 := flows[0].t0
	from, to := s.window()
	series := newSeries(len(flows))
	tr := tracer{w: o.Trace, every: o.TraceEvery}
	record := &Record{Series: series, Scenario: s, Flows: s.flows(), PacketSize: int(o.PacketSize)}
	events := s.Events
	for now := time.Duration(0); now < s.Duration; {
		for len(events) > 0 && events[0].At <= now {
			events[0].Do(path)
			tr.event(now, events[0].Name)
			events = events[1:]
		}
		if now <= from {
			path.Bottleneck.TakeHistogram() // let go of what was before
		}
		now += Tick
		if !sleep(ctx, time.Until(t0.Add(now))) {
			return record
		}
		snaps := make(map[int]cc.Snapshot, len(flows))
		received := make([]int64, len(flows))
		for i, f := range flows {
			received[i] = f.received.Load()
			if snap, ok := f.snapshot(); ok {
				snaps[i] = snap
			}
		}
		series.add(sample{
			rate: path.Bottleneck.Config().Rate, link: path.Bottleneck.Take(),
			returned: path.Returns[0].Take().Packets, received: received, snapshots: snaps,
		})
		if now >= to && record.Queue == nil {
			record.Queue = path.Bottleneck.TakeHistogram()
		}
		tr.tick(now, series, snaps, int(o.PacketSize))
	}
	for i, f := range flows {
		f.mu.Lock()
		record.Objects = append(record.Objects, f.objects)
		err := f.err
		f.mu.Unlock()
		if err == nil && f.stalled(series, i) {
			err = errStalled
		}
		if err != nil {
			record.Errors = append(record.Errors, fmt.Sprintf("flow %d: %v", i, err))
		}
	}
	return record
}

var errStalled = errors.New("nothing delivered in its last 5 seconds")

// stalled reports whether a flow delivered nothing in its last 5 seconds.
func (f *flow) stalled(s *Series, i int) bool {
	const idle = 5 * time.Second
	from := f.Stop - idle
	return from > f.Start && s.Goodput(i, from, f.Stop) == 0
}
