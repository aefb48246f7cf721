package udplink

import (
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

// TestKernelTells: a packet bears the time at which it arrived, not that at
// which it was read, and the drops of its socket.
func TestKernelTells(t *testing.T) {
	from, to := listen(t), listen(t)
	prepareSocket(to)
	before := time.Now()
	send(t, from, to.LocalAddr(), []byte("x"))
	sent := time.Now()
	for time.Since(sent) < 5*time.Millisecond {
		sleep(time.Millisecond)
	}
	m := []ipv4.Message{{Buffers: [][]byte{make([]byte, 10)}, OOB: make([]byte, oobBytes)}}
	if n, err := ipv4.NewPacketConn(to).ReadBatch(m, 0); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	got := parseOOB(m[0].OOB[:m[0].NN])
	if at := time.Unix(0, got.arrived); at.Before(before.Add(-time.Millisecond)) || at.After(sent.Add(time.Millisecond)) {
		t.Errorf("sent between %v and %v, stamped %v", before, sent, at)
	}
	// Told from the first drop on.
	if got.dropped != 0 {
		t.Errorf("%d dropped", got.dropped)
	}
	l := &Link{began: before}
	if at := l.arrival(got, time.Now()); at < -int64(time.Millisecond) || at > int64(sent.Add(time.Millisecond).Sub(before)) {
		t.Errorf("arrival at %v of the link's clock, sent before %v", time.Duration(at), sent.Sub(before))
	}
}

// TestSocketDrops: what the relay's own socket loses is counted.
func TestSocketDrops(t *testing.T) {
	from, to := listen(t), listen(t)
	prepareSocket(to)
	if err := to.SetReadBuffer(2048); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		send(t, from, to.LocalAddr(), make([]byte, 1000))
	}
	m := []ipv4.Message{{Buffers: [][]byte{make([]byte, 2000)}, OOB: make([]byte, oobBytes)}}
	pc := ipv4.NewPacketConn(to)
	if _, err := pc.ReadBatch(m, 0); err != nil {
		t.Fatal(err)
	}
	send(t, from, to.LocalAddr(), []byte("after the drops"))
	for {
		m[0].OOB = m[0].OOB[:cap(m[0].OOB)]
		if _, err := pc.ReadBatch(m, 0); err != nil {
			t.Fatal(err)
		}
		if m[0].N < 1000 {
			break
		}
	}
	if got := parseOOB(m[0].OOB[:m[0].NN]); !got.known || got.dropped == 0 {
		t.Errorf("after drops the kernel told %+v", got)
	}
}
