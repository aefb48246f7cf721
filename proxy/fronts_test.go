package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fastpacs/internal/selfsign"
	"fastpacs/proxy/quicnet"
)

// deadline bounds every wait of the Handler's tests; none waits that long unless it
// fails.
const deadline = 30 * time.Second

// front is one way in: a server for the handler under test and a client to it.
type front struct {
	name   string
	url    string // https
	client *http.Client
}

// handlerUnderTest is a Handler with a record of its exchanges.
type handlerUnderTest struct {
	*Handler
	exchanges chan Exchange
}

// newHandlerUnderTest makes a Handler for upstream, its settings changed by set.
func newHandlerUnderTest(t testing.TB, upstream string, set func(*HandlerConfig)) handlerUnderTest {
	t.Helper()
	cfg := DefaultHandlerConfig()
	cfg.Upstream = upstream
	if set != nil {
		set(&cfg)
	}
	exchanges := make(chan Exchange, 4096)
	h, err := NewHandler(cfg, slog.New(slog.NewTextHandler(t.Output(), nil)), func(_ *http.Request, e Exchange) {
		select {
		case exchanges <- e:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.CloseIdleConnections)
	return handlerUnderTest{h, exchanges}
}

// next is the record of the next exchange to end.
func (h handlerUnderTest) next(t testing.TB) Exchange {
	t.Helper()
	return receive(t, h.exchanges)
}

func (h handlerUnderTest) wantOutcome(t testing.TB, want Outcome) {
	t.Helper()
	if e := h.next(t); e.Outcome != want {
		t.Errorf("outcome %q, want %q", e.Outcome, want)
	}
}

func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(deadline):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// eachFront runs test with h behind HTTP/1.1, 2 and 3.
func eachFront(t *testing.T, h http.Handler, test func(t *testing.T, f front)) {
	t.Helper()
	for _, start := range []func(testing.TB, http.Handler) front{newHTTP1Front, newHTTP2Front, newHTTP3Front} {
		f := start(t, h)
		t.Run(f.name, func(t *testing.T) { test(t, f) })
	}
}

func newHTTP1Front(t testing.TB, h http.Handler) front { return newTCPFront(t, h, "h1") }
func newHTTP2Front(t testing.TB, h http.Handler) front { return newTCPFront(t, h, "h2") }

func newTCPFront(t testing.TB, h http.Handler, name string) front {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = name == "h2"
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.StartTLS()
	tr := s.Client().Transport.(*http.Transport).Clone()
	tr.DisableCompression = true
	tr.ExpectContinueTimeout = deadline
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		s.CloseClientConnections()
		s.Close()
	})
	return front{name, s.URL, clientOf(tr)}
}

func newHTTP3Front(t testing.TB, h http.Handler) front {
	t.Helper()
	pc, err := quicnet.ListenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr, stop := serveHTTP3(t, h, pc, func(c *tls.Config) (*quicnet.HTTPTransport, error) {
		return quicnet.NewHTTPTransport(c, quicnet.DefaultConfig())
	})
	t.Cleanup(stop)
	return front{"h3", "https://" + pc.LocalAddr().String(), clientOf(tr)}
}

// serveHTTP3 serves h on pc until stop is called, and makes a client to it.
func serveHTTP3(t testing.TB, h http.Handler, pc net.PacketConn, newClient func(*tls.Config) (*quicnet.HTTPTransport, error)) (tr *quicnet.HTTPTransport, stop func()) {
	t.Helper()
	cert, err := selfsign.New(time.Now(), 24*time.Hour, "pacs.test", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	s := &quicnet.HTTPServer{
		Handler: h,
		TLS:     &tls.Config{Certificates: []tls.Certificate{cert}},
		Config:  quicnet.DefaultConfig(),
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(pc) }()
	tr, err = newClient(&tls.Config{RootCAs: selfsign.Pool(cert)})
	if err != nil {
		t.Fatal(err)
	}
	return tr, func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		_ = pc.Close()
	}
}

func clientOf(tr http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     tr,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is a response read to its end.
type answer struct {
	*http.Response
	body    string
	bodyErr error
}

func (f front) do(t testing.TB, method, path string, body io.Reader, header http.Header) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, f.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		r.Header[k] = v
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
		r.Header.Del("Host")
	}
	res, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	return answer{res, string(b), err}
}

func (f front) get(t testing.TB, path string) answer {
	t.Helper()
	return f.do(t, http.MethodGet, path, nil, nil)
}

// newUpstream starts an archive that answers by h.
func newTestUpstream(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// newRawUpstream starts an archive that is a function of the connection; it is
// closed when the function returns.
func newRawUpstream(t testing.TB, serve func(c net.Conn, r *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(deadline))
				serve(c, bufio.NewReader(c))
			}()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return "http://" + l.Addr().String()
}

// rawClient is a connection to a plain HTTP/1.1 front.
type rawClient struct {
	net.Conn
	r *bufio.Reader
}

func newRawClient(t testing.TB, h http.Handler) rawClient {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.Start()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(deadline))
	t.Cleanup(func() {
		_ = c.Close()
		s.CloseClientConnections()
		s.Close()
	})
	return rawClient{c, bufio.NewReader(c)}
}

func (c rawClient) send(t testing.TB, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

// readHead returns the next status line and header, as they came.
func (c rawClient) readHead(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		if err != nil {
			t.Fatalf("after %q: %v", b.String(), err)
		}
		if line == "\r\n" {
			return b.String()
		}
		b.WriteString(line)
	}
}
