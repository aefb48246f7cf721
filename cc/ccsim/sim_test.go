package ccsim

import (
	"math"
	"reflect"
	"testing"
	"time"

	"fastpacs/cc"
)

const ms = time.Millisecond

// fixed is a controller with a constant window and no pacing.
type fixed struct {
	window int64
	sent   int64
	acked  []int64
	lost   []int64
	rtts   []time.Duration
	times  []int64
	rtt    cc.RTTSource
}

func (f *fixed) OnPacketSent(now, _, _, _ int64, _ bool) {
	f.sent++
	f.times = append(f.times, now)
}
func (f *fixed) OnAckBegin() { f.rtts = append(f.rtts, f.rtt.LatestRTT()) }
func (f *fixed) OnPacketAcked(now, n, _, _ int64) {
	f.acked = append(f.acked, n)
	f.times = append(f.times, now)
}
func (f *fixed) OnPacketLost(n, _, _ int64)  { f.lost = append(f.lost, n) }
func (f *fixed) OnSpuriousLoss(int64)        {}
func (f *fixed) CanSend(inFlight int64) bool { return inFlight < f.window }
func (f *fixed) Window() int64               { return f.window }
func (f *fixed) HasPacingBudget(int64) bool  { return true }
func (f *fixed) NextSend(int64) int64        { return 0 }
func (f *fixed) SetMaxDatagramSize(int64)    {}
func (f *fixed) InSlowStart() bool           { return false }
func (f *fixed) InRecovery() bool            { return false }
func (f *fixed) Snapshot() cc.Snapshot {
	return cc.Snapshot{Window: f.window, RTT: f.rtt.SmoothedRTT()}
}

func (f *fixed) flow(packets int64) Flow {
	return Flow{RTT: 40 * ms, Paced: func(size int64, rtt cc.RTTSource) cc.Controller {
		*f = fixed{window: packets * size, rtt: rtt}
		return f
	}}
}

func run(t *testing.T, c Config) *Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v +- %v", what, got, want, tolerance)
	}
}

// TestFixedWindow holds the path to what arithmetic says of it: 1 MB/s and 40 ms
// hold 40 packets of 1000 bytes.
func TestFixedWindow(t *testing.T) {
	for _, c := range []struct {
		window  int64
		rate    float64 // packets/s
		backlog float64 // packets
	}{
		{20, 20 / 0.041, 0}, // 40 ms, the packet's own 1 ms, and its ACK at once
		{40, 40 / 0.041, 0},
		{60, 1000, 60 - 41},
	} {
		var f fixed
		r := run(t, Config{Link: Link{Rate: 1e6, Buffer: 1e6}, Flows: []Flow{f.flow(c.window)}, Duration: 20 * time.Second})
		near(t, "packets/s", r.Goodput(0, 10*time.Second, 0)/1000, c.rate, c.rate/20)
		near(t, "backlog", r.Backlog(0, 10*time.Second, 0)/1000, c.backlog, 12)
		if c.backlog > 0 {
			near(t, "utilization", r.Utilization(time.Second, 0), 1, 1e-3)
			near(t, "queue", r.QueueDelay(10*time.Second, 0).Seconds(), c.backlog/1000, 0.003)
		}
		if len(f.lost) > 0 || r.Flows[0].Lost > 0 || r.Link[len(r.Link)-1].Dropped > 0 {
			t.Errorf("window %d: losses without a cause", c.window)
		}
	}
}

func TestDropTail(t *testing.T) {
	var f fixed
	const buffer = 10_000
	r := run(t, Config{Link: Link{Rate: 1e6, Buffer: buffer}, Flows: []Flow{f.flow(200)}, Duration: 5 * time.Second})
	last := r.Link[len(r.Link)-1]
	if last.Dropped == 0 || int(last.Dropped) < len(f.lost) || len(f.lost) == 0 {
		t.Errorf("%d packets dropped, %d declared lost", last.Dropped, len(f.lost))
	}
	for _, s := range r.Link {
		if s.PeakQueue > buffer {
			t.Fatalf("%d bytes wait in a buffer of %d", s.PeakQueue, buffer)
		}
	}
	near(t, "utilization", r.Utilization(time.Second, 0), 1, 0.01)
	if n := r.Flows[0].Sent; n != f.sent || n > last.Dropped+r.Flows[0].Samples[len(r.Link)-1].Delivered/1000+200 {
		t.Errorf("%d packets sent, %d dropped, %d delivered", n, last.Dropped, r.Flows[0].Samples[len(r.Link)-1].Delivered/1000)
	}
}

func TestRandomLoss(t *testing.T) {
	var f fixed
	r := run(t, Config{Link: Link{Rate: 10e6, Buffer: 1e6, Loss: 0.02}, Flows: []Flow{f.flow(100)}, Duration: 20 * time.Second, Seed: 7})
	lost := float64(len(f.lost)) / float64(f.sent)
	near(t, "loss", lost, 0.02, 0.002)
	if r.Flows[0].Spurious != 0 {
		t.Errorf("%d spurious losses on a path in order", r.Flows[0].Spurious)
	}
}

