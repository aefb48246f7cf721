package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fastpacs/proxy/quicnet"
)

// baseline is what a quiet server uses.
type baseline struct {
	goroutines int
	heap       uint64
}

func takeBaseline(rs *runningServer) baseline {
	for _, p := range protocols {
		c := rs.client(p)
		rs.get(c, rs.url("/")) // so that pools and caches exist
		hangUp(c)
	}
	eventually(rs.t, "no connections", func() bool { return rs.server.connections() == 0 })
	return baseline{runtime.NumGoroutine(), heap()}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // sync.Pools live through one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// connections is the number of admitted connections.
func (s *Server) connections() int {
	s.admission.mu.Lock()
	defer s.admission.mu.Unlock()
	return s.admission.total
}

// held asserts that the server has given back what hostile peers took, and
// serves all protocols on.
func (b baseline) held(rs *runningServer) {
	rs.t.Helper()
	eventually(rs.t, "all connections given back", func() bool { return rs.server.connections() == 0 })
	const fewGoroutines, littleHeap = 20, 8 << 20
	eventually(rs.t, "goroutines back near the baseline", func() bool { return runtime.NumGoroutine() <= b.goroutines+fewGoroutines })
	eventually(rs.t, "heap back near the baseline", func() bool { return heap() <= b.heap+littleHeap })
	for _, p := range protocols {
		if res, body := rs.get(rs.client(p), rs.url("/alive")); res.StatusCode != http.StatusOK || body != "/alive" {
			rs.t.Errorf("%s afterwards: %d %q", p, res.StatusCode, body)
		}
	}
	if n := rs.metric("fastpacs_http_panics_total"); n != 0 {
		rs.t.Errorf("%v handlers panicked", n)
	}
}

func random(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.Read(p)
	return p
}

func TestGarbageOnTCP(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	before := takeBaseline(rs)
	failures := rs.metric("fastpacs_tls_handshake_failures_total")
	const peers = 200
	for i := range peers {
		c, err := net.Dial("tcp", rs.addr)
		if err != nil {
			t.Fatal(err)
		}
		garbage := [][]byte{
			random(500),
			[]byte("GET / HTTP/1.1\r\nHost: pacs.test\r\n\r\n"),
			append([]byte{0x16, 3, 1, 0x40, 0}, random(100)...), // a TLS record cut short
			{0x16, 3, 1, 0xff, 0xff},                            // one too long
			{1, 0, 0, 0, 205},                                   // A-ASSOCIATE-RQ
		}[i%5]
		_, _ = c.Write(garbage)
		if i%2 == 0 {
			_ = c.(*net.TCPConn).CloseWrite()
			_ = c.SetReadDeadline(time.Now().Add(patience))
			if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("peer %d was not closed", i)
			}
		}
		_ = c.Close()
	}
	eventually(t, "handshake failures counted", func() bool {
		return rs.metric("fastpacs_tls_handshake_failures_total") == failures+peers
	})
	before.held(rs)
	if n := strings.Count(rs.log.String(), "TLS handshake error"); n == 0 || n > peers/2 {
		t.Errorf("%d lines of log for %d peers, want some and not many", n, peers)
	}
}

func TestGarbageOnUDP(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	before := takeBaseline(rs)
	c, err := net.Dial("udp", rs.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for i := range 5000 {
		p := random(1 + i%1400)
		switch i % 4 {
		case 1: // long header, version 1, Initial
			copy(p, []byte{0xc3, 0, 0, 0, 1, 8})
		case 2: // unknown version
			copy(p, []byte{0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8})
		case 3: // short header
			p[0] = 0x40 | p[0]&0x3f
		}
		_, _ = c.Write(p)
	}
	before.held(rs)
}

func TestOversizedHeaders(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.MaxHeaderBytes = 8 << 10 })
	before := takeBaseline(rs)
	for _, protocol := range protocols {
		c := rs.client(protocol)
		for _, size := range []int{4 << 10, 64 << 10, 900 << 10} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, rs.url("/"), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Large", strings.Repeat("x", size))
			res, err := c.Do(req)
			var status int
			if err == nil {
				status = res.StatusCode
				_ = res.Body.Close()
			}
			switch {
			case size < 8<<10 && status != http.StatusOK:
				t.Errorf("%s: %d bytes of header: %d %v, want 200", protocol, size, status, err)
			case size > 8<<10 && status != http.StatusRequestHeaderFieldsTooLarge && err == nil:
				t.Errorf("%s: %d bytes of header: %d, want 431 or a closed stream", protocol, size, status)
			}
		}
		hangUp(c)
	}
	before.held(rs)
}

