package quicnet

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"fastpacs/cc"
)

func TestControllerPerConnection(t *testing.T) {
	var clients, servers spies
	scfg, ccfg := servers.config(), clients.config()
	closed := make(chan Path, 8)
	scfg.Controllers.OnClose(func(p Path) { closed <- p })
	s := startEcho(t, scfg)
	conns := []*Conn{s.dial(t, s.addr, ccfg), s.dial(t, s.addr, ccfg)}
	for i, c := range conns {
		echo(t, c, payload(1<<20, byte(i)), nothing)
	}
	for end, made := range map[string][]*spy{"client": clients.of(true), "server": servers.of(false)} {
		if len(made) != 2 {
			t.Fatalf("%s: %d controllers for two connections", end, len(made))
		}
		for i, c := range made {
			if sent, acked := c.counts(); sent < 500 || acked < 500 {
				t.Errorf("%s: controller %d saw %d packets sent and %d acknowledged; is it in use?", end, i, sent, acked)
			}
		}
	}
	remotes := make(map[string]bool)
	scfg.Controllers.Each(func(p Path) {
		remotes[p.Remote.String()] = true
		if p.Client || p.Snapshot.Law != cc.LawImproved || p.Snapshot.PacketsSent < 500 {
			t.Errorf("server path %+v", p)
		}
	})
	if len(remotes) != 2 {
		t.Errorf("server paths to %v, want two", remotes)
	}
	ccfg.Controllers.Each(func(p Path) {
		if !p.Client || p.Remote.String() != s.addr.String() {
			t.Errorf("client path %+v, want one to %v", p, s.addr)
		}
	})

	// Nothing stays but the totals.
	live := scfg.Controllers.Totals()
	for _, c := range conns {
		_ = c.Close()
	}
	eventually(t, "connections leave the registries", func() bool {
		return scfg.Controllers.Len() == 0 && ccfg.Controllers.Len() == 0
	})
	ended := scfg.Controllers.Totals()
	if ended.Connections != 2 || ended.PacketsSent < live.PacketsSent || ended.PacketsLost < live.PacketsLost {
		t.Errorf("totals went from %+v to %+v", live, ended)
	}
	for range conns {
		if p := <-closed; p.Snapshot.PacketsSent < 500 {
			t.Errorf("OnClose was told of %+v", p)
		}
	}
}

// A connection that does not ask keeps quic-go's own controller, beside others
// that do, on the same socket.
func TestOthersKeepTheirController(t *testing.T) {
	var servers spies
	s := startEcho(t, servers.config())
	c := s.dial(t, s.addr, DefaultConfig())
	echo(t, c, payload(1<<20, 1), nothing)
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	plain, err := c.own.Dial(ctx, s.addr, s.tls.client, &quic.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// quic-go starts with 32 packets; ours with 10 (RFC 9002 section 7.2).
	if w := plain.ConnectionStats().CongestionWindow; w < 32*1200 {
		t.Errorf("a plain connection has a window of %d bytes: that is not quic-go's", w)
	}
	if plain.QlogTrace() != nil {
		t.Error("a plain connection has our trace")
	}
	_ = plain.CloseWithError(0, "")
}

func TestRenoIsQuicGosOwn(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Law = cc.LawReno
	cfg.Controllers = &Controllers{}
	s := startEcho(t, cfg)
	c := s.dial(t, s.addr, DefaultConfig())
	echo(t, c, payload(1<<20, 1), nothing)
	if tot := cfg.Controllers.Totals(); tot.Connections != 1 || tot.PacketsSent < 500 {
		t.Errorf("totals %+v", tot)
	}
	cfg.Controllers.Each(func(p Path) {
		if s := p.Snapshot; s.Law != cc.LawReno || s.Window == 0 || s.RTT == 0 || s.BaseRTT == 0 || s.State != "" {
			t.Errorf("snapshot %+v", s)
		}
	})
	server := s.accepted(t)
	if typ := server.conn.QlogTrace(); typ == nil {
		t.Error("no trace")
	} else if _, ok := typ.(*carrier); ok {
		t.Error("reno asks for a controller")
	}
	_ = c.Close()
	eventually(t, "the connection leaves the registry", func() bool { return cfg.Controllers.Len() == 0 })
}

// A connection that was to be fitted and was not is refused, not run with
// another controller.
func TestUnfittedConnectionIsRefused(t *testing.T) {
	s := startEcho(t, DefaultConfig())
	c := s.dial(t, s.addr, DefaultConfig())
	tr, ok := c.conn.QlogTrace().(*carrier)
	if !ok {
		t.Fatal("no carrier")
	}
	if _, err := opened(c.conn, true); err != nil {
		t.Fatal(err)
	}
	tr.live = &liveConn{} // as if the hook had not asked
	if _, err := newConn(c.conn, true); err != errNotFitted {
		t.Errorf("got %v", err)
	}
	if c.Context().Err() == nil {
		t.Error("the connection lives on")
	}
}

// falling is a controller whose counters go down, as when losses prove spurious.
type falling struct {
	cc.Controller
	mu sync.Mutex
	s  cc.Snapshot
}

func (f *falling) Snapshot() cc.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.s
	f.s.PacketsLost--
	return s
}