// TestAcks looks at the controller's side of a path with nothing in the way.
func TestAcks(t *testing.T) {
	var f fixed
	run(t, Config{Link: Link{Rate: 1e6, Buffer: 1e6}, Flows: []Flow{f.flow(11)}, Duration: 2 * time.Second, Clock: -5e18})
	for i, n := range f.acked {
		if n != int64(i) {
			t.Fatalf("ACK %d is of packet %d", i, n)
		}
	}
	for _, rtt := range f.rtts {
		// 11 packets of 1 ms may wait for each other; ACK delay does not count.
		if rtt < 41*ms || rtt > 52*ms {
			t.Fatalf("RTT %v, want 41 to 52 ms", rtt)
		}
	}
	if len(f.rtts) < len(f.acked)/2 {
		t.Errorf("%d RTT samples from %d packets, want one every two packets", len(f.rtts), len(f.acked))
	}
	for i, at := range f.times {
		if at < -5e18 || at > -5e18+2e9 || i > 0 && at < f.times[i-1] {
			t.Fatalf("event at %d", at)
		}
	}
}

// TestReordering: jitter with reordering makes losses that were none.
func TestReordering(t *testing.T) {
	var f fixed
	c := Config{Link: Link{Rate: 10e6, Buffer: 1e6, Jitter: 5 * ms, Reorder: true}, Flows: []Flow{f.flow(200)}, Duration: 5 * time.Second}
	r := run(t, c)
	if r.Flows[0].Spurious == 0 {
		t.Error("5 ms of reordering declared nothing lost wrongly")
	}
	if share := float64(r.Flows[0].Lost) / float64(r.Flows[0].Sent); share > 0.01 {
		t.Errorf("%.3f declared lost: time, not packets, must decide once reordering was seen", share)
	}
	c.Link.Reorder = false
	if r = run(t, c); r.Flows[0].Lost != 0 {
		t.Errorf("%d losses from jitter in order", r.Flows[0].Lost)
	}
}

// TestBlackout: nothing passes while the link is down; probes find it again.
func TestBlackout(t *testing.T) {
	var f fixed
	r := run(t, Config{
		Link: Link{Rate: 1e6, Buffer: 1e6}, Flows: []Flow{f.flow(50)}, Duration: 20 * time.Second,
		Changes: []Change{{At: 5 * time.Second, Down: true}, {At: 8 * time.Second, Up: true}},
	})
	if got := r.Goodput(0, 5100*ms, 8*time.Second); got != 0 {
		t.Errorf("%.0f bytes/s on a dead link", got)
	}
	near(t, "goodput after", r.Goodput(0, 15*time.Second, 0), 1e6, 1e4)
	if len(f.lost) < 30 {
		t.Errorf("%d packets declared lost, want the window", len(f.lost))
	}
}

func TestChangesOfThePath(t *testing.T) {
	var f fixed
	r := run(t, Config{
		Link: Link{Rate: 1e6, Buffer: 1e6}, Flows: []Flow{f.flow(100)}, Duration: 9 * time.Second,
		Changes: []Change{{At: 3 * time.Second, Rate: 0.5e6}, {At: 6 * time.Second, RTT: 400 * ms}},
	})
	near(t, "goodput", r.Goodput(0, 2*time.Second, 3*time.Second), 1e6, 2e4)
	near(t, "goodput at half the rate", r.Goodput(0, 4*time.Second, 6*time.Second), 0.5e6, 1e4)
	near(t, "goodput on the long path", r.Goodput(0, 7*time.Second, 0), 100e3/0.402, 2e4)
	near(t, "utilization", r.Utilization(4*time.Second, 6*time.Second), 1, 1e-2)
}

func TestAppLimit(t *testing.T) {
	var f fixed
	flow := f.flow(1000)
	flow.AppRate, flow.AppUntil = 0.3e6, 5*time.Second
	r := run(t, Config{Link: Link{Rate: 1e6, Buffer: 1e6}, Flows: []Flow{flow}, Duration: 10 * time.Second})
	near(t, "goodput", r.Goodput(0, time.Second, 5*time.Second), 0.3e6, 1e4)
	near(t, "goodput after", r.Goodput(0, 6*time.Second, 0), 1e6, 1e4)
}

// TestSeed: the same seed gives the same run, another one another.
func TestSeed(t *testing.T) {
	c := Config{
		Link:  Link{Rate: 5e6, Buffer: 50e3, Loss: 0.01, Jitter: 2 * ms, AckGrain: ms},
		Flows: []Flow{{Paced: Law(cc.LawImproved), RTT: 30 * ms}, {Paced: Law(cc.LawStatic), RTT: 60 * ms, Start: time.Second}}, Duration: 5 * time.Second, Seed: 3,
	}
	a, b := run(t, c), run(t, c)
	if !reflect.DeepEqual(a.Flows, b.Flows) || !reflect.DeepEqual(a.Link, b.Link) {
		t.Error("two runs of one seed differ")
	}
	c.Seed++
	if b = run(t, c); reflect.DeepEqual(a.Flows, b.Flows) {
		t.Error("another seed changes nothing")
	}
}

func BenchmarkPaced(b *testing.B) { benchmark(b, Flow{Paced: Law(cc.LawImproved), RTT: 100 * ms}) }

func BenchmarkNS2(b *testing.B) {
	a := Article(2, 200)
	benchmark(b, Flow{NS2: &a, RTT: 100 * ms, Access: 240e6})
}

// benchmark reports the time of one packet, controller included, on the article's
// fast link.
func benchmark(b *testing.B, f Flow) {
	for range b.N {
		r, err := Run(Config{Link: Link{Rate: 120e6, Buffer: 100e6}, Flows: []Flow{f, f, f}, Duration: 10 * time.Second})
		if err != nil {
			b.Fatal(err)
		}
		var packets int64
		for i := range r.Flows {
			packets += r.Flows[i].Sent
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(packets), "ns/packet")
	}
}
