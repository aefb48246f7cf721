package cc_test

import (
	"testing"

	"fastpacs/cc"
)

// loop drives a controller over an unchanging path, one packet at a time: sent by
// the pacer, acknowledged in pairs an RTT later.
type loop struct {
	d      *driver
	sentAt [4096]int64
	acked  int64
	rtt    int64
}

func newLoop(t testing.TB, law cc.Law) *loop {
	l := &loop{d: newDriver(t, law, 1), rtt: int64(40 * ms)}
	for range 50_000 { // past slow start, with the logs grown
		l.step()
	}
	return l
}

// step sends a packet, and acknowledges two whenever they are due.
func (l *loop) step() {
	d := l.d
	for l.acked+2 <= d.next && (l.sentAt[(l.acked+1)%4096]+l.rtt <= d.now || !d.c.CanSend(d.inFlight) || d.next-l.acked >= 2000) {
		d.now = max(d.now, l.sentAt[(l.acked+1)%4096]+l.rtt)
		d.rtt.add(ms * 40)
		d.c.OnAckBegin()
		prior := d.inFlight
		for range 2 {
			d.c.OnPacketAcked(d.now, l.acked, d.datagram, prior)
			d.inFlight -= d.datagram
			l.acked++
		}
	}
	if !d.c.HasPacingBudget(d.now) {
		d.now = d.c.NextSend(d.inFlight)
	}
	d.inFlight += d.datagram
	l.sentAt[d.next%4096] = d.now
	d.c.OnPacketSent(d.now, d.inFlight, d.next, d.datagram, true)
	d.next++
}

// TestNoAllocations: the controllers run for each packet of a link at full rate.
func TestNoAllocations(t *testing.T) {
	for _, law := range []cc.Law{cc.LawImproved, cc.LawStatic} {
		l := newLoop(t, law)
		if n := testing.AllocsPerRun(20_000, l.step); n != 0 {
			t.Errorf("%s: %v allocations per packet, want 0", law, n)
		}
	}
}

func BenchmarkPacket(b *testing.B) {
	for _, law := range []cc.Law{cc.LawImproved, cc.LawStatic} {
		b.Run(string(law), func(b *testing.B) {
			l := newLoop(b, law)
			b.ReportAllocs()
			for b.Loop() {
				l.step()
			}
		})
	}
}
