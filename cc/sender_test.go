package cc

import (
	"math"
	"testing"
	"time"
)

// fakeRTT is an RTTSource that says what a test tells it to.
type fakeRTT struct{ latest time.Duration }

func (f *fakeRTT) MinRTT() time.Duration      { return f.latest }
func (f *fakeRTT) LatestRTT() time.Duration   { return f.latest }
func (f *fakeRTT) SmoothedRTT() time.Duration { return f.latest }

const datagram = 1280

// driver sends and acknowledges packets as a transport would.
type driver struct {
	c        Controller
	rtt      *fakeRTT
	now      int64
	next     int64
	inFlight int64
	sentAt   map[int64]int64
}

func drive(t testing.TB, law Law, start int64) *driver {
	t.Helper()
	rtt := &fakeRTT{latest: 50 * time.Millisecond}
	return &driver{c: New(law, datagram, rtt), rtt: rtt, now: start, sentAt: map[int64]int64{}}
}

// fill sends whatever window and pacer allow without waiting.
func (d *driver) fill() (sent int) {
	for d.c.CanSend(d.inFlight) && d.c.HasPacingBudget(d.now) {
		d.send()
		sent++
	}
	return sent
}

func (d *driver) send() int64 {
	d.inFlight += datagram
	d.c.OnPacketSent(d.now, d.inFlight, d.next, datagram, true)
	d.sentAt[d.next] = d.now
	d.next++
	return d.next - 1
}

func (d *driver) ack(numbers ...int64) {
	d.rtt.latest = time.Duration(d.now - d.sentAt[numbers[len(numbers)-1]])
	prior := d.inFlight
	d.c.OnAckBegin()
	for _, n := range numbers {
		d.c.OnPacketAcked(d.now, n, datagram, prior)
		d.inFlight -= datagram
	}
}

func (d *driver) lose(numbers ...int64) {
	prior := d.inFlight
	for _, n := range numbers {
		d.inFlight -= datagram
		d.c.OnPacketLost(n, datagram, prior)
	}
}

var ourLaws = []Law{LawImproved, LawStatic}

// starts holds transport times: monotonic scales begin where they like.
var starts = []int64{1, 1e18, -5e17}

func TestInitialWindowIsTenPackets(t *testing.T) {
	for _, law := range ourLaws {
		for _, start := range starts {
			d := drive(t, law, start)
			if n := d.fill(); n != initialWindowPackets {
				t.Errorf("%s from %d: %d packets at once, want %d", law, start, n, initialWindowPackets)
			}
			if d.c.CanSend(d.inFlight) {
				t.Errorf("%s: the window still has room", law)
			}
		}
	}
}

func TestPureACKsAreNotCharged(t *testing.T) {
	for _, law := range ourLaws {
		d := drive(t, law, 1)
		for n := range int64(10000) {
			d.c.OnPacketSent(d.now, 0, n, 40, false)
		}
		if !d.c.HasPacingBudget(d.now) || d.c.Snapshot().PacketsSent != 0 {
			t.Errorf("%s: pure ACKs used up the pacer", law)
		}
		d.next = 10000
		if n := d.fill(); n != initialWindowPackets {
			t.Errorf("%s: %d data packets after them, want %d", law, n, initialWindowPackets)
		}
	}
}

func TestPacingSpreadsTheWindow(t *testing.T) {
	for _, law := range ourLaws {
		for _, start := range starts {
			d := drive(t, law, start)
			d.fill()
			d.now += 50 * ms
			d.ack(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)
			for d.c.CanSend(d.inFlight) {
				if d.c.HasPacingBudget(d.now) {
					d.send()
					continue
				}
				at := d.c.NextSend(d.inFlight)
				if at == 0 || at <= d.now {
					t.Fatalf("%s from %d: no budget now (%d), yet NextSend is %d", law, start, d.now, at)
				}
				if at-d.now > 100*ms {
					t.Fatalf("%s: the next packet is %d ms away", law, (at-d.now)/ms)
				}
				d.now = at
			}
		}
	}
}

