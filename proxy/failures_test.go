package proxy

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// The end of an answer that breaks off must not look like its end: in each way
// that an archive can end one, on every front.
func TestG05TruncatedUpstream(t *testing.T) {
	for name, answer := range map[string]string{
		"length":         "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 99),
		"length, long":   "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + strings.Repeat("x", 300_000),
		"length, header": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
		"chunked":        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"within chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
		"within size":    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1",
		"no chunk":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		"bad chunk":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n",
		"json, rewritten": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"5\r\n[http\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandlerUnderTest(t, newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
				if _, err := http.ReadRequest(r); err == nil {
					_, _ = io.WriteString(c, answer)
				}
			}), func(c *HandlerConfig) { c.RewriteURLs = strings.Contains(name, "rewritten") })
			eachFront(t, h, func(t *testing.T, f front) {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, "GET", f.url, nil)
				res, err := f.client.Do(r)
				if err == nil {
					_, err = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				if err == nil || ctx.Err() != nil {
					t.Errorf("the client saw a clean end, or none: %v", ctx.Err())
				}
				h.wantOutcome(t, OutcomeUpstreamTruncated)
			})
		})
	}
}

func TestUpstreamFailures(t *testing.T) {
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refusing.Close()
	for _, tt := range []struct {
		name, upstream string
		status         int
		outcome        Outcome
	}{
		{"refused", "http://" + refusing.Addr().String(), 502, OutcomeUpstreamUnreachable},
		{"refused https", "https://" + refusing.Addr().String(), 502, OutcomeUpstreamUnreachable},
		{"closing", newRawUpstream(t, func(c net.Conn, r *bufio.Reader) { _, _ = r.ReadByte() }), 502, OutcomeUpstreamUnreachable},
		{"closing in header", newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le")
		}), 502, OutcomeUpstreamError},
		{"garbage", newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n\r\n")
		}), 502, OutcomeUpstreamError},
		{"huge header", newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 2<<20)+"\r\n\r\n")
		}), 502, OutcomeUpstreamError},
		{"invalid status", newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, "HTTP/1.1 000 Nothing\r\nContent-Length: 0\r\n\r\n")
		}), 502, OutcomeUpstreamError},
		{"no TLS", strings.Replace(newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = io.WriteString(c, "220 hello\r\n")
			_, _ = io.Copy(io.Discard, r)
		}), "http:", "https:", 1), 502, OutcomeUpstreamError},
		{"unasked upgrade", newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(io.Discard, r) // until it is let go
		}), 502, OutcomeUpstreamError},
		{"no answer", newRawUpstream(t, func(c net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) }), 504, OutcomeUpstreamTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHandlerUnderTest(t, tt.upstream, func(c *HandlerConfig) {
				if tt.status == http.StatusGatewayTimeout {
					c.ResponseHeaderTimeout = time.Second
				}
			})
			eachFront(t, h, func(t *testing.T, f front) {
				t.Parallel()
				a := f.get(t, "/studies?PatientName=SECRET")
				if a.StatusCode != tt.status || a.bodyErr != nil || a.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
					t.Errorf("%d %q %v", a.StatusCode, a.Header, a.bodyErr)
				}
				if !strings.Contains(a.body, "Administrator") || strings.Contains(a.body, "127.0.0.1") || strings.Contains(a.body, "SECRET") {
					t.Errorf("body %q", a.body)
				}
				h.wantOutcome(t, tt.outcome)
			})
		})
	}
}

