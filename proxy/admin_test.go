package proxy

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestAdmin(t *testing.T) {
	var down atomic.Bool
	var asked atomic.Int64
	var method, path atomic.Value
	archive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method.Store(r.Method)
		path.Store(r.URL.Path)
		asked.Add(1)
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	rs := startServer(t, archive, func(c *Config) {
		c.ReadyPath, c.ReadyCacheTime, c.ReadyInterval = "/system", 0, time.Hour
	})
	defer http.DefaultClient.CloseIdleConnections()
	status := func(path, wantBody string) int {
		t.Helper()
		res, body := rs.get(http.DefaultClient, rs.admin+path)
		if !strings.Contains(body, wantBody) {
			t.Errorf("%s: body %q, want %q in it", path, cut(body, 200), wantBody)
		}
		return res.StatusCode
	}
	for path, want := range map[string]string{"/": "fastpacs test", "/healthz": "ok", "/readyz": "ready", "/metrics": "fastpacs_build_info"} {
		if got := status(path, want); got != http.StatusOK {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := status("/debug/pprof/", ""); got != http.StatusNotFound {
		t.Errorf("/debug/pprof/: %d, want 404", got)
	}
	// W19: archives answer HEAD with 404.
	if method.Load() != http.MethodGet || path.Load() != "/system" {
		t.Errorf("the upstream was probed by %v %v", method.Load(), path.Load())
	}
	if up := rs.metric("fastpacs_upstream_up"); up != 1 {
		t.Errorf("fastpacs_upstream_up = %v", up)
	}

	down.Store(true)
	if got := status("/readyz", "not ready: proxy: the upstream answers with status 503"); got != http.StatusServiceUnavailable {
		t.Errorf("/readyz with the upstream down: %d", got)
	}
	if got := status("/healthz", "ok"); got != http.StatusOK {
		t.Errorf("/healthz with the upstream down: %d", got)
	}
	if up := rs.metric("fastpacs_upstream_up"); up != 0 {
		t.Errorf("fastpacs_upstream_up = %v", up)
	}
}

func TestAdminOff(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.AdminAddr = "" })
	if a := rs.server.Addrs().Admin; a != nil {
		t.Errorf("an admin listener on %v", a)
	}
}

func TestUnreachableUpstream(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.Handler.Upstream = "http://127.0.0.1:1" })
	defer http.DefaultClient.CloseIdleConnections()
	res, body := rs.get(http.DefaultClient, rs.admin+"/readyz")
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "connection refused") {
		t.Errorf("/readyz: %d %q", res.StatusCode, body)
	}
	for _, p := range protocols {
		if res, _ := rs.get(rs.client(p), rs.url("/")); res.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: %d, want 502", p, res.StatusCode)
		}
	}
}

// Every metric that there can be, as Prometheus' own tools judge it.
func TestMetricsAreWellFormed(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	defer http.DefaultClient.CloseIdleConnections()
	for _, p := range protocols {
		rs.get(rs.client(p), rs.url("/n/100000"))
	}
	eventually(t, "controllers sampled", func() bool { return rs.metric("fastpacs_cc_rtt_seconds") > 0 })
	problems, err := testutil.GatherAndLint(rs.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}

	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("REQUIRE_PARTS") == "1" {
			t.Fatal("promtool is missing: install prometheus")
		}
		t.Skip("promtool is missing: install prometheus")
	}
	res, body := rs.get(http.DefaultClient, rs.admin+"/metrics")
	if res.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d", res.StatusCode)
	}
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(body)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// Clients choose methods, paths, hosts, status (through what they ask for) and
// header names; none may make a series.
func TestMetricsAreBounded(t *testing.T) {
	archive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		if scan(r.URL.Path, "/status/%d", &status) {
			w.WriteHeader(status)
		}
	})
	rs := startServer(t, archive)
	ask := func(round int) {
		for _, p := range protocols {
			c := rs.client(p)
			for i, method := range []string{"GET", "PUT", "PROPFIND", "DOE", "M" + strings.Repeat("X", round)} {
				req, err := http.NewRequestWithContext(t.Context(), method, rs.url("/status/"+[]string{"200", "304", "404", "599", "299"}[i]), http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				res, err := c.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
		}
	}
	ask(1)
	eventually(t, "controllers sampled", func() bool { return rs.metric("fastpacs_cc_rtt_seconds") > 0 })
	// The state of a path is a label too, of few values; leave it out.
	families := func() (n int) {
		count, err := testutil.GatherAndCount(rs.registry, "fastpacs_http_requests_total", "fastpacs_http_exchanges_total",
			"fastpacs_http_request_duration_seconds", "fastpacs_upstream_response_seconds", "fastpacs_connections",
			"fastpacs_connections_refused_total", "fastpacs_cc_rtt_seconds", "fastpacs_http_requests_in_flight")
		if err != nil {
			t.Fatal(err)
		}
		return count
	}
	before := families()
	ask(2)
	ask(3)
	if after := families(); after != before {
		t.Errorf("%d series after more of the same kind, %d before", after, before)
	}
}
