package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fastpacs/proxy/quicnet"
)

// These tests run in virtual time: the network is in memory, and hours pass in
// milliseconds.

const testIdle = 10 * time.Second

// slowly is just within the time allowed for one byte.
const slowly = testIdle - time.Second

// world is a Handler between an archive and a client in one bubble.
type world struct {
	handlerUnderTest
	start time.Time
	close []func()
}

// newWorld makes a Handler whose archive is a function of the connection.
func newWorld(t *testing.T, set func(*HandlerConfig), archive func(c net.Conn, r *bufio.Reader)) *world {
	cfg := DefaultHandlerConfig()
	cfg.Upstream, cfg.BodyIdleTimeout = "http://archive.test", testIdle
	if set != nil {
		set(&cfg)
	}
	var served sync.WaitGroup
	dial := func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		served.Go(func() {
			defer far.Close()
			archive(far, bufio.NewReader(far))
		})
		return near, nil
	}
	exchanges := make(chan Exchange, 10)
	h, err := newHandler(cfg, dial, slog.New(slog.DiscardHandler), []Observer{func(_ *http.Request, e Exchange) { exchanges <- e }})
	if err != nil {
		t.Fatal(err)
	}
	return &world{handlerUnderTest{h, exchanges}, time.Now(), []func(){h.CloseIdleConnections, served.Wait}}
}

func (w *world) end() {
	for i := len(w.close) - 1; i >= 0; i-- {
		w.close[i]()
	}
}

// wantEnd checks how and when the exchange ended.
func (w *world) wantEnd(t *testing.T, want Outcome, at time.Duration) {
	t.Helper()
	if e := <-w.exchanges; e.Outcome != want {
		t.Errorf("outcome %q, want %q", e.Outcome, want)
	}
	if d := time.Since(w.start); at > 0 && d.Round(time.Second) != at {
		t.Errorf("ended after %v, want %v", d, at)
	}
}

// flushNothing does without the timer that flushes, which waits for a mutex while
// a write to the client lasts; virtual time would stand still.
func (w *world) flushNothing() { w.proxy.FlushInterval = 0 }

// http1 returns the client's end of a connection to an HTTP/1.1 server.
func (w *world) http1() rawClient {
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	s := &http.Server{Handler: w, ErrorLog: discardLog}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l)
	}()
	near, far := net.Pipe()
	l.conns <- far
	w.close = append(w.close, func() {
		_ = near.Close()
		_ = s.Close()
		<-served
		time.Sleep(time.Second) // the server lingers after some answers
	})
	return rawClient{near, bufio.NewReader(near)}
}

type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return memoryAddr("pipe") }

// http3 returns a client of an HTTP/3 server whose receive windows are small.
func (w *world) http3(t *testing.T) *http.Client {
	t.Setenv("QUIC_GO_DISABLE_RECEIVE_BUFFER_WARNING", "true") // for what is no UDP socket
	server, client := newMemoryNetwork()
	cfg := quicnet.DefaultConfig()
	cfg.MaxIdleTimeout, cfg.KeepAlivePeriod = 5*time.Second, 2*time.Second
	cfg.InitialStreamReceiveWindow, cfg.MaxStreamReceiveWindow = 64<<10, 64<<10
	cfg.InitialConnectionReceiveWindow, cfg.MaxConnectionReceiveWindow = 64<<10, 64<<10
	tr, stop := serveHTTP3(t, w, server, func(c *tls.Config) (*quicnet.HTTPTransport, error) {
		c.ServerName = "pacs.test"
		return quicnet.NewHTTPTransportOn(client, c, cfg)
	})
	tr.DialAddr = func(context.Context, string) (net.Addr, error) { return server.LocalAddr(), nil }
	w.close = append(w.close, func() {
		stop()
		_ = client.Close()
	})
	return clientOf(tr)
}

func answerWith(s string) func(net.Conn, *bufio.Reader) {
	return func(c net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(c, s)
			_, _ = r.ReadByte() // until it is let go
		}
	}
}

// Row W14: nothing ends an exchange that goes on, however slowly.
func TestW14SlowUpstreamIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			time.Sleep(slowly) // virtual
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
			for range 1000 {
				time.Sleep(slowly)
				_, _ = io.WriteString(c, "x")
			}
		})
		defer w.end()
		c := w.http1()
		c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\nConnection: close\r\n\r\n")
		c.readHead(t)
		if n, err := io.Copy(io.Discard, c.r); n != 1000 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
		w.wantEnd(t, OutcomeComplete, 1001*slowly)
	})
}

func TestW14SlowUploadIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, answerWith("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
		defer w.end()
		c := w.http1()
		c.send(t, "POST / HTTP/1.1\r\nHost: pacs.test\r\nContent-Length: 1000\r\n\r\n")
		for range 1000 {
			time.Sleep(slowly)
			c.send(t, "x")
		}
		if head := c.readHead(t); !strings.HasPrefix(head, "HTTP/1.1 200 ") {
			t.Errorf("%q", head)
		}
		w.wantEnd(t, OutcomeComplete, 1000*slowly)
	})
}

