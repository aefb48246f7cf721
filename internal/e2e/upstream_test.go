package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestUpstreamDown asks for an archive that is not there, and again when it is.
func TestUpstreamDown(t *testing.T) {
	host := freePort(t)
	f := startFastpacs(t, "http://"+host)
	ctx := within(t, time.Minute)
	clients := make(map[string]*http.Client)
	for _, protocol := range protocols {
		clients[protocol] = f.client(t, protocol)
		got, err := get(ctx, clients[protocol], f.url("/dicom-web/studies"))
		if err != nil || got.status != http.StatusBadGateway {
			t.Errorf("%s: status %d, %v: want 502", protocol, got.status, err)
		}
	}
	if status, body, err := f.adminGet("/readyz"); err != nil || status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %s, %v: want 503", status, body, err)
	}
	if status, _, err := f.adminGet("/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("/healthz: %d, %v: want 200", status, err)
	}

	l, err := net.Listen("tcp4", host)
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewUnstartedServer(memoryArchive())
	_ = upstream.Listener.Close()
	upstream.Listener = l
	upstream.Start()
	t.Cleanup(upstream.Close)
	for _, protocol := range protocols {
		got, err := get(ctx, clients[protocol], f.url("/small"))
		if err != nil || got.status != http.StatusOK || len(got.body) != 64 {
			t.Errorf("%s: status %d, %d bytes, %v: want 200 now that the archive is there", protocol, got.status, len(got.body), err)
		}
	}
	eventually(t, 10*time.Second, func() error {
		if status, body, err := f.adminGet("/readyz"); err != nil || status != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s, %w", status, body, err)
		}
		return nil
	})
}

// TestUpstreamTruncates holds every client to see that a body broke off, and the
// next request to go well.
func TestUpstreamTruncates(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/dicom\r\n"
	block := strings.Repeat("x", 100_000)
	mux := http.NewServeMux()
	mux.Handle("/", memoryArchive())
	for path, answer := range map[string]string{
		"/length":  head + "Content-Length: 1000000\r\n\r\n" + block,
		"/chunked": head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(block), block),
		"/chunk":   head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s", 2*len(block), block),
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			_, _ = io.WriteString(c, answer)
		})
	}
	mux.HandleFunc("GET /nothing", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = c.Close()
	})
	upstream := httptest.NewServer(mux)
	t.Cleanup(upstream.Close)
	f := startFastpacs(t, upstream.URL)
	ctx := within(t, time.Minute)
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c := f.client(t, protocol)
			for _, path := range []string{"/length", "/chunked", "/chunk"} {
				if got, err := get(ctx, c, f.url(path)); err == nil {
					t.Errorf("GET %s: a clean end after %d bytes, status %d", path, len(got.body), got.status)
				}
				if got, err := get(ctx, c, f.url("/small")); err != nil || got.status != http.StatusOK {
					t.Errorf("after %s: status %d, %v", path, got.status, err)
				}
			}
			if got, err := get(ctx, c, f.url("/nothing")); err != nil || got.status != http.StatusBadGateway {
				t.Errorf("GET /nothing: status %d, %v: want 502", got.status, err)
			}
		})
	}
	if n := f.metric(t, "fastpacs_http_exchanges_total", "outcome=upstream_truncated"); n != 9 {
		t.Errorf("fastpacs counted %v truncated answers, want 9", n)
	}
}

// TestClientAborts holds fastpacs to let go of the archive, and of everything
// else, when clients leave in the middle.
func TestClientAborts(t *testing.T) {
	const rounds = 10
	gone := make(chan string, 3*rounds*2)
	mux := http.NewServeMux()
	mux.Handle("/", memoryArchive())
	mux.HandleFunc("GET /endless", func(w http.ResponseWriter, r *http.Request) {
		block := make([]byte, 64<<10)
		for {
			if _, err := w.Write(block); err != nil {
				gone <- "download"
				return
			}
		}
	})
	begun := make(chan struct{}, 1)
	mux.HandleFunc("POST /upload", func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.CopyN(io.Discard, r.Body, uploaded); err != nil {
			t.Errorf("upload: %v", err)
		}
		begun <- struct{}{}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			gone <- "upload"
		}
	})
	upstream := httptest.NewServer(mux)
	t.Cleanup(upstream.Close)
	f := startFastpacs(t, upstream.URL)
	ctx := within(t, time.Minute)
	for _, protocol := range protocols { // once, so that what stays is there
		if _, err := get(ctx, f.client(t, protocol), f.url("/small")); err != nil {
			t.Fatal(err)
		}
	}
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			c := f.client(t, protocol)
			before := f.metric(t, "go_goroutines")
			for range rounds {
				if err := abortDownload(ctx, c, f.url("/endless")); err != nil {
					t.Fatal(err)
				}
				if err := abortUpload(ctx, c, f.url("/upload"), begun); err != nil {
					t.Fatal(err)
				}
			}
			noticed := make(map[string]int)
			patience := within(t, 15*time.Second)
			for range 2 * rounds {
				select {
				case what := <-gone:
					noticed[what]++
				case <-patience.Done():
					t.Fatalf("of %d clients each that left, the archive noticed %v", rounds, noticed)
				}
			}
			eventually(t, 15*time.Second, func() error {
				// A connection of this client may be there, and the operator's.
				if now := f.metric(t, "go_goroutines"); now > before+12 {
					return fmt.Errorf("%v goroutines, %v before", now, before)
				}
				if n := f.metric(t, "fastpacs_http_requests_in_flight"); n != 0 {
					return fmt.Errorf("%v requests in flight", n)
				}
				return nil
			})
			if got, err := get(ctx, c, f.url("/small")); err != nil || got.status != http.StatusOK {
				t.Errorf("afterwards: status %d, %v", got.status, err)
			}
		})
	}
}

// abortDownload leaves after the first megabyte.
func abortDownload(ctx context.Context, c *http.Client, url string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.CopyN(io.Discard, resp.Body, 1<<20)
	cancel()
	return err
}

var errLeft = errors.New("the client has left")

// uploaded is what an upload sends before it breaks off, in bytes.
const uploaded = 1 << 20

// abortUpload breaks its body off when the archive has got the first megabyte.
func abortUpload(ctx context.Context, c *http.Client, url string, begun <-chan struct{}) error {
	body, w := io.Pipe()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		if _, err := w.Write(make([]byte, uploaded)); err != nil {
			return // the request failed before
		}
		select {
		case <-begun:
		case <-ctx.Done():
		}
		w.CloseWithError(errLeft)
	}()
	got, err := fetch(ctx, c, http.MethodPost, url, nil, body)
	_ = body.Close()
	<-sent
	if err == nil && got.status < 400 {
		return fmt.Errorf("POST: an upload that broke off was answered with %d", got.status)
	}
	return nil
}
