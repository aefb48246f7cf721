package udplink

import (
	"math"
	"strings"
	"testing"
	"time"
)

// in a test, one packet of a direction whose times are made up
func offer(d *direction, at time.Duration, wire int) (due time.Duration, ok bool) {
	ns, ok := d.admit(int64(at), wire-headerBytes)
	return time.Duration(ns), ok
}

func TestTurnOnTheWire(t *testing.T) {
	// 1000 bytes take 1 ms at 8 Mb/s.
	d := newDirection(Direction{Rate: 8e6, Delay: 40 * time.Millisecond, Buffer: 3000})
	const ms = time.Millisecond
	for i, c := range []struct {
		at  time.Duration
		due time.Duration // 0: dropped
	}{
		{10 * ms, 51 * ms}, // idle link: transmission and delay
		{10 * ms, 52 * ms}, // waits for the first
		{10 * ms, 53 * ms}, // fills the buffer
		{10 * ms, 0},
		{10*ms + ms/2, 0}, // half a packet of room
		{11 * ms, 54 * ms},
		{10 * ms, 0}, // a late reader: taken as of 11 ms
		{100 * ms, 141 * ms},
	} {
		due, ok := offer(d, c.at, 1000)
		if ok != (c.due != 0) || due != c.due {
			t.Errorf("packet %d at %v: due %v, %v; want %v", i, c.at, due, ok, c.due)
		}
	}
	got := d.snapshot(int64(200 * ms)).Since(DirectionSnapshot{})
	if got.OfferedPackets != 8 || got.SentPackets != 5 || got.TailDrops != 3 || got.Lost != 0 || got.LossShare() != 3.0/8 {
		t.Errorf("interval %+v", got)
	}
	// Waits of 0, 1, 2, 2 and 0 ms.
	if got.Queueing.Mean != ms || got.Queueing.Max < 2*ms || got.Queueing.Max > 2*ms*33/32 {
		t.Errorf("queueing %+v", got.Queueing)
	}
}

func TestUnlimited(t *testing.T) {
	d := newDirection(Direction{Delay: time.Second})
	for range 1000 {
		if due, ok := offer(d, time.Minute, 1500); !ok || due != time.Minute+time.Second {
			t.Fatalf("due %v, %v", due, ok)
		}
	}
	if got := d.snapshot(int64(2 * time.Minute)).Since(DirectionSnapshot{}); got.Utilization != 0 || got.WireBytes != 1.5e6 {
		t.Errorf("interval %+v", got)
	}
}

// TestUtilization takes snapshots in the middle of transmissions.
func TestUtilization(t *testing.T) {
	const ms = time.Millisecond
	d := newDirection(Direction{Rate: 8e6})
	zero := d.snapshot(0)
	for range 10 {
		offer(d, 0, 1000) // 10 ms of work
	}
	early := d.snapshot(int64(2*ms + ms/2))
	if got := early.Since(zero); math.Abs(got.Utilization-1) > 1e-9 || math.Abs(got.WireBytes-2500) > 1e-6 {
		t.Errorf("busy: %+v", got)
	}
	late := d.snapshot(int64(20 * ms))
	if got := late.Since(early); math.Abs(got.WireBytes-7500) > 1e-6 || math.Abs(got.Utilization-7.5/17.5) > 1e-9 {
		t.Errorf("then idle: %+v", got)
	}
}

// TestRate: what a saturated link carries is the rate, to the byte, whatever the
// packet sizes.
func TestRate(t *testing.T) {
	const rate = 97.3e6
	d := newDirection(Direction{Rate: rate, Buffer: 100_000})
	var admitted, at int64
	for i := range 200_000 {
		at += 10_000 // ns; 60 Mb/s to 1.2 Gb/s offered
		wire := 100 + i*7919%1400
		if _, ok := offer(d, time.Duration(at), wire); ok {
			admitted += int64(wire)
		}
	}
	got := d.snapshot(at).Since(DirectionSnapshot{})
	if math.Abs(got.Utilization-1) > 0.001 {
		t.Errorf("utilization %v of a saturated link", got.Utilization)
	}
	if waiting := float64(admitted) - got.WireBytes; waiting < 0 || waiting > 100_000 {
		t.Errorf("%v bytes wait in a buffer of 100000", waiting)
	}
}