func TestOneCutPerRoundTrip(t *testing.T) {
	d := drive(t, LawStatic, 1)
	d.fill()
	d.now += 50 * ms
	d.ack(0, 1, 2)
	before := d.c.Window()
	d.lose(3)
	after := d.c.Window()
	if after != before/2 {
		t.Errorf("window %d after a loss at %d, want half", after, before)
	}
	d.lose(4, 5, 6)
	if d.c.Window() != after {
		t.Errorf("more losses of the same round: window %d, want %d", d.c.Window(), after)
	}
	if !d.c.InRecovery() {
		t.Error("not in recovery after a cut")
	}
	d.now += ms
	n := d.send()
	d.now += 50 * ms
	d.ack(n)
	if d.c.InRecovery() {
		t.Error("in recovery after a packet sent later was acknowledged")
	}
	d.send()
	d.lose(n + 1)
	if d.c.Window() >= after {
		t.Error("a loss of the next round must count")
	}
}

func TestSingleLossCostsImprovedNothing(t *testing.T) {
	d := drive(t, LawImproved, 1)
	d.fill()
	d.now += 50 * ms
	d.ack(0, 1, 2)
	before := d.c.Window()
	d.lose(3)
	if d.c.Window() != before {
		t.Errorf("window %d after one loss, want %d", d.c.Window(), before)
	}
}

func TestPersistentCongestion(t *testing.T) {
	for _, law := range ourLaws {
		for _, start := range starts {
			d := drive(t, law, start)
			d.fill()
			d.now += 50 * ms
			d.ack(0, 1, 2, 3, 4)
			// The path dies; probes go out a while later, and all is lost but the last.
			lost := []int64{5, 6, 7, 8, 9}
			for range 4 {
				d.now += 500 * ms
				lost = append(lost, d.send())
			}
			d.now += 500 * ms
			last := d.send()
			d.now += 50 * ms
			d.rtt.latest = 50 * time.Millisecond
			d.c.OnAckBegin()
			d.lose(lost...)
			d.c.OnPacketAcked(d.now, last, datagram, d.inFlight)
			d.inFlight -= datagram
			d.send()
			if got := d.c.Window(); got != minWindowPackets*datagram {
				t.Errorf("%s: window %d after persistent congestion, want %d", law, got, minWindowPackets*datagram)
			}
			if !d.c.InSlowStart() {
				t.Errorf("%s: must start over", law)
			}
		}
	}
}

func TestOrdinaryLossIsNotPersistentCongestion(t *testing.T) {
	for _, law := range ourLaws {
		d := drive(t, law, 1)
		d.fill()
		d.now += 50 * ms
		d.ack(0, 1, 2, 3, 4)
		var sent []int64
		for range 5 {
			d.now += 200 * ms
			sent = append(sent, d.send())
		}
		// One in the middle arrives with the ACK that reveals the losses.
		d.now += 50 * ms
		d.rtt.latest = 50 * time.Millisecond
		d.c.OnAckBegin()
		d.lose(5, 6, sent[0], sent[1], sent[3])
		for _, n := range []int64{sent[2], sent[4]} {
			d.c.OnPacketAcked(d.now, n, datagram, d.inFlight)
			d.inFlight -= datagram
		}
		d.send()
		if got := d.c.Window(); got <= minWindowPackets*datagram {
			t.Errorf("%s: window collapsed to %d", law, got)
		}
	}
}

func TestNoGrowthWhileApplicationLimited(t *testing.T) {
	for _, law := range ourLaws {
		d := drive(t, law, 1)
		for range 200 {
			n := d.send()
			d.c.CanSend(d.inFlight)
			d.c.HasPacingBudget(d.now) // offered, and not used
			d.now += 50 * ms
			d.ack(n)
		}
		if got := d.c.Window(); got > 2*initialWindowPackets*datagram {
			t.Errorf("%s: one packet per round trip grew the window to %d packets", law, got/datagram)
		}
	}
}

func TestSpuriousLossIsTakenBack(t *testing.T) {
	d := drive(t, LawImproved, 1)
	d.fill()
	d.now += 50 * ms
	d.ack(5)
	d.lose(0, 1)
	d.c.OnSpuriousLoss(1)
	if s := d.c.Snapshot(); s.PacketsLost != 1 || s.PacketsSent != 10 {
		t.Errorf("lost %d of %d, want 1 of 10", s.PacketsLost, s.PacketsSent)
	}
}