// An answer that began early waits for as long as the upload goes on.
func TestW14EarlyAnswerWaitsForUpload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(c net.Conn, r *bufio.Reader) {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(c, "ok")
		})
		defer w.end()
		c := w.http1()
		c.send(t, "POST / HTTP/1.1\r\nHost: pacs.test\r\nContent-Length: 100\r\n\r\n")
		c.readHead(t)
		for range 100 {
			time.Sleep(slowly)
			c.send(t, "x")
		}
		b := make([]byte, 2)
		if _, err := io.ReadFull(c.r, b); err != nil || string(b) != "ok" {
			t.Errorf("%q %v", b, err)
		}
		w.wantEnd(t, OutcomeComplete, 100*slowly)
	})
}

// The archive may take a long time to begin, but not for ever.
func TestSlowAnswerHeader(t *testing.T) {
	for after, want := range map[time.Duration]Outcome{9 * time.Minute: OutcomeComplete, 11 * time.Minute: OutcomeUpstreamTimeout} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, func(c net.Conn, r *bufio.Reader) {
				_, _ = http.ReadRequest(r)
				time.Sleep(after)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			})
			defer w.end()
			c := w.http1()
			c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\n\r\n")
			status := map[Outcome]string{OutcomeComplete: "200", OutcomeUpstreamTimeout: "504"}[want]
			if head := c.readHead(t); !strings.HasPrefix(head, "HTTP/1.1 "+status) {
				t.Errorf("%q", head)
			}
			w.wantEnd(t, want, min(after, 10*time.Minute))
		})
	}
}

func TestStalledUpstreamIsCut(t *testing.T) {
	for name, head := range map[string]string{
		"length":  "Content-Length: 100\r\n\r\nhello",
		"chunked": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
	} {
		answer := answerWith("HTTP/1.1 200 OK\r\n" + head)
		t.Run(name+"/h1", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, answer)
				defer w.end()
				c := w.http1()
				c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\n\r\n")
				res, err := http.ReadResponse(c.r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(res.Body); !strings.HasPrefix(string(b), "hello") || err == nil {
					t.Errorf("%q %v", b, err)
				}
				w.wantEnd(t, OutcomeUpstreamStalled, testIdle)
			})
		})
		t.Run(name+"/h3", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, nil, answer)
				defer w.end()
				res, err := w.http3(t).Get("https://pacs.test/")
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				if err == nil {
					t.Error("clean end")
				}
				w.wantEnd(t, OutcomeUpstreamStalled, testIdle)
			})
		})
	}
}

// An archive that stops taking a body is an archive that does not answer.
func TestUpstreamThatTakesNothingIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, nil, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			<-release
		})
		defer w.end()
		defer close(release)
		c := w.http1()
		go func() {
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: pacs.test\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 1_000_000))
		}()
		if head := c.readHead(t); !strings.HasPrefix(head, "HTTP/1.1 504 ") {
			t.Errorf("%q", head)
		}
		w.wantEnd(t, OutcomeUpstreamTimeout, testIdle)
	})
}

func TestStalledUploadIsCut(t *testing.T) {
	read := make(chan error, 2)
	archive := func(c net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			_, err = io.Copy(io.Discard, req.Body)
			read <- err
		}
	}
	t.Run("h1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, archive)
			defer w.end()
			c := w.http1()
			c.send(t, "POST / HTTP/1.1\r\nHost: pacs.test\r\nContent-Length: 10\r\n\r\nhello")
			if head := c.readHead(t); !strings.HasPrefix(head, "HTTP/1.1 408 ") || !strings.Contains(head, "Connection: close") {
				t.Errorf("%q", head)
			}
			w.wantEnd(t, OutcomeClientStalled, testIdle)
		})
	})
	t.Run("h3", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, archive)
			defer w.end()
			pr, pw := io.Pipe()
			go func() { _, _ = io.WriteString(pw, "hello") }()
			res, err := w.http3(t).Post("https://pacs.test/", "text/plain", pr)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			_ = pw.Close()
			if res.StatusCode != http.StatusRequestTimeout {
				t.Errorf("%d", res.StatusCode)
			}
			w.wantEnd(t, OutcomeClientStalled, testIdle)
		})
	})
	for range 2 {
		if err := <-read; err == nil {
			t.Error("the upstream saw a clean end")
		}
	}
}

func TestStalledClientIsCut(t *testing.T) {
	archive := answerWith("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 1_000_000))
	t.Run("h1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, archive)
			defer w.end()
			w.flushNothing()
			c := w.http1()
			c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\n\r\n")
			w.wantEnd(t, OutcomeClientStalled, testIdle)
		})
	})
	t.Run("h3", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, archive)
			defer w.end()
			w.flushNothing()
			res, err := w.http3(t).Get("https://pacs.test/")
			if err != nil {
				t.Fatal(err)
			}
			// The first write was taken in part, which is progress, so it is tried again.
			w.wantEnd(t, OutcomeClientStalled, 2*testIdle)
			if _, err := io.Copy(io.Discard, res.Body); err == nil {
				t.Error("clean end")
			}
			_ = res.Body.Close()
		})
	})
}