func TestLoss(t *testing.T) {
	lossy := func(seed uint64) (lost []int, got Interval) {
		d := newDirection(Direction{Rate: 1e9, Loss: 0.01, Seed: seed})
		for i := range 100_000 {
			if _, ok := offer(d, time.Duration(i)*20*time.Microsecond, 1000); !ok {
				lost = append(lost, i)
			}
		}
		return lost, d.snapshot(int64(time.Hour)).Since(DirectionSnapshot{})
	}
	a, got := lossy(1)
	// Five standard deviations.
	if n := float64(len(a)); math.Abs(n-1000) > 5*math.Sqrt(1000) || got.Lost != int64(len(a)) {
		t.Errorf("%v of 100000 lost at 0.01; counted %d", n, got.Lost)
	}
	if got.WireBytes != 1e8 || got.TailDrops != 0 {
		t.Errorf("lost packets take their turn on the wire too: %+v", got)
	}
	if b, _ := lossy(1); len(b) != len(a) || b[0] != a[0] {
		t.Error("the same seed lost other packets")
	}
	if b, _ := lossy(2); len(b) == len(a) && b[0] == a[0] {
		t.Error("another seed lost the same packets")
	}
}

func TestRing(t *testing.T) {
	var r ring
	pushed, popped := int64(0), int64(0)
	for round := range 20 {
		for range 300 + round*100 {
			r.push(packet{due: pushed})
			pushed++
		}
		for range 250 + round*90 {
			if got := r.front().due; got != popped {
				t.Fatalf("packet %d in place of %d", got, popped)
			}
			r.pop()
			popped++
		}
	}
	if r.len != int(pushed-popped) {
		t.Errorf("%d left of %d", r.len, pushed-popped)
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for i := range 1000 {
		h.add(int64(i+1)*int64(time.Millisecond), 2)
	}
	got := h.spread()
	near := func(name string, d, want time.Duration) {
		if d < want || d > want*33/32 {
			t.Errorf("%s is %v, want %v or up to 1/32 more", name, d, want)
		}
	}
	near("mean", got.Mean, 500*time.Millisecond+500*time.Microsecond)
	near("95th percentile", got.P95, 950*time.Millisecond)
	near("99th percentile", got.P99, 990*time.Millisecond)
	near("maximum", got.Max, time.Second)

	earlier := h
	h.add(int64(3*time.Second), 1)
	h.sub(&earlier)
	if got := h.spread(); got.Mean != 3*time.Second {
		t.Errorf("the difference holds %+v, want 3s alone", got)
	}
	if got := new(histogram).spread(); got != (Spread{}) {
		t.Errorf("an empty histogram has %+v", got)
	}
	// Every duration lies in its bucket, from nothing to more than there is.
	for ns := int64(1); ns < int64(30*time.Minute); ns += 1 + ns/50 {
		i := bucket(ns)
		if up := int64(upperEdge(i)); ns > up || i > 0 && ns <= int64(upperEdge(i-1)) {
			t.Fatalf("%v is in bucket %d, which ends at %v", time.Duration(ns), i, upperEdge(i))
		}
	}
	if bucket(-5) != 0 || bucket(math.MaxInt64) != histogramSize-1 {
		t.Error("extremes are not in the outer buckets")
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, ""},
		{Config{Up: Direction{Rate: 1e8, Delay: time.Second, Buffer: 1500, Loss: 0.5}}, ""},
		{Config{MaxClients: -1}, "MaxClients is -1"},
		{Config{Up: Direction{Rate: 100}}, "Up.Rate is 100 bit/s: must be 0 or 1e4 to 1e10"},
		{Config{Up: Direction{Rate: math.NaN()}}, "Up.Rate is NaN"},
		{Config{Down: Direction{Delay: -1}}, "Down.Delay is -1ns"},
		{Config{Down: Direction{Buffer: 1000}}, "Down.Buffer is 1000"},
		{Config{Down: Direction{Loss: 1}}, "Down.Loss is 1: must be 0 to below 1"},
		{Config{Down: Direction{Loss: math.NaN()}}, "Down.Loss is NaN"},
	} {
		err := c.cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: error %v, want %q", c.cfg, err, c.want)
		}
	}
}