// Peers that dribble: a TLS handshake, or a request's header, that never ends.
func TestSlowPeers(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) {
		c.ReadHeaderTimeout = 300 * time.Millisecond
		c.IdleTimeout = time.Second // what bounds an HTTP/2 header
	})
	before := takeBaseline(rs)
	var peers sync.WaitGroup
	closed := func(what string, c net.Conn) {
		defer func() { _ = c.Close() }()
		_ = c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
			t.Errorf("%s was not closed", what)
		}
	}
	for range 50 {
		c, err := net.Dial("tcp", rs.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte{0x16, 3, 1})
		peers.Go(func() { closed("half a TLS record", c) })

		tc, err := tls.Dial("tcp", rs.addr, rs.tls())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(tc, "GET / HTTP/1.1\r\nHost: pacs.test\r\nX-Slow: ")
		peers.Go(func() { closed("half a header", tc) })
	}
	for range 20 {
		cfg := rs.tls()
		cfg.NextProtos = []string{"h2"}
		c, err := tls.Dial("tcp", rs.addr, cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+
			"\x00\x00\x00\x04\x00\x00\x00\x00\x00"+ // SETTINGS, empty
			"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82") // HEADERS of stream 1, ":method: GET", to be continued
		peers.Go(func() { closed("half an HTTP/2 header", c) })
	}
	peers.Wait()
	before.held(rs)
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

func TestManyTCPConnectionsDropped(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	before := takeBaseline(rs)
	const total, workers = 10_000, 20
	var peers sync.WaitGroup
	for w := range workers {
		peers.Go(func() {
			for i := range total / workers {
				c, err := net.Dial("tcp", rs.addr)
				if err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
				if (w+i)%3 == 0 {
					_, _ = c.Write([]byte{0x16, 3, 1, 2})
				}
				_ = c.(*net.TCPConn).SetLinger(0) // gone at once
				_ = c.Close()
			}
		})
	}
	peers.Wait()
	before.held(rs)
}

func TestManyQUICHandshakesDropped(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) {
		c.QUIC.HandshakeTimeout = 500 * time.Millisecond
		c.QUIC.MaxIdleTimeout = time.Second
	})
	before := takeBaseline(rs)
	const total, workers = 240, 8
	var peers sync.WaitGroup
	for range workers {
		peers.Go(func() {
			for i := range total / workers {
				pc, err := quicnet.ListenUDP("127.0.0.1:0")
				if err != nil {
					t.Error(err)
					return
				}
				server, err := net.ResolveUDPAddr("udp", rs.addr)
				if err != nil {
					t.Error(err)
					return
				}
				cfg := rs.tls()
				cfg.NextProtos = []string{"h3"}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if i%2 == 0 { // gone in the middle of the handshake
					ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
				}
				c, err := quicnet.Dial(ctx, dropped{pc, ctx}, server, cfg, quicnet.DefaultConfig())
				if err == nil && i%4 == 1 {
					_ = pc.Close() // without a word, right after the handshake
				}
				if c != nil {
					_ = c.Close()
				}
				cancel()
				_ = pc.Close()
			}
		})
	}
	peers.Wait()
	before.held(rs)
}

// dropped is a socket that sends nothing once its context has ended, as a
// client that is switched off.
type dropped struct {
	*net.UDPConn
	ctx context.Context
}

func (d dropped) WriteTo(p []byte, to net.Addr) (int, error) {
	if d.ctx.Err() != nil {
		return len(p), nil
	}
	return d.UDPConn.WriteTo(p, to)
}

// A client that goes in the middle of a body, either way, takes the upstream's
// part with it.
func TestClientsAbort(t *testing.T) {
	var inArchive atomic.Int64
	archive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			inArchive.Add(1)
			defer inArchive.Add(-1)
			chunk := make([]byte, 32<<10)
			for r.Context().Err() == nil {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		case "/swallow":
			inArchive.Add(1)
			defer inArchive.Add(-1)
			_, _ = io.Copy(io.Discard, r.Body)
		default:
			fakeArchive(w, r)
		}
	})
	rs := startServer(t, archive)
	before := takeBaseline(rs)
	for _, protocol := range protocols {
		c := rs.client(protocol)
		const each = 4
		for range each {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, rs.url("/endless"), nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
				t.Errorf("%s download: %v", protocol, err)
			}
			cancel()
			_ = res.Body.Close()

			ctx, cancel = context.WithCancel(t.Context())
			body, feed := io.Pipe()
			req, err = http.NewRequestWithContext(ctx, http.MethodPost, rs.url("/swallow"), body)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = feed.Write(make([]byte, 1<<20))
				cancel()
				_ = feed.CloseWithError(context.Canceled) // or the client's own transport waits for it
			}()
			if res, err := c.Do(req); err == nil {
				_ = res.Body.Close()
				t.Errorf("%s: an upload that was cut got status %d", protocol, res.StatusCode)
			}
			cancel()
		}
		eventually(t, protocol+" aborts counted", func() bool {
			return rs.metric("fastpacs_http_exchanges_total", "protocol="+protocol, "outcome=client_aborted") == 2*each
		})
		hangUp(c)
	}
	eventually(t, "the archive was let go of", func() bool { return inArchive.Load() == 0 })
	before.held(rs)
}

