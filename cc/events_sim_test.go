package cc_test

import (
	"testing"
	"time"

	"fastpacs/cc"
)

// rttSource is an RTTSource that a test sets.
type rttSource struct{ min, latest, smoothed time.Duration }

func (r *rttSource) MinRTT() time.Duration      { return r.min }
func (r *rttSource) LatestRTT() time.Duration   { return r.latest }
func (r *rttSource) SmoothedRTT() time.Duration { return r.smoothed }

func (r *rttSource) add(rtt time.Duration) {
	r.latest = rtt
	if r.min == 0 || rtt < r.min {
		r.min = rtt
	}
	if r.smoothed == 0 {
		r.smoothed = rtt
	}
	r.smoothed += (rtt - r.smoothed) / 8
}

// driver calls a controller as a transport might: in any order of sending,
// acknowledging and losing that a script asks for, and checks what every
// controller must hold.
type driver struct {
	t        testing.TB
	c        cc.Controller
	rtt      rttSource
	now      int64
	datagram int64

	next     int64
	live     []sent
	inFlight int64
}

type sent struct{ number, at, size int64 }

func newDriver(t testing.TB, law cc.Law, now int64) *driver {
	d := &driver{t: t, now: now, datagram: 1200}
	d.c = cc.New(law, d.datagram, &d.rtt)
	return d
}

func (d *driver) send(ackEliciting bool) {
	if !ackEliciting {
		d.c.OnPacketSent(d.now, d.inFlight, d.next, 40, false)
		d.next++
		return
	}
	d.inFlight += d.datagram
	d.live = append(d.live, sent{d.next, d.now, d.datagram})
	d.c.OnPacketSent(d.now, d.inFlight, d.next, d.datagram, true)
	d.next++
}

// ack acknowledges n packets from the oldest on after skipping some.
func (d *driver) ack(skip, n int) {
	if n == 0 || skip >= len(d.live) {
		return
	}
	batch := d.live[skip:min(skip+n, len(d.live))]
	prior := d.inFlight
	if rtt := d.now - batch[len(batch)-1].at; rtt > 0 {
		d.rtt.add(time.Duration(rtt))
		d.c.OnAckBegin()
	}
	for _, p := range batch {
		d.c.OnPacketAcked(d.now, p.number, p.size, prior)
		d.inFlight -= p.size
	}
	d.live = append(d.live[:skip], d.live[skip+len(batch):]...)
}

func (d *driver) lose(n int) {
	n = min(n, len(d.live))
	prior := d.inFlight
	for _, p := range d.live[:n] {
		d.inFlight -= p.size
		d.c.OnPacketLost(p.number, p.size, prior)
	}
	d.live = d.live[n:]
}

// check holds the invariants.
func (d *driver) check() {
	d.t.Helper()
	w := d.c.Window()
	if w < 2*d.datagram || w > 1<<50 {
		d.t.Fatalf("window of %d bytes", w)
	}
	if !d.c.CanSend(0) || d.c.CanSend(w) {
		d.t.Fatalf("CanSend contradicts a window of %d bytes", w)
	}
	if !d.c.HasPacingBudget(d.now) {
		at := d.c.NextSend(d.inFlight)
		if at == 0 || at <= d.now {
			d.t.Fatalf("at %d no packet may go, and the next may at %d", d.now, at)
		}
		if at-d.now > int64(time.Minute) {
			d.t.Fatalf("the next packet may go in %v", time.Duration(at-d.now))
		}
		if !d.c.HasPacingBudget(at) {
			d.t.Fatalf("no packet may go at the time asked for, %v later", time.Duration(at-d.now))
		}
		d.now = at
	}
	s := d.c.Snapshot()
	if !finite(s.PacingRate, s.DeliveryRate, s.Backlog, s.Alpha, s.Gamma, s.LossRate, float64(s.RTT), float64(s.BaseRTT), float64(s.QueueDelay)) {
		d.t.Fatalf("%+v", s)
	}
	if s.LossRate > 1 || s.Window < 2*1200 || s.PacketsLost > s.PacketsSent {
		d.t.Fatalf("%+v", s)
	}
}

// FuzzEvents plays a script of events, two bytes each, to a controller.
func FuzzEvents(f *testing.F) {
	f.Add(uint8(0), int64(0), []byte("\x00\x0a\x07\x28\x01\x05\x00\x0a\x07\x28\x01\x0a"))
	f.Add(uint8(0), int64(-5e18), []byte("\x00\xff\x08\x32\x03\xff\x00\x05\x07\x50\x01\x05\x06\x00\x05\x03"))
	f.Add(uint8(1), int64(-1e9), []byte("\x00\x20\x07\x64\x01\x20\x02\x31\x00\x20\x04\x00\x09\x14\x01\x40"))
	f.Add(uint8(1), int64(1), []byte("\x0a\x05\x00\x01\x01\x01\x00\x02\x08\xff\x03\x02\x08\xff\x01\x01"))
	f.Fuzz(func(t *testing.T, law uint8, now int64, script []byte) {
		if now > 1<<62 || len(script) > 4096 {
			t.Skip("outside of what a transport's clock and a test's time allow")
		}
		laws := []cc.Law{cc.LawImproved, cc.LawStatic}
		d := newDriver(t, laws[int(law)%len(laws)], now)
		for ; len(script) >= 2; script = script[2:] {
			n := int(script[1])
			switch script[0] % 11 {
			case 0: // as a transport sends: while it may
				for range n {
					if !d.c.CanSend(d.inFlight) || !d.c.HasPacingBudget(d.now) {
						break
					}
					d.send(true)
				}
			case 1:
				d.ack(0, n)
			case 2:
				d.ack(n/16, n%16)
			case 3:
				d.lose(n)
			case 4: // an ECN mark
				d.c.OnPacketLost(max(d.next-1-int64(n), 0), 0, d.inFlight)
			case 5: // a probe, whatever window and pacer say
				d.send(true)
			case 6:
				d.send(false)
			case 7:
				d.now += int64(n) * int64(ms)
			case 8:
				d.now += int64(n) * int64(ms) * 100
			case 9:
				d.now += int64(n)
			case 10:
				d.datagram = 1200 + int64(n)
				d.c.SetMaxDatagramSize(d.datagram)
			}
			d.check()
		}
	})
}
