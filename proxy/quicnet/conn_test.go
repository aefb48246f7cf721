package quicnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

func TestHalfClose(t *testing.T) {
	pair := newTestTLS(t)
	ln, err := Listen(testSocket(t), pair.server, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c, err := Dial(ctx, testSocket(t), ln.Addr(), pair.client, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peer, err := ln.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p := c.TLS().NegotiatedProtocol; p != alpn {
		t.Errorf("negotiated %q", p)
	}
	a, err := c.OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(a, "request"); err != nil {
		t.Fatal(err)
	}
	if err := a.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write([]byte("more")); err == nil {
		t.Error("a Write after CloseWrite succeeds")
	}
	b, err := peer.AcceptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(b); string(got) != "request" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
	// The other direction is open still.
	if _, err := io.WriteString(b, "answer"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(a); string(got) != "answer" || err != nil {
		t.Errorf("read %q, %v", got, err)
	}

	for name, got := range map[string][2]net.Addr{
		"client": {a.RemoteAddr(), ln.Addr()},
		"server": {b.LocalAddr(), ln.Addr()},
		"peer":   {b.RemoteAddr(), c.LocalAddr()},
	} {
		if _, port, _ := net.SplitHostPort(got[0].String()); port == "" || port == "0" {
			t.Errorf("%s: address %v", name, got[0])
		} else if _, want, _ := net.SplitHostPort(got[1].String()); port != want {
			t.Errorf("%s: port %s, want %s", name, port, want)
		}
	}
}

func TestCloseReadStopsThePeer(t *testing.T) {
	s := startEcho(t, DefaultConfig())
	c := s.dial(t, s.addr, DefaultConfig())
	st, err := c.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := st.CloseRead(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Read(make([]byte, 1)); err == nil {
		t.Error("a Read after CloseRead succeeds")
	}
	_ = st.SetWriteDeadline(time.Now().Add(deadline))
	// The echo fails to write and stops reading; then so do our writes. Until then
	// they must not block for want of a reader.
	if _, err := st.Write(payload(1<<20, 1)); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if err := st.Close(); err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

func TestDeadlines(t *testing.T) {
	s := startEcho(t, DefaultConfig())
	c := s.dial(t, s.addr, DefaultConfig())
	st, err := c.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	_ = st.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	var ne net.Error
	if _, err := st.Read(make([]byte, 1)); !errors.As(err, &ne) || !ne.Timeout() || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read past its deadline: %v", err)
	}
	_ = st.SetReadDeadline(time.Time{})
	if _, err := io.WriteString(st, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(st, make([]byte, 1)); err != nil {
		t.Errorf("Read after a passed deadline: %v", err)
	}
}

// The receive window bounds what a peer can make us hold.
func TestReceiveWindowHoldsBack(t *testing.T) {
	pair := newTestTLS(t)
	cfg := DefaultConfig()
	cfg.InitialStreamReceiveWindow, cfg.MaxStreamReceiveWindow = minWindow, minWindow
	ln, err := Listen(testSocket(t), pair.server, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c, err := Dial(ctx, testSocket(t), ln.Addr(), pair.client, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	st, err := c.OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = st.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	n, err := st.Write(make([]byte, 1<<20)) // nobody reads
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n > minWindow {
		t.Errorf("wrote %d bytes, %v; want at most %d and a deadline", n, err, minWindow)
	}
}

// Pure acknowledgements are told apart, and charge nothing. Packet numbers are
// one sequence for all packet number spaces of a connection, so that a
// controller may use them as keys.
func TestWhatTheControllerIsTold(t *testing.T) {
	var clients, servers spies
	s := startEcho(t, servers.config())
	c := s.dial(t, s.addr, clients.config())
	echo(t, c, payload(4<<20, 1), nothing)
	for end, made := range map[string][]*spy{"client": clients.of(true), "server": servers.of(false)} {
		for _, sp := range made {
			sp.mu.Lock()
			if sp.pureAcks == 0 {
				t.Errorf("%s: no packet of %d was told as not ack-eliciting", end, sp.sent)
			}
			if sp.badFlight != 0 {
				t.Errorf("%s: %d pure acknowledgements raised what is in flight", end, sp.badFlight)
			}
			if sp.outOfOrder != 0 {
				t.Errorf("%s: %d packet numbers of %d were not above the one before", end, sp.outOfOrder, sp.sent)
			}
			if sp.acked > sp.sent-sp.pureAcks {
				t.Errorf("%s: %d acknowledged of %d", end, sp.acked, sp.sent-sp.pureAcks)
			}
			sp.mu.Unlock()
		}
	}
	// quic-go's own figures are kept.
	st := c.conn.ConnectionStats()
	snap := c.Path().Snapshot
	if st.CongestionWindow == 0 || st.PacketsSent < snap.PacketsSent {
		t.Errorf("ConnectionStats %+v, snapshot %+v", st, snap)
	}
	sp := clients.of(true)[0]
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if st.PacketsLost < uint64(sp.lost) {
		t.Errorf("ConnectionStats counts %d packets lost, the controller was told of %d", st.PacketsLost, sp.lost)
	}
}

func TestIdleConnectionEnds(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxIdleTimeout = time.Second
	cfg.Controllers = &Controllers{}
	s := startEcho(t, cfg)
	relay := startRelay(t, s.addr)
	c := s.dial(t, relay.addr(), cfg)
	echo(t, c, payload(1000, 1), nothing)
	relay.cut()
	eventually(t, "both ends give up", func() bool { return cfg.Controllers.Len() == 0 })
	var ne net.Error
	if err := context.Cause(c.Context()); !errors.As(err, &ne) || !ne.Timeout() {
		t.Errorf("the connection ended by %v, want a timeout", err)
	}
}

func TestListenerLeavesTheSocketOpen(t *testing.T) {
	pair := newTestTLS(t)
	pc := testSocket(t)
	for range 2 { // the second time proves that the first has let go
		ln, err := Listen(pc, pair.server, DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		if err := ln.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pc.WriteTo([]byte("x"), pc.LocalAddr()); err != nil {
		t.Error(err)
	}
}

// QUIC_GO_DISABLE_GSO is for network cards that cannot segment; quic-go reads it
// for each socket. Without it, quic-go falls back by itself when sending fails.
func TestWithoutGSO(t *testing.T) {
	for _, disabled := range []string{"true", "false"} {
		t.Setenv("QUIC_GO_DISABLE_GSO", disabled)
		s := startEcho(t, DefaultConfig())
		c := s.dial(t, s.addr, DefaultConfig())
		echo(t, c, payload(1<<20, 1), nothing)
		gso := c.conn.ConnectionState().GSO
		if disabled == "true" && gso {
			t.Error("GSO is in use")
		}
		t.Logf("QUIC_GO_DISABLE_GSO=%s: GSO %v", disabled, gso)
		_ = c.Close()
	}
}