func TestLargerDatagramsKeepTheMinimum(t *testing.T) {
	d := drive(t, LawImproved, 1)
	d.c.SetMaxDatagramSize(9000)
	if got := d.c.Window(); got < minWindowPackets*9000 {
		t.Errorf("window of %d bytes holds less than %d packets", got, minWindowPackets)
	}
}

func TestParseLaw(t *testing.T) {
	for _, l := range Laws() {
		if got, err := ParseLaw(string(l)); got != l || err != nil {
			t.Errorf("ParseLaw(%q) = %q, %v", l, got, err)
		}
	}
	if _, err := ParseLaw("vegas"); err == nil {
		t.Error("an unknown law must be refused")
	}
	if New(LawReno, datagram, &fakeRTT{}) != nil {
		t.Error("reno is the transport's own")
	}
}

// FuzzController feeds a controller events in any order.
func FuzzController(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 1, 3, 2, 4, 0, 5, 6, 7}, false)
	f.Add([]byte{0, 0, 1, 0, 1, 2, 2, 2, 2, 3, 3, 3, 8, 9}, true)
	f.Fuzz(func(t *testing.T, events []byte, plain bool) {
		law := LawImproved
		if plain {
			law = LawStatic
		}
		d := drive(t, law, -3)
		for _, e := range events {
			d.now += int64(e&0xf0) * ms / 8
			n := d.next - 1 - int64(e>>4)
			switch e & 0x0f {
			case 0, 1, 2, 3:
				d.fill()
			case 4:
				d.send()
			case 5, 6:
				d.c.OnAckBegin()
				d.c.OnPacketAcked(d.now, n, datagram, d.inFlight)
			case 7:
				d.c.OnPacketLost(n, datagram, d.inFlight)
			case 8:
				d.c.OnPacketLost(n, 0, d.inFlight)
			case 9:
				d.c.OnSpuriousLoss(n)
			case 10:
				d.c.SetMaxDatagramSize(1200 + 10*int64(e))
			case 11:
				d.rtt.latest = time.Duration(e) * time.Millisecond
			case 12:
				d.inFlight = max(d.inFlight-datagram*int64(e), 0)
			case 13:
				d.now -= int64(e) * ms
			case 14:
				if at := d.c.NextSend(d.inFlight); at != 0 {
					d.now = max(d.now, at)
				}
			case 15:
				d.now += int64(e) * 100 * ms
			}
			s := d.c.Snapshot()
			if d.c.Window() < minWindowPackets*1200 || math.IsNaN(s.PacingRate) || math.IsInf(s.PacingRate, 0) || s.PacingRate < 0 ||
				math.IsNaN(s.Alpha) || s.Alpha < minWindowPackets || math.IsNaN(s.Backlog) || s.Backlog < 0 || s.BaseRTT < 0 {
				t.Fatalf("after event %#x: window %d, %+v", e, d.c.Window(), s)
			}
		}
	})
}

func TestNothingIsAllocatedPerPacket(t *testing.T) {
	for _, law := range ourLaws {
		d := steadyState(t, law)
		if n := testing.AllocsPerRun(1000, d.step); n != 0 {
			t.Errorf("%s: %v allocations per packet", law, n)
		}
	}
}

func BenchmarkPacket(b *testing.B) {
	for _, law := range ourLaws {
		b.Run(string(law), func(b *testing.B) {
			d := steadyState(b, law)
			b.ReportAllocs()
			for b.Loop() {
				d.step()
			}
		})
	}
}

// stepper keeps 500 packets in flight over 42 ms.
type stepper struct {
	c   Controller
	now int64
	n   int64
}

func steadyState(t testing.TB, law Law) *stepper {
	t.Helper()
	s := &stepper{c: New(law, datagram, &fakeRTT{42 * time.Millisecond}), now: 1}
	for range 10000 {
		s.step()
	}
	return s
}

// step sends a packet and acknowledges one, as a connection does.
func (s *stepper) step() {
	const window = 500
	s.now += 84000
	s.c.CanSend(window * datagram)
	s.c.HasPacingBudget(s.now)
	s.c.OnPacketSent(s.now, window*datagram, s.n, datagram, true)
	if s.n >= window {
		s.c.OnAckBegin()
		s.c.OnPacketAcked(s.now, s.n-window, datagram, window*datagram)
	}
	s.n++
}
