package quicnet

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"
)

// TestClientMigration moves a client to another socket: both ends have to go on
// with new controllers of ours (RFC 9000 section 9.4).
func TestClientMigration(t *testing.T) {
	var clients, servers spies
	scfg, ccfg := servers.config(), clients.config()
	s := startEcho(t, scfg)
	c := s.dial(t, s.addr, ccfg)
	peer := s.accepted(t)
	echo(t, c, payload(1<<20, 1), nothing)
	if n, m := len(clients.of(true)), len(servers.of(false)); n != 1 || m != 1 {
		t.Fatalf("%d and %d controllers for one path, want 1 and 1", n, m)
	}

	pc := testSocket(t)
	tr := &quic.Transport{Conn: pc}
	defer tr.Close()
	path, err := c.conn.AddPath(tr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	echo(t, c, payload(4<<20, 2), func() {
		if err := path.Probe(ctx); err != nil {
			t.Error(err)
		}
		if err := path.Switch(); err != nil {
			t.Error(err)
		}
	})
	if got, want := peer.RemoteAddr().String(), pc.LocalAddr().String(); got != want {
		t.Errorf("the server's path goes to %s, want %s", got, want)
	}
	echo(t, c, payload(1<<20, 3), nothing)
	takesOver(t, "client", clients.of(true))
	takesOver(t, "server", servers.of(false))
	for end, cfg := range map[string]Config{"client": ccfg, "server": scfg} {
		if n, tot := cfg.Controllers.Len(), cfg.Controllers.Totals(); n != 1 || tot.Connections != 1 || tot.Migrations != 1 {
			t.Errorf("%s: %d live connections, %+v; want 1 that migrated once", end, n, tot)
		}
	}
	_ = c.Close()
}

// takesOver fails unless there are two controllers, and the second has been
// doing all the work after the first.
func takesOver(t *testing.T, end string, made []*spy) {
	t.Helper()
	if len(made) != 2 {
		t.Fatalf("%s: %d controllers for two paths, want 2", end, len(made))
	}
	for i, c := range made {
		if sent, acked := c.counts(); sent < 500 || acked < 200 {
			t.Errorf("%s: controller %d saw %d packets sent and %d acknowledged; is it in use?", end, i, sent, acked)
		}
	}
}

// TestNATRebinding changes the client's address under way, unknown to it.
func TestNATRebinding(t *testing.T) {
	var clients, servers spies
	scfg, ccfg := servers.config(), clients.config()
	s := startEcho(t, scfg)
	relay := startRelay(t, s.addr)
	c := s.dial(t, relay.addr(), ccfg)
	peer := s.accepted(t)
	before := peer.RemoteAddr().String()
	echo(t, c, payload(1<<20, 1), nothing)
	echo(t, c, payload(4<<20, 2), func() { relay.rebind(t) })
	echo(t, c, payload(1<<20, 3), nothing)
	after := peer.RemoteAddr().String()
	if before == after || after != relay.upstream().LocalAddr().String() {
		t.Errorf("the server's path went to %s and now to %s, want %s", before, after, relay.upstream().LocalAddr())
	}
	if got := peer.Path().Remote.String(); got != after {
		t.Errorf("Path says %s, want %s", got, after)
	}
	takesOver(t, "server", servers.of(false))
	if n := len(clients.of(true)); n != 1 {
		t.Errorf("the client has had %d controllers, want 1: its path is the same", n)
	}
	tot := scfg.Controllers.Totals()
	if tot.Connections != 1 || tot.Migrations != 1 {
		t.Errorf("server: %+v, want one connection that migrated once", tot)
	}
	var sum uint64
	for _, sp := range servers.of(false) {
		sum += sp.Snapshot().PacketsSent
	}
	if tot := scfg.Controllers.Totals(); tot.PacketsSent < sum {
		t.Errorf("%d packets sent in all, want the %d of both paths", tot.PacketsSent, sum)
	}
	_ = c.Close()
}

// relay is a NAT between one client and a server: rebind gives the client
// another address toward the server.
type relay struct {
	down net.PacketConn // the client's side
	wg   sync.WaitGroup

	mu     sync.Mutex
	server net.Addr
	client net.Addr
	up     []net.PacketConn // the last one is in use, all are read
}

func startRelay(t *testing.T, server net.Addr) *relay {
	r := &relay{down: testSocket(t), server: server}
	r.rebind(t)
	r.wg.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := r.down.ReadFrom(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.client = from
			up := r.up[len(r.up)-1]
			r.mu.Unlock()
			_, _ = up.WriteTo(buf[:n], r.server)
		}
	})
	t.Cleanup(func() {
		_ = r.down.Close()
		r.mu.Lock()
		for _, up := range r.up {
			_ = up.Close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *relay) addr() net.Addr { return r.down.LocalAddr() }

func (r *relay) upstream() net.PacketConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up[len(r.up)-1]
}

func (r *relay) rebind(t *testing.T) {
	up := testSocket(t)
	r.mu.Lock()
	r.up = append(r.up, up)
	r.mu.Unlock()
	r.wg.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, _, err := up.ReadFrom(buf)
			if err != nil {
				return
			}
			r.mu.Lock()
			client := r.client
			r.mu.Unlock()
			_, _ = r.down.WriteTo(buf[:n], client)
		}
	})
}

// cut loses everything from now on.
func (r *relay) cut() { _ = r.down.Close() }