// CVE-2023-44487: requests that are reset as soon as they are sent.
func TestHTTP2RapidReset(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.MaxStreamsPerConnection = 16 })
	before := takeBaseline(rs)
	c := rs.client("h2")
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				trace := &httptrace.ClientTrace{WroteHeaders: cancel}
				req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodGet, rs.url("/n/1000000"), nil)
				if err != nil {
					t.Error(err)
					return
				}
				if res, err := c.Do(req); err == nil {
					_ = res.Body.Close()
				}
				cancel()
			}
		})
	}
	clients.Wait()
	eventually(t, "the client's connections closed", func() bool {
		hangUp(c) // they count as busy until their last reset is confirmed
		return rs.server.connections() == 0
	})
	before.held(rs)
}

func TestConnectionLimits(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.MaxConnectionsPerAddress = 3 })
	var held []net.Conn
	dial := func() (net.Conn, error) { return tls.Dial("tcp", rs.addr, rs.tls()) }
	for range 2 {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	h3 := rs.client("h3")
	rs.get(h3, rs.url("/")) // the third

	if c, err := dial(); err == nil {
		t.Error("a fourth connection was taken")
		_ = c.Close()
	}
	if res, err := rs.client("h3").Get(rs.url("/")); err == nil {
		t.Error("a fourth connection was taken, over QUIC")
		_ = res.Body.Close()
	}
	for _, transport := range []string{"tcp", "quic"} {
		if n := rs.metric("fastpacs_connections_refused_total", "transport="+transport, "limit=address"); n < 1 { // QUIC clients try again
			t.Errorf("%v refusals on %s, want some", n, transport)
		}
	}
	rs.get(h3, rs.url("/")) // those inside are served on

	for _, c := range held {
		_ = c.Close()
	}
	hangUp(h3)
	eventually(t, "places given back", func() bool { return rs.server.connections() == 0 })
	for _, p := range protocols {
		rs.get(rs.client(p), rs.url("/"))
	}
}

// Two requests in one write, the second with a malformed line: the first is
// answered, the second refused, and the connection closed.
func TestMalformedRequestLine(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	c, err := tls.Dial("tcp", rs.addr, rs.tls())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, "GET /a HTTP/1.1\r\nHost: pacs.test\r\n\r\nGET\x00/b\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for i, want := range []int{http.StatusOK, http.StatusBadRequest} {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		if res.StatusCode != want {
			t.Errorf("answer %d: %d, want %d", i, res.StatusCode, want)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || len(bytes.TrimSpace(rest)) != 0 {
		t.Errorf("after the refusal: %q, %v; want the end", rest, err)
	}
}

// A handler that fails breaks one body off, is counted and logged, and shows no
// one's data.
func TestPanickingHandler(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	h := &telemetry{
		next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(fmt.Sprintf("cannot serve %s", "DOE^JOHN"))
		}),
		metrics: rs.server.metrics, log: rs.server.log, running: &rs.server.running,
	}
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // exactly this value
				t.Errorf("recovered %v, want http.ErrAbortHandler", v)
			}
		}()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/x?PatientName=DOE", nil)
		if err != nil {
			t.Fatal(err)
		}
		h.ServeHTTP(discardWriter{}, req)
	}()
	if n := rs.metric("fastpacs_http_panics_total"); n != 1 {
		t.Errorf("%v panics counted, want 1", n)
	}
	if n := rs.metric("fastpacs_http_exchanges_total", "outcome=failed"); n != 1 {
		t.Errorf("%v failed exchanges counted, want 1", n)
	}
	log := rs.log.String()
	if !strings.Contains(log, "TestPanickingHandler") || strings.Contains(log, "DOE") {
		t.Errorf("log lacks the stack or has the value:\n%s", log)
	}
}

type discardWriter struct{}

func (discardWriter) Header() http.Header         { return http.Header{} }
func (discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (discardWriter) WriteHeader(int)             {}