// The same in real time, with the buffers of TCP and the streams of HTTP/2.
func TestStalledTCPClientIsCut(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 64<<10))
		}
	}), func(c *HandlerConfig) { c.BodyIdleTimeout = 200 * time.Millisecond })
	t.Run("h1", func(t *testing.T) {
		c := newRawClient(t, h)
		c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\n\r\n")
		h.wantOutcome(t, OutcomeClientStalled)
		if b, err := io.ReadAll(c.r); err == nil && strings.HasSuffix(string(b), "\r\n0\r\n\r\n") {
			t.Error("clean end")
		}
	})
	t.Run("h2", func(t *testing.T) {
		f := newHTTP2Front(t, h)
		res, err := f.client.Get(f.url)
		if err != nil {
			t.Fatal(err)
		}
		h.wantOutcome(t, OutcomeClientStalled)
		if _, err := io.Copy(io.Discard, res.Body); err == nil {
			t.Error("clean end")
		}
		_ = res.Body.Close()
	})
}

// A client that takes a little now and then is served to the end, though one
// write to it lasts far longer than the idle time (HTTP/3).
func TestW14SlowClientIsNotCut(t *testing.T) {
	const size = 1 << 20
	archive := answerWith(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size) + strings.Repeat("x", size))
	read := func(t *testing.T, body io.Reader, piece int64, every time.Duration) {
		t.Helper()
		var n int64
		for {
			time.Sleep(every)
			m, err := io.CopyN(io.Discard, body, piece)
			n += m
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("after %d bytes: %v", n, err)
			}
		}
		if n != size {
			t.Errorf("%d bytes", n)
		}
	}
	t.Run("h1", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, archive)
			defer w.end()
			w.flushNothing()
			c := w.http1()
			c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\nConnection: close\r\n\r\n")
			c.readHead(t)
			read(t, c.r, tcpPieceSize, slowly)
			w.wantEnd(t, OutcomeComplete, 0)
		})
	})
	t.Run("h3", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil, archive)
			defer w.end()
			w.flushNothing()
			res, err := w.http3(t).Get("https://pacs.test/")
			if err != nil {
				t.Fatal(err)
			}
			read(t, res.Body, 4<<10, time.Second) // a window update every 4 s, a write every 32 s
			_ = res.Body.Close()
			w.wantEnd(t, OutcomeComplete, 0)
		})
	})
}

// A kept-alive connection is not cut by what an exchange on it left behind.
func TestNoDeadlineIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, func(c net.Conn, r *bufio.Reader) {
			if req, err := http.ReadRequest(r); err == nil {
				_, _ = io.Copy(io.Discard, req.Body)
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		defer w.end()
		c := w.http1()
		for range 5 {
			c.send(t, "POST / HTTP/1.1\r\nHost: pacs.test\r\nContent-Length: 2\r\n\r\nhi")
			c.readHead(t)
			if _, err := io.ReadFull(c.r, make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			w.wantEnd(t, OutcomeComplete, 0)
			time.Sleep(3 * testIdle)
		}
	})
}

// memoryAddr names an end of a connection in memory.
type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }

// memorySocket is one of two net.PacketConns that are joined in memory.
type memorySocket struct {
	addr memoryAddr
	in   chan []byte
	peer *memorySocket

	mu       sync.Mutex
	deadline chan struct{} // closed when reads have to end
	timer    *time.Timer
	closed   chan struct{}
	once     sync.Once
}

func newMemoryNetwork() (a, b *memorySocket) {
	a = &memorySocket{addr: "10.0.0.1:443", in: make(chan []byte, 1024), closed: make(chan struct{}), deadline: make(chan struct{})}
	b = &memorySocket{addr: "10.0.0.2:5555", in: make(chan []byte, 1024), closed: make(chan struct{}), deadline: make(chan struct{})}
	a.peer, b.peer = b, a
	return a, b
}

func (s *memorySocket) ReadFrom(p []byte) (int, net.Addr, error) {
	s.mu.Lock()
	deadline := s.deadline
	s.mu.Unlock()
	select {
	case b := <-s.in:
		return copy(p, b), s.peer.addr, nil
	case <-deadline:
		return 0, nil, os.ErrDeadlineExceeded
	case <-s.closed:
		return 0, nil, net.ErrClosed
	}
}

func (s *memorySocket) WriteTo(p []byte, _ net.Addr) (int, error) {
	select {
	case s.peer.in <- append([]byte(nil), p...):
	default: // dropped
	}
	return len(p), nil
}

func (s *memorySocket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	select {
	case <-s.deadline:
		s.deadline = make(chan struct{})
	default:
	}
	if d := s.deadline; !t.IsZero() {
		if wait := time.Until(t); wait <= 0 {
			close(d)
		} else {
			s.timer = time.AfterFunc(wait, func() { close(d) })
		}
	}
	return nil
}

func (s *memorySocket) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *memorySocket) LocalAddr() net.Addr              { return s.addr }
func (s *memorySocket) SetDeadline(t time.Time) error    { return s.SetReadDeadline(t) }
func (s *memorySocket) SetWriteDeadline(time.Time) error { return nil }
