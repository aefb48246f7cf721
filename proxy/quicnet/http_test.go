package quicnet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"fastpacs/cc"
)

// httpPair is a running server and a client of it.
type httpPair struct {
	srv    *HTTPServer
	addr   net.Addr
	tls    testTLSPair
	served chan error
	tr     *HTTPTransport
	client *http.Client
}

// startHTTP serves on loopback until the test ends. change may be nil.
func startHTTP(t testing.TB, handler http.HandlerFunc, change func(*HTTPServer)) *httpPair {
	t.Helper()
	p := &httpPair{tls: newTestTLS(t), served: make(chan error, 1)}
	pc := testSocket(t)
	p.addr = pc.LocalAddr()
	p.srv = &HTTPServer{Handler: handler, TLS: p.tls.server, Config: DefaultConfig()}
	p.srv.Config.Controllers = &Controllers{}
	if change != nil {
		change(p.srv)
	}
	go func() { p.served <- p.srv.Serve(pc) }()
	p.tr = p.dialer(t)
	p.client = &http.Client{Transport: p.tr, Timeout: deadline}
	t.Cleanup(func() {
		if err := p.tr.Close(); err != nil {
			t.Error(err)
		}
		if err := p.srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-p.served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	})
	return p
}

// dialer returns a client with a connection of its own.
func (p *httpPair) dialer(t testing.TB) *HTTPTransport {
	t.Helper()
	tr, err := NewHTTPTransport(p.tls.client, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	tr.DialAddr = func(context.Context, string) (net.Addr, error) { return p.addr, nil }
	return tr
}

func (p *httpPair) get(t testing.TB, path string) (status int, body string) {
	t.Helper()
	resp, err := p.client.Get("https://pacs.test" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func serveEcho(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestHTTPBigBodiesBothWays(t *testing.T) {
	var path Path
	p := startHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 3 {
			t.Errorf("protocol %s", r.Proto)
		}
		serveEcho(w, r)
		path, _ = PathOf(r.Context())
	}, nil)
	body := payload(8<<20, 1)
	resp, err := p.client.Post("https://pacs.test/studies", "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("%d bytes with hash %x, %v", len(got), sha256.Sum256(got), err)
	}
	if s := path.Snapshot; s.Law != cc.LawImproved || s.PacketsSent < 1000 || path.Client {
		t.Errorf("the request came by %+v", path)
	}
	if _, ok := PathOf(t.Context()); ok {
		t.Error("any context has a path")
	}
	if n := p.srv.Config.Controllers.Len(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestHTTPParallelRequests(t *testing.T) {
	p := startHTTP(t, serveEcho, nil)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			want := payload(10_000+i, byte(i))
			resp, err := p.client.Post("https://pacs.test/", "", bytes.NewReader(want))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
				t.Errorf("request %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
	if n := p.srv.Config.Controllers.Totals().Connections; n != 1 {
		t.Errorf("%d connections for one host", n)
	}
}

func TestHTTPSmallestPackets(t *testing.T) {
	small := func(c *Config) { c.InitialPacketSize, c.DisablePathMTUDiscovery = minPacketSize, true }
	var largest atomic.Int64
	watch := func(c *Config) {
		c.NewController = func(client bool, mds int64, rtt cc.RTTSource) cc.Controller {
			return &sizes{cc.New(cc.LawImproved, mds, rtt), &largest}
		}
	}
	p := startHTTP(t, serveEcho, func(s *HTTPServer) { small(&s.Config); watch(&s.Config) })
	resp, err := p.client.Post("https://pacs.test/", "", bytes.NewReader(payload(1<<20, 1)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if n := largest.Load(); n == 0 || n > minPacketSize {
		t.Errorf("largest packet %d bytes, want at most %d", n, minPacketSize)
	}
}

// sizes notes the largest packet.
type sizes struct {
	cc.Controller
	largest *atomic.Int64
}

func (s *sizes) OnPacketSent(now, inFlight, pn, size int64, ackEliciting bool) {
	s.largest.Store(max(s.largest.Load(), size))
	s.Controller.OnPacketSent(now, inFlight, pn, size, ackEliciting)
}

func TestHTTPHeaderLimit(t *testing.T) {
	p := startHTTP(t, serveEcho, func(s *HTTPServer) { s.MaxHeaderBytes = 8 << 10 })
	req, err := http.NewRequest("GET", "https://pacs.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Long", strings.Repeat("x", 16<<10))
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("status %d, want 431", resp.StatusCode)
	}
	if status, _ := p.get(t, "/"); status != http.StatusOK {
		t.Errorf("then status %d", status)
	}
}

func TestHTTPShutdownDrains(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	p := startHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			_, _ = io.WriteString(w, "first half, ")
			_ = http.NewResponseController(w).Flush()
			close(entered)
			<-release
		}
		_, _ = io.WriteString(w, "whole")
	}, nil)
	slow := make(chan string, 1)
	go func() {
		resp, err := p.client.Get("https://pacs.test/slow")
		if err != nil {
			slow <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		slow <- fmt.Sprint(string(b), " ", err)
	}()
	<-entered
	idle := p.dialer(t) // a connection without a request
	defer idle.Close()
	if resp, err := idle.RoundTrip(newGet(t, "/")); err != nil {
		t.Fatal(err)
	} else {
		_ = resp.Body.Close()
	}

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	shut := make(chan error, 1)
	go func() { shut <- p.srv.Shutdown(ctx) }()
	late := p.dialer(t)
	defer late.Close()
	eventually(t, "new connections are refused", func() bool {
		resp, err := late.RoundTrip(newGet(t, "/"))
		if err == nil {
			_ = resp.Body.Close()
			late.CloseIdleConnections()
		}
		return err != nil && strings.Contains(err.Error(), "CONNECTION_REFUSED")
	})
	select {
	case err := <-shut:
		t.Fatalf("Shutdown returned %v before the last request was answered", err)
	default:
	}
	close(release)
	if got := <-slow; got != "first half, whole <nil>" {
		t.Errorf("the request under way got %q", got)
	}
	if err := <-shut; err != nil {
		t.Error(err)
	}
	err := <-p.served
	p.served <- err
	if !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve returned %v", err)
	}
	if err := p.srv.Serve(testSocket(t)); !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve after Shutdown returned %v", err)
	}
	eventually(t, "connections leave the registry", func() bool { return p.srv.Config.Controllers.Len() == 0 })
}

func newGet(t testing.TB, path string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", "https://pacs.test"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestHTTPShutdownDeadline(t *testing.T) {
	entered, left := make(chan struct{}), make(chan struct{})
	p := startHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(left)
	}, nil)
	got := make(chan error, 1)
	go func() {
		resp, err := p.client.Get("https://pacs.test/")
		if err == nil {
			_ = resp.Body.Close()
		}
		got <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown returned %v", err)
	}
	<-left
	if err := <-got; err == nil {
		t.Error("the aborted request succeeded")
	}
}

