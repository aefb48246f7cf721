package udplink

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t testing.TB) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadBuffer(socketBuffer); err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func startLink(t testing.TB, server *net.UDPConn, cfg Config) *Link {
	t.Helper()
	l, err := Start(t.Context(), server.LocalAddr().(*net.UDPAddr), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func send(t testing.TB, c *net.UDPConn, to net.Addr, payload []byte) {
	t.Helper()
	if _, err := c.WriteTo(payload, to); err != nil {
		t.Fatal(err)
	}
}

func receive(t testing.TB, c *net.UDPConn) ([]byte, net.Addr) {
	t.Helper()
	b := make([]byte, 3000)
	n, from, err := c.ReadFrom(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n], from
}

// TestMapping: each client has an address of its own at the server, and gets
// what the server sends there.
func TestMapping(t *testing.T) {
	server, a, b, c := listen(t), listen(t), listen(t), listen(t)
	l := startLink(t, server, Config{MaxClients: 2})
	send(t, a, l.Addr(), []byte("from a"))
	got, fromA := receive(t, server)
	if string(got) != "from a" {
		t.Errorf("the server got %q", got)
	}
	send(t, b, l.Addr(), []byte("from b"))
	_, fromB := receive(t, server)
	if fromA.String() == fromB.String() || fromA.String() == a.LocalAddr().String() {
		t.Errorf("the server sees %v and %v for clients %v and %v", fromA, fromB, a.LocalAddr(), b.LocalAddr())
	}
	send(t, server, fromB, []byte("to b"))
	send(t, server, fromA, []byte("to a"))
	if got, from := receive(t, a); string(got) != "to a" || from.String() != l.Addr().String() {
		t.Errorf("client a got %q from %v", got, from)
	}
	if got, _ := receive(t, b); string(got) != "to b" {
		t.Errorf("client b got %q", got)
	}
	// A third is one too many, and so is a packet that fills the buffer.
	send(t, c, l.Addr(), []byte("from c"))
	send(t, a, l.Addr(), make([]byte, bufferBytes))
	send(t, a, l.Addr(), bytes.Repeat([]byte("z"), 1472))
	if got, from := receive(t, server); len(got) != 1472 || from.String() != fromA.String() {
		t.Errorf("the server got %d bytes from %v", len(got), from)
	}
	if up := l.Snapshot().Up.Since(DirectionSnapshot{}); up.Refused != 2 || up.SentPackets != 3 {
		t.Errorf("up: %+v", up)
	}
}

// TestNobodyListens: ICMP errors do not end the link.
func TestNobodyListens(t *testing.T) {
	server, client := listen(t), listen(t)
	l := startLink(t, server, Config{})
	addr := server.LocalAddr().(*net.UDPAddr)
	server.Close()
	for range 5 {
		send(t, client, l.Addr(), []byte("hello?"))
	}
	again, err := net.ListenUDP("udp4", addr)
	if err != nil {
		t.Skip("the port was taken by another process in between:", err)
	}
	defer again.Close()
	if err := again.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	got := make(chan struct{})
	go func() {
		defer close(got)
		b := make([]byte, 100)
		for {
			n, from, err := again.ReadFrom(b)
			if err != nil {
				t.Error(err)
				return
			}
			if string(b[:n]) == "again" {
				_, _ = again.WriteTo([]byte("yes"), from)
				return
			}
		}
	}()
	send(t, client, l.Addr(), []byte("again"))
	<-got
	if b, _ := receive(t, client); string(b) != "yes" {
		t.Errorf("the client got %q", b)
	}
}

func TestEnds(t *testing.T) {
	server, client := listen(t), listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	l, err := Start(ctx, server.LocalAddr().(*net.UDPAddr), Config{Up: Direction{Delay: 5 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	send(t, client, l.Addr(), []byte("never arrives"))
	cancel()
	<-l.done
	began := time.Now()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(began); d > 2*time.Second {
		t.Errorf("Close waited %v for packets under way", d)
	}
	if err := l.Close(); err != nil {
		t.Error("second Close:", err)
	}
	if _, err := net.DialUDP("udp4", nil, l.Addr()); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Log(err)
	}
	if _, err := Start(t.Context(), &net.UDPAddr{IP: net.IPv6loopback, Port: 1}, Config{}); err == nil {
		t.Error("an IPv6 server: no error")
	}
}

// carry sends count packets of size bytes through a link at somewhat more than
// its rate and returns the link's own account, the rate of arrival and the
// shortest transit.
func carry(t testing.TB, cfg Config, count, size int) (got Interval, bps float64, transit time.Duration) {
	t.Helper()
	server, client := listen(t), listen(t)
	l := startLink(t, server, cfg)
	began := time.Now()
	before := l.Snapshot()
	go func() {
		b := make([]byte, size)
		gap := time.Duration(float64(size*8) / (1.2 * cfg.Up.Rate) * 1e9)
		for i := range count {
			for due := time.Duration(i) * gap; time.Since(began) < due; {
				time.Sleep(time.Millisecond)
			}
			binary.LittleEndian.PutUint64(b, uint64(time.Since(began)))
			if _, err := client.WriteTo(b, l.Addr()); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	transit = time.Hour
	var first, last time.Duration
	var received int
	b := make([]byte, 3000)
	for {
		// A second without a packet is the end.
		if err := server.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, _, err := server.ReadFrom(b)
		if err != nil {
			break
		}
		last = time.Since(began)
		if received == 0 {
			first = last
		}
		received++
		transit = min(transit, last-time.Duration(binary.LittleEndian.Uint64(b[:n])))
	}
	if received < 2 {
		t.Fatalf("%d packets of %d arrived", received, count)
	}
	got = l.Snapshot().Up.Since(before.Up)
	return got, float64((received-1)*(size+headerBytes)*8) / (last - first).Seconds(), transit
}

// TestRealTime: rate and delay as a receiver sees them. The tolerances allow for
// a busy machine; BenchmarkLink shows how exact the link is on a quiet one.
func TestRealTime(t *testing.T) {
	const rate, delay = 40e6, 30 * time.Millisecond
	got, bps, transit := carry(t, Config{Up: Direction{Rate: rate, Delay: delay, Buffer: 100_000}}, 3000, 1252)
	t.Logf("%.2f Mb/s, transit %v, %+v", bps/1e6, transit, got)
	if transit < delay {
		t.Errorf("a packet took %v over a delay of %v", transit, delay)
	}
	if got.Late.Max < 20*time.Millisecond && math.Abs(bps/rate-1) > 0.05 {
		t.Errorf("%.2f Mb/s arrived at a rate of %.2f", bps/1e6, rate/1e6)
	}
	if got.TailDrops == 0 || got.OfferedPackets+got.SocketDrops != 3000 {
		t.Errorf("account: %+v", got)
	}
	if got.DeliveredBytes != got.SentPackets*1280 || got.WriteErrors != 0 {
		t.Errorf("of %d packets %d bytes were delivered, %d failed", got.SentPackets, got.DeliveredBytes, got.WriteErrors)
	}
}

// BenchmarkLink carries 100 Mb/s for two seconds per iteration and shows how far
// the receiver's view is from it.
func BenchmarkLink(b *testing.B) {
	const rate = 100e6
	for range b.N {
		got, bps, transit := carry(b, Config{Up: Direction{Rate: rate, Delay: 40 * time.Millisecond, Buffer: 1_000_000}}, 20000, 1252)
		b.ReportMetric(100*(bps/rate-1), "rate-error-%")
		b.ReportMetric(float64(transit-40*time.Millisecond)/1e6, "delay-error-ms")
		b.ReportMetric(float64(got.Late.Mean)/1e6, "late-mean-ms")
		b.ReportMetric(float64(got.Late.P99)/1e6, "late-p99-ms")
		b.ReportMetric(float64(got.Late.Max)/1e6, "late-max-ms")
		b.ReportMetric(float64(got.SocketDrops), "socket-drops")
	}
}
