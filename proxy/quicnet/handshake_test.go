package quicnet

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// A client that tries 0-RTT is made to wait for the handshake: a request that
// was replayed could store or delete twice (RFC 8470).
func TestNo0RTT(t *testing.T) {
	p := startHTTP(t, serveEcho, nil)
	pc := testSocket(t)
	qtr := &quic.Transport{Conn: pc}
	defer qtr.Close()
	tlsConf := p.tls.client.Clone()
	tlsConf.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	for i := range 2 {
		var conn *quic.Conn
		tr := &http3.Transport{
			TLSClientConfig: tlsConf,
			Dial: func(ctx context.Context, _ string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
				c, err := qtr.DialEarly(ctx, p.addr, tc, qc)
				conn = c
				return c, err
			},
		}
		req := newGet(t, "/")
		req.Method = http3.MethodGet0RTT
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("status %d", resp.StatusCode)
		}
		st := conn.ConnectionState()
		if i == 1 && !st.TLS.DidResume {
			t.Error("the second connection does not resume the session: this test shows nothing")
		}
		if st.Used0RTT {
			t.Error("0-RTT was used")
		}
		_ = tr.Close()
	}
}

// With RetryAbove at 0 every client has to prove its address.
func TestRetry(t *testing.T) {
	for retryAbove, wantRetry := range map[int]bool{0: true, 128: false} {
		cfg := DefaultConfig()
		cfg.RetryAbove = retryAbove
		s := startEcho(t, cfg)
		wire := &retryCounter{UDPConn: testSocket(t)}
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		c, err := Dial(ctx, plainConn{wire}, s.addr, s.tls.client, DefaultConfig())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		echo(t, c, payload(1000, 1), nothing)
		_ = c.Close()
		if got := wire.retries.Load() > 0; got != wantRetry {
			t.Errorf("RetryAbove %d: %d Retry packets", retryAbove, wire.retries.Load())
		}
	}
}

// plainConn hides all that a UDP socket can do beyond net.PacketConn, so that
// each packet read passes through ReadFrom.
type plainConn struct{ net.PacketConn }

// retryCounter counts the Retry packets that arrive (RFC 9000 section 17.2.5).
type retryCounter struct {
	*net.UDPConn
	retries atomic.Int32
}

func (c *retryCounter) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := c.UDPConn.ReadFrom(b)
	if n > 0 && b[0]&0xf0 == 0xf0 {
		c.retries.Add(1)
	}
	return n, from, err
}

func TestHandshakesInProgressAreCounted(t *testing.T) {
	g := &gate{retryAbove: 2}
	if g.mustRetry(nil) {
		t.Error("an idle gate asks for a Retry")
	}
	ctx1, cancel1 := context.WithCancel(t.Context())
	ctx2, cancel2 := context.WithCancel(t.Context())
	defer cancel1()
	defer cancel2()
	in := &quic.ClientInfo{}
	ctx1, _ = g.enter(ctx1, in)
	ctx2, _ = g.enter(ctx2, in)
	if !g.mustRetry(nil) {
		t.Error("no Retry with two handshakes of two")
	}
	g.entered(ctx1) // complete
	g.entered(ctx1)
	if g.mustRetry(nil) {
		t.Error("a complete handshake counts")
	}
	cancel2() // given up
	eventually(t, "an abandoned handshake stops counting", func() bool { return g.pending.Load() == 0 })
	cancel1()
	if g.pending.Load() != 0 {
		t.Error("a handshake was taken back twice")
	}
	_ = ctx2
}