// A client that closes nothing by itself does not hold the server up.
func TestHTTPShutdownEndsIdleConnections(t *testing.T) {
	p := startHTTP(t, serveEcho, nil)
	c := p.dialRaw(t, &quic.Config{KeepAlivePeriod: 10 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if _, err := c.AcceptUniStream(ctx); err != nil { // the server's control stream
		t.Fatal(err)
	}
	start := time.Now()
	if err := p.srv.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d < drainLinger || d > deadline/2 {
		t.Errorf("Shutdown took %v, want about %v", d, drainLinger)
	}
	if code := p.closes(t, c); code != http3.ErrCodeNoError {
		t.Errorf("the connection was closed with %v, want H3_NO_ERROR", code)
	}
}

// A request whose header never ends is no reason to keep a connection, whatever
// PINGs come.
func TestHTTPSlowHeaderIsIdle(t *testing.T) {
	p := startHTTP(t, serveEcho, func(s *HTTPServer) { s.IdleTimeout = 100 * time.Millisecond })
	c := p.dialRaw(t, &quic.Config{KeepAlivePeriod: 10 * time.Millisecond})
	st, err := c.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write([]byte{1, 0x40}); err != nil { // HEADERS, and half a length
		t.Fatal(err)
	}
	if code := p.closes(t, c); code != http3.ErrCodeNoError {
		t.Errorf("the connection was closed with %v, want H3_NO_ERROR", code)
	}
}

// So is a client that leaves no room for the server's control stream (RFC 9114
// section 6.2.1).
func TestHTTPWithoutControlStream(t *testing.T) {
	p := startHTTP(t, serveEcho, nil)
	p.closes(t, p.dialRaw(t, &quic.Config{KeepAlivePeriod: 10 * time.Millisecond, MaxIncomingUniStreams: -1}))
}

// dialRaw connects to the server without speaking HTTP/3: it reacts to nothing.
func (p *httpPair) dialRaw(t *testing.T, qc *quic.Config) *quic.Conn {
	t.Helper()
	tr := &quic.Transport{Conn: testSocket(t)}
	h3 := p.tls.client.Clone()
	h3.NextProtos = []string{http3.NextProtoH3}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c, err := tr.Dial(ctx, p.addr, h3, qc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.CloseWithError(0, "")
		_ = tr.Close()
	})
	return c
}

// closes fails the test unless the server closes c, and returns the reason.
func (p *httpPair) closes(t *testing.T, c *quic.Conn) http3.ErrCode {
	t.Helper()
	select {
	case <-c.Context().Done():
	case <-time.After(deadline):
		t.Fatal("the connection stays")
	}
	var closed *quic.ApplicationError
	if err := context.Cause(c.Context()); !errors.As(err, &closed) || !closed.Remote {
		t.Errorf("the connection ended by %v, want the server", err)
		return 0
	}
	eventually(t, "the connection leaves the registry", func() bool { return p.srv.Config.Controllers.Len() == 0 })
	return http3.ErrCode(closed.ErrorCode)
}

// A handler that runs is activity, however little it sends.
func TestHTTPRunningHandlerIsNotIdle(t *testing.T) {
	p := startHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(300 * time.Millisecond):
			_, _ = io.WriteString(w, "answer")
		case <-r.Context().Done():
		}
	}, func(s *HTTPServer) { s.IdleTimeout = 50 * time.Millisecond })
	if status, body := p.get(t, "/"); status != 200 || body != "answer" {
		t.Errorf("got %d %q", status, body)
	}
	eventually(t, "then the connection goes", func() bool { return p.srv.Config.Controllers.Len() == 0 })
}

