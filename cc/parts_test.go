package cc

import (
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

func TestBaseRTTWindow(t *testing.T) {
	b := newBaseRTT(8 * time.Second)
	now := int64(1e9)
	step := func(rtt, near int64, want int64) {
		t.Helper()
		b.add(now, rtt, near)
		if b.value != want {
			t.Fatalf("at %d ms: base %d ms, want %d ms", now/ms, b.value/ms, want/ms)
		}
	}
	step(40*ms, 0, 40*ms)
	step(30*ms, 0, 30*ms)
	step(50*ms, 0, 30*ms)
	// Near samples keep the old value alive beyond its window, unchanged.
	for range 20 {
		now += 1e9
		step(31*ms, 2*ms, 30*ms)
	}
	// A longer path: believed once the window has passed, and not before.
	for range 7 {
		now += 1e9
		step(120*ms, 2*ms, 30*ms)
	}
	now += 2e9
	step(120*ms, 2*ms, 120*ms)
	// A silence longer than the window does not lose the value.
	now += 60e9
	step(125*ms, 0, 120*ms)
	now += 1e9
	step(125*ms, 0, 125*ms)
	step(119*ms, 0, 119*ms)
	b.set(now, 40*ms)
	step(41*ms, 0, 40*ms)
	var forever baseRTT
	for i := range int64(100) {
		forever.add(i*1e9+1, 50*ms-i/50*ms, 0)
	}
	if forever.value != 49*ms {
		t.Errorf("without a window the lowest sample stays: %d ms", forever.value/ms)
	}
}

func TestPacer(t *testing.T) {
	const size = 1250
	rate := 1.25e6 // bytes/s: a packet a millisecond
	p := pacer{burst: 4, grain: ms / 4}
	now, sent := int64(1e9), 0
	for p.at(now, rate, size) >= size {
		p.charge(now, size, rate, size)
		sent++
	}
	if sent != 4 {
		t.Errorf("a rested pacer lets %d packets go, want the burst of 4", sent)
	}
	// From there on a packet a millisecond, over 10 s of timers as asked for.
	start := now
	for sent = 0; sent < 10000; sent++ {
		at, wait := p.next(rate, size)
		if !wait {
			t.Fatal("no wait with an empty bucket")
		}
		now = at
		if p.at(now, rate, size) < size {
			t.Fatalf("packet %d: the time asked for is too early", sent)
		}
		p.charge(now, size, rate, size)
	}
	if got := float64(now-start) / 1e9; got < 9.99 || got > 10.01 {
		t.Errorf("10,000 packets took %.3f s, want 10 s", got)
	}
	// A timer that is late does not lower the rate.
	now += 2 * ms
	if n := int(p.at(now, rate, size) / size); n != 2 {
		t.Errorf("2 ms later there is room for %d packets, want 2", n)
	}
}

func TestSentLogGrowsAndForgets(t *testing.T) {
	var l sentLog
	live := int64(0)
	add := func(n int64) { p := l.add(n, live); p.size, p.sentAt = 1000, n }
	for n := range int64(20000) {
		live++
		add(n)
	}
	for n := range int64(20000) {
		if p := l.get(n); p == nil || p.sentAt != n {
			t.Fatalf("packet %d is not remembered", n)
		}
	}
	if len(l.ring) > maxSentLog {
		t.Errorf("ring of %d", len(l.ring))
	}
	// Dead records make room without growth.
	for n := range int64(20000) {
		l.get(n).live = false
	}
	before := len(l.ring)
	live = 1
	for n := int64(20000); n < 200000; n++ {
		add(n)
		l.get(n).live = false
	}
	if len(l.ring) != before || l.get(5) != nil || l.get(1<<40) != nil {
		t.Errorf("ring grew from %d to %d, or knows what it cannot", before, len(l.ring))
	}
	// Records of packets that were dropped without a word do not make it grow.
	var dropped sentLog
	for n := range int64(100000) {
		dropped.add(n, 10).size = 1
	}
	if len(dropped.ring) != minSentLog {
		t.Errorf("ring of %d with 10 packets in flight", len(dropped.ring))
	}
	// More live ones than it may hold: the oldest go.
	var small sentLog
	for n := range int64(3 * maxSentLog) {
		small.add(n, n).size = 1
	}
	if len(small.ring) != maxSentLog {
		t.Errorf("ring of %d, want at most %d", len(small.ring), maxSentLog)
	}
}

func TestDeliveryRate(t *testing.T) {
	// 10 packets of 1000 bytes a 10 ms apart: 100 kB/s, whatever the ACKs do.
	var m deliveryMeter
	var ps [100]sentPacket
	const rtt = 100 * ms
	for i := range ps {
		ps[i] = sentPacket{number: int64(i), sentAt: 1e9 + int64(i)*10*ms, size: 1000, inFlight: min(int64(i)+1, 10) * 1000}
	}
	acked := 0
	for i := range ps {
		now := ps[i].sentAt
		for acked < len(ps) && ps[acked].sentAt+rtt <= now {
			m.onAcked(now, &ps[acked], rtt)
			acked++
		}
		m.onSent(now, &ps[i])
	}
	if got := m.rate(); got < 95e3 || got > 105e3 {
		t.Errorf("rate %.0f bytes/s, want 100,000", got)
	}
	// The rest acknowledged in one bunch must not raise it.
	now := ps[99].sentAt + rtt
	for ; acked < len(ps); acked++ {
		m.onAcked(now, &ps[acked], rtt)
	}
	if got := m.rate(); got > 105e3 {
		t.Errorf("rate %.0f bytes/s after bunched ACKs, want 100,000", got)
	}
	m.endRound()
	if m.peak < 95e3 || m.rate() < 95e3 {
		t.Errorf("peak %.0f, rate %.0f after a round", m.peak, m.rate())
	}
	m.endRound()
	if m.rate() != 0 {
		t.Errorf("rate %.0f two rounds later", m.rate())
	}
}

func TestTrainMeter(t *testing.T) {
	var m trainMeter
	train := func(start int64, n int, spread int64) {
		for i := range n {
			m.onAcked(start+100*ms+int64(i)*spread, &sentPacket{sentAt: start + int64(i)*1000, size: 1250})
		}
	}
	train(1e9, 7, ms)
	if m.capacity != 0 {
		t.Error("seven packets are no train")
	}
	train(2e9, 10, ms/10) // 1250 bytes in 0.1 ms: 100 Mb/s
	if got := m.capacity * 8 / 1e6; got < 99 || got > 101 {
		t.Errorf("capacity %.1f Mb/s, want 100", got)
	}
	train(3e9, 10, ms) // cross traffic between: the higher one stays
	if got := m.capacity * 8 / 1e6; got < 99 {
		t.Errorf("capacity fell to %.1f Mb/s", got)
	}
}

func TestLossMeter(t *testing.T) {
	var m lossMeter
	const mds = 1000
	for round := range 200 {
		m.lost, m.delivered = 1*mds, 99*mds
		if round == 0 && m.share(mds) != 0.01 {
			t.Errorf("share %v, want 0.01", m.share(mds))
		}
		m.endRound(mds)
	}
	near(t, "smoothed loss", m.rate, 0.01, 1e-6)
	m.lost = mds
	if got := m.share(mds); got != 0.01 {
		t.Errorf("one loss at the start of a round counts as %v, want 0.01", got)
	}
	m.endRound(mds)
	if m.rate > 0.02 {
		t.Errorf("a single packet moved the smoothed loss to %v", m.rate)
	}
}

func TestOutage(t *testing.T) {
	var o outage
	o.acked(5)
	o.lost(10)
	o.lost(400)
	if o.length() != 390 {
		t.Errorf("stretch of %d, want 390", o.length())
	}
	o.acked(200) // one in the middle got through
	if o.length() != 0 {
		t.Error("a packet inside the stretch arrived")
	}
	o.lost(500)
	o.acked(600)
	o.lost(900) // another stretch: one sent in between arrived
	o.lost(1250)
	if o.length() != 350 {
		t.Errorf("stretch of %d, want 350: it begins anew after the acknowledged packet", o.length())
	}
}