func TestTotalsNeverDecrease(t *testing.T) {
	s := startEcho(t, DefaultConfig())
	c := s.dial(t, s.addr, DefaultConfig())
	reg := &Controllers{}
	l := &liveConn{registry: reg}
	l.onPath(c.conn, true, &falling{s: cc.Snapshot{PacketsLost: 10}})
	for range 5 {
		if got := reg.Totals().PacketsLost; got != 10 {
			t.Errorf("%d packets lost, want 10 still", got)
		}
	}
	_ = c.Close()
	eventually(t, "the connection leaves the registry", func() bool { return reg.Len() == 0 })
	if got := reg.Totals().PacketsLost; got != 10 {
		t.Errorf("%d packets lost at the end, want 10 still", got)
	}
}

// Readers run beside connections that come and go.
func TestControllersAreSafeForConcurrentUse(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Controllers = &Controllers{}
	s := startEcho(t, cfg)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			var last Totals
			for {
				select {
				case <-stop:
					return
				default:
				}
				cfg.Controllers.Each(func(p Path) { _ = cfg.Controllers.Len() })
				now := cfg.Controllers.Totals()
				if now.PacketsSent < last.PacketsSent || now.Connections < last.Connections {
					t.Errorf("totals fell from %+v to %+v", last, now)
					return
				}
				last = now
			}
		})
	}
	for i := range 8 {
		c := s.dial(t, s.addr, cfg)
		echo(t, c, payload(100_000, byte(i)), nothing)
		_ = c.Close()
	}
	close(stop)
	wg.Wait()
	eventually(t, "connections leave the registry", func() bool { return cfg.Controllers.Len() == 0 })
	if tot := cfg.Controllers.Totals(); tot.Connections != 16 {
		t.Errorf("%d connections, want 8 dialled and 8 accepted", tot.Connections)
	}
}

func TestFailedHandshakesLeaveNothing(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Controllers = &Controllers{}
	s := startEcho(t, cfg)
	wrong := s.tls.client.Clone()
	wrong.NextProtos = []string{"other"}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	for range 4 {
		if _, err := Dial(ctx, testSocket(t), s.addr, wrong, cfg); err == nil || !strings.Contains(err.Error(), "dialling "+s.addr.String()) {
			t.Fatalf("got %v", err)
		}
	}
	// And one to nobody, given up.
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, testSocket(t), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, wrong, cfg); err == nil {
		t.Fatal("nobody answered")
	}
	eventually(t, "handshakes leave the registry", func() bool { return cfg.Controllers.Len() == 0 })
	if tot := cfg.Controllers.Totals(); tot.Connections != 9 {
		t.Errorf("%d connections, want 4 at each end and one", tot.Connections)
	}
}