func TestHTTPAdmit(t *testing.T) {
	var asked, released atomic.Int32
	p := startHTTP(t, serveEcho, func(s *HTTPServer) {
		s.Admit = func(remote net.Addr) (func(), error) {
			if asked.Add(1) > 1 {
				return nil, errors.New("full")
			}
			return func() { released.Add(1) }, nil
		}
	})
	if status, _ := p.get(t, "/"); status != 200 {
		t.Fatal(status)
	}
	second := p.dialer(t)
	defer second.Close()
	if resp, err := second.RoundTrip(newGet(t, "/")); err == nil || !strings.Contains(err.Error(), "CONNECTION_REFUSED") {
		if err == nil {
			_ = resp.Body.Close()
		}
		t.Errorf("the second connection got %v", err)
	}
	if released.Load() != 0 {
		t.Error("released early")
	}
	p.tr.CloseIdleConnections()
	eventually(t, "the place is given back", func() bool { return released.Load() == 1 })
}

func TestHTTPServerRefusesHalfAServer(t *testing.T) {
	pc := testSocket(t)
	for _, s := range []*HTTPServer{
		{},
		{Handler: http.NotFoundHandler(), Config: DefaultConfig()},
		{Handler: http.NotFoundHandler(), TLS: newTestTLS(t).server},
	} {
		if err := s.Serve(pc); err == nil || errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve returned %v", err)
		}
	}
}

// http3 logs request URIs at level Debug; a PACS's hold patient data.
func TestHTTPLogsNoURIs(t *testing.T) {
	var log bytes.Buffer
	p := startHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/panic" {
			panic("oh no")
		}
	}, func(s *HTTPServer) {
		s.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	if status, _ := p.get(t, "/studies?PatientName=DOE"); status != 200 {
		t.Fatal(status)
	}
	if resp, err := p.client.Get("https://pacs.test/panic?PatientName=DOE"); err == nil {
		_ = resp.Body.Close()
		t.Error("a panicking handler answers")
	}
	if err := p.srv.Close(); err != nil { // waits for the handlers
		t.Error(err)
	}
	if s := log.String(); strings.Contains(s, "DOE") || !strings.Contains(s, "oh no") {
		t.Errorf("the log says %q", s)
	}
}