// A client that goes away lets go of the archive at once, whatever it was
// waiting for.
func TestClientAborts(t *testing.T) {
	reached, released := make(chan struct{}, 1), make(chan error, 1)
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		switch r.URL.Path {
		case "/header": // never comes
			<-r.Context().Done()
		case "/body":
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					break
				}
			}
		case "/upload":
			_, err := io.Copy(io.Discard, r.Body)
			released <- err
			return
		}
		released <- r.Context().Err()
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for _, path := range []string{"/header", "/body", "/upload"} {
			ctx, cancel := context.WithCancel(t.Context())
			var body io.Reader
			method := "GET"
			if path == "/upload" {
				method, body = "POST", new(pattern) // without end
			}
			r, _ := http.NewRequestWithContext(ctx, method, f.url+path, body)
			done := make(chan struct{})
			go func() {
				defer close(done)
				res, err := f.client.Do(r)
				if err == nil {
					_, _ = io.CopyN(io.Discard, res.Body, 1<<20)
					cancel()
					_ = res.Body.Close()
				}
			}()
			receive(t, reached)
			if path != "/body" {
				cancel()
			}
			<-done
			cancel()
			if err := receive(t, released); err == nil {
				t.Errorf("%s: the upstream saw a clean end", path)
			}
			h.wantOutcome(t, OutcomeClientAborted)
		}
	})
}

// A body whose chunks are malformed is refused, and the archive sees it break off.
func TestMalformedRequestBody(t *testing.T) {
	read := make(chan error, 1)
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	}), nil)
	c := newRawClient(t, h)
	c.send(t, "POST / HTTP/1.1\r\nHost: pacs.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n")
	head := c.readHead(t)
	if !strings.HasPrefix(head, "HTTP/1.1 400 ") || !strings.Contains(head, "Connection: close\r\n") {
		t.Errorf("%q", head)
	}
	if err := receive(t, read); err == nil {
		t.Error("the upstream saw a clean end")
	}
	h.wantOutcome(t, OutcomeClientAborted)
}

// The ReverseProxy hands the panic on only under a server; recovery middleware
// must not be able to make a fake 500 of it.
func TestG05AbortPanicIsLetThrough(t *testing.T) {
	h := newHandlerUnderTest(t, newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nxx")
		}
	}), nil)
	panicked := make(chan any, 1)
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			panicked <- p
			panic(p)
		}()
		h.ServeHTTP(w, r)
	})
	eachFront(t, outer, func(t *testing.T, f front) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", f.url, nil)
		if res, err := f.client.Do(r); err == nil {
			_, err := io.Copy(io.Discard, res.Body)
			if err == nil {
				t.Error("clean end")
			}
			_ = res.Body.Close()
		}
		if p := receive(t, panicked); p != http.ErrAbortHandler {
			t.Errorf("panic %v", p)
		}
	})
}

// Neither the log nor the client may see what a confused archive sends instead of
// a status line, nor what was asked of it.
func TestLogHoldsNoData(t *testing.T) {
	var b bytes.Buffer
	cfg := DefaultHandlerConfig()
	cfg.Upstream = newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
		_, _ = http.ReadRequest(r)
		_, _ = io.WriteString(c, "DICM SECRET^NAME\r\n\r\n")
	})
	h, err := NewHandler(cfg, slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/patients/SECRET?PatientName=SECRET", nil)
	r.Header.Set("Authorization", "SECRET")
	h.ServeHTTP(w, r)
	if w.Code != 502 || !strings.Contains(b.String(), "malformed HTTP") {
		t.Errorf("%d, log %q", w.Code, b.String())
	}
	if strings.Contains(b.String()+w.Body.String(), "SECRET") {
		t.Errorf("log %q, body %q", b.String(), w.Body)
	}
}

func TestProbe(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Method)
		if r.URL.Path != "/orthanc/system" || r.Host != "pacs" {
			t.Errorf("%s %s", r.Host, r.URL)
		}
	})+"/orthanc", func(c *HandlerConfig) { c.UpstreamHost = "pacs" })
	if status, err := h.Probe(t.Context(), "/system"); status != 200 || err != nil {
		t.Errorf("%d %v", status, err)
	}
	broken := newHandlerUnderTest(t, newRawUpstream(t, func(net.Conn, *bufio.Reader) {}), nil)
	if _, err := broken.Probe(t.Context(), "/system"); err == nil {
		t.Error("no error from a broken upstream")
	}
}
