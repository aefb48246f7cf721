package proxy

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// staleUpstream answers one request on each connection and closes it when the
// next one comes, as an archive does whose keep-alive time is over just then.
type staleUpstream struct {
	mu       sync.Mutex
	answered map[string]int // requests answered, by method
	cut      map[string]int // requests on which the connection was closed
}

func (s *staleUpstream) serve(c net.Conn, r *bufio.Reader) {
	for first := true; ; first = false {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		s.mu.Lock()
		if !first {
			s.cut[req.Method]++
			s.mu.Unlock()
			return
		}
		s.answered[req.Method]++
		s.mu.Unlock()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok")
	}
}

// Requests that may be repeated are, when the connection turns out to be stale,
// on every front; the others go out once, on a connection that cannot be stale.
func TestG11StaleUpstreamConnections(t *testing.T) {
	s := &staleUpstream{answered: map[string]int{}, cut: map[string]int{}}
	h := newHandlerUnderTest(t, newRawUpstream(t, s.serve), func(c *HandlerConfig) { c.UpstreamIdleTimeout = time.Minute })
	const rounds = 10
	eachFront(t, h, func(t *testing.T, f front) {
		for range rounds {
			for _, method := range []string{"GET", "OPTIONS", "POST", "PUT", "DELETE"} {
				var body io.Reader
				if method == "POST" || method == "PUT" {
					body = io.MultiReader(strings.NewReader("once")) // of unknown length
				}
				if a := f.do(t, method, "/", body, nil); a.StatusCode != 200 || a.body != "ok" {
					t.Fatalf("%s: %d %q", method, a.StatusCode, a.body)
				}
			}
		}
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if s.cut[method] != 0 || s.answered[method] != 3*rounds {
			t.Errorf("%s was answered %d times and cut %d times", method, s.answered[method], s.cut[method])
		}
	}
	if s.cut["GET"] == 0 {
		t.Error("no GET met a stale connection: nothing was tested")
	}
}

// A request with a body is never sent a second time, whatever the client says
// about it.
func TestNonRepeatableIsSentOnce(t *testing.T) {
	var got atomic.Int32
	h := newHandlerUnderTest(t, newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
		if req, err := http.ReadRequest(r); err == nil {
			got.Add(1)
			_, _ = io.Copy(io.Discard, req.Body)
		}
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for _, method := range []string{"POST", "GET"} {
			got.Store(0)
			a := f.do(t, method, "/", strings.NewReader("x"), http.Header{"Idempotency-Key": {"1"}})
			if a.StatusCode != 502 || got.Load() != 1 {
				t.Errorf("%s: %d, sent %d times", method, a.StatusCode, got.Load())
			}
		}
	})
}

// Connections are given up before an archive that closes them after a second
// does.
func TestG11IdleConnectionsEndBeforeTheArchives(t *testing.T) {
	if d := DefaultHandlerConfig().UpstreamIdleTimeout; d <= 0 || d >= time.Second {
		t.Errorf("default is %v", d)
	}
	closed := make(chan struct{})
	h := newHandlerUnderTest(t, newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, _ = r.ReadByte()
		close(closed)
	}), func(c *HandlerConfig) { c.UpstreamIdleTimeout = 10 * time.Millisecond })
	newHTTP1Front(t, h).get(t, "/")
	receive(t, closed)
}

func TestParallelAndSequentialGETs(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), func(c *HandlerConfig) { c.MaxUpstreamConnections = 16 })
	eachFront(t, h, func(t *testing.T, f front) {
		var bad atomic.Int32
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 5 {
					if a := f.get(t, "/studies"); a.StatusCode != 200 {
						bad.Add(1)
					}
				}
			})
		}
		wg.Wait()
		for range 100 {
			if a := f.get(t, "/studies"); a.StatusCode != 200 {
				bad.Add(1)
			}
		}
		if bad.Load() != 0 {
			t.Errorf("%d failures", bad.Load())
		}
	})
}

func TestHTTPSUpstream(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(echo))
	defer s.Close()
	s.Config.ErrorLog = discardLog
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		set  func(*HandlerConfig)
		want int
	}{
		"unknown authority": {func(c *HandlerConfig) {}, 502},
		"CA file":           {func(c *HandlerConfig) { c.UpstreamCAFile = ca }, 200},
		"server name":       {func(c *HandlerConfig) { c.UpstreamCAFile, c.UpstreamServerName = ca, "example.com" }, 200},
		"other server name": {func(c *HandlerConfig) { c.UpstreamCAFile, c.UpstreamServerName = ca, "pacs.example" }, 502},
		"insecure":          {func(c *HandlerConfig) { c.UpstreamInsecure = true }, 200},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandlerUnderTest(t, s.URL, tt.set)
			f := newHTTP1Front(t, h)
			for _, method := range []string{"GET", "POST"} {
				if a := f.do(t, method, "/", nil, nil); a.StatusCode != tt.want {
					t.Errorf("%s: %d, want %d", method, a.StatusCode, tt.want)
				}
			}
		})
	}
}

func TestNoKeepAlive(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Close)
	}), func(c *HandlerConfig) { c.UpstreamIdleTimeout = 0 })
	if a := newHTTP1Front(t, h).get(t, "/"); a.body != "true" {
		t.Errorf("upstream was asked to keep the connection")
	}
}
