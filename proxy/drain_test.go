package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// halfway is an archive that sends half of its body and waits.
type halfway struct {
	first, second string
	goOn          chan struct{}
}

func newHalfway() *halfway {
	return &halfway{strings.Repeat("a", 100_000), strings.Repeat("b", 100_000), make(chan struct{})}
}

func (h *halfway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/study" {
		fakeArchive(w, r)
		return
	}
	_, _ = io.WriteString(w, h.first)
	_ = http.NewResponseController(w).Flush()
	select {
	case <-h.goOn:
		_, _ = io.WriteString(w, h.second)
	case <-r.Context().Done():
	}
}

// begin starts the download and reads its first half.
func (h *halfway) begin(t *testing.T, rs *runningServer, c *http.Client) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, rs.url("/study"), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, res.Body, int64(len(h.first))); err != nil {
		t.Fatal(err)
	}
	return res
}

func TestDrainFinishesDownloads(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			archive := newHalfway()
			rs := startServer(t, archive)
			res := archive.begin(t, rs, rs.client(protocol))
			defer func() { _ = res.Body.Close() }()
			if res, body := rs.get(http.DefaultClient, rs.admin+"/readyz"); res.StatusCode != http.StatusOK {
				t.Errorf("/readyz before the end: %d %s", res.StatusCode, body)
			}

			rs.stop()
			eventually(t, "TCP connections are refused", func() bool {
				c, err := net.Dial("tcp", rs.addr)
				if err == nil {
					_ = c.Close()
				}
				return err != nil
			})
			// Once HTTP/3 has drained, nothing answers there at all.
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, rs.url("/"), nil)
			if err != nil {
				t.Fatal(err)
			}
			if res, err := rs.client("h3").Do(req); err == nil {
				_ = res.Body.Close()
				t.Error("a new HTTP/3 connection was taken while draining")
			}
			if res, body := rs.get(http.DefaultClient, rs.admin+"/readyz"); res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
				t.Errorf("/readyz while draining: %d %s", res.StatusCode, body)
			}
			if res, _ := rs.get(http.DefaultClient, rs.admin+"/healthz"); res.StatusCode != http.StatusOK {
				t.Errorf("/healthz while draining: %d", res.StatusCode)
			}
			http.DefaultClient.CloseIdleConnections()

			close(archive.goOn)
			rest, err := io.ReadAll(res.Body)
			if err != nil || string(rest) != archive.second {
				t.Errorf("second half: %d bytes, %v; want %d", len(rest), err, len(archive.second))
			}
			select {
			case err := <-rs.done:
				if err != nil {
					t.Errorf("Run = %v", err)
				}
			case <-time.After(patience):
				t.Fatal("Run does not return")
			}
			if strings.Contains(rs.log.String(), "cutting") {
				t.Error("the drain timeout passed")
			}
		})
	}
}

func TestDrainTimeoutCuts(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			archive := newHalfway() // never goes on
			rs := startServer(t, archive, func(c *Config) { c.DrainTimeout = 100 * time.Millisecond })
			res := archive.begin(t, rs, rs.client(protocol))
			defer func() { _ = res.Body.Close() }()
			rs.stop()
			if rest, err := io.ReadAll(res.Body); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the download ended with %d more bytes and %v, want a broken body", len(rest), err)
			}
			select {
			case err := <-rs.done:
				if err != nil {
					t.Errorf("Run = %v", err)
				}
			case <-time.After(patience):
				t.Fatal("Run does not return")
			}
			if !strings.Contains(rs.log.String(), "cutting") {
				t.Error("the log does not say that something was cut")
			}
			if n := rs.server.running.Load(); n != 0 {
				t.Errorf("%d handlers still run after Run", n)
			}
		})
	}
}

// An idle connection of any protocol must not hold the drain up.
func TestDrainDoesNotWaitForIdleConnections(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	for _, p := range protocols {
		rs.get(rs.client(p), rs.url("/"))
	}
	rs.stop()
	select {
	case err := <-rs.done:
		if err != nil {
			t.Errorf("Run = %v", err)
		}
	case <-time.After(patience / 2): // DrainTimeout is patience
		t.Fatal("Run waits for idle connections")
	}
}
