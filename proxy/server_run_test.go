package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fastpacs/internal/selfsign"
	"fastpacs/proxy/quicnet"

	"github.com/prometheus/client_golang/prometheus"
)

// patience bounds every wait of these tests.
const patience = 20 * time.Second

// runningServer is a Server between a fake archive and test clients.
type runningServer struct {
	t        testing.TB
	server   *Server
	registry *prometheus.Registry
	log      *syncBuffer // process log, all levels
	access   *syncBuffer
	roots    *x509.CertPool
	addr     string // 127.0.0.1:PORT
	admin    string // URL

	stop context.CancelFunc
	done chan error // Run's result
}

// startServer runs a Server on loopback in front of archive until the test ends.
func startServer(t testing.TB, archive http.Handler, changes ...func(*Config)) *runningServer {
	t.Helper()
	back := httptest.NewServer(archive)
	t.Cleanup(back.Close)

	dir := t.TempDir()
	cfg := DefaultConfig()
	cfg.ListenAddr, cfg.AdminAddr = "127.0.0.1:0", "127.0.0.1:0"
	cfg.CertFile, cfg.KeyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	cfg.Handler.Upstream = back.URL
	cfg.SampleInterval = 20 * time.Millisecond
	cfg.DrainTimeout = patience
	cert := writePair(t, cfg.CertFile, cfg.KeyFile, time.Now())
	for _, change := range changes {
		change(&cfg)
	}

	rs := &runningServer{
		t:        t,
		registry: prometheus.NewPedanticRegistry(),
		log:      &syncBuffer{},
		access:   &syncBuffer{},
		roots:    selfsign.Pool(cert),
		done:     make(chan error, 1),
	}
	var err error
	rs.server, err = New(cfg, Options{
		Logger:    slog.New(slog.NewTextHandler(rs.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Registry:  rs.registry,
		AccessLog: rs.access,
		Version:   "test",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	rs.stop = cancel
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		rs.done <- rs.server.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-finished
		if t.Failed() {
			t.Logf("log of the server:\n%s", cut(rs.log.String(), 20_000))
		}
	})
	select {
	case <-rs.server.Ready():
	case err := <-rs.done:
		t.Fatalf("Run ended: %v", err)
	}
	addrs := rs.server.Addrs()
	rs.addr = addrs.HTTPS.String()
	if addrs.Admin != nil {
		rs.admin = "http://" + addrs.Admin.String()
	}
	return rs
}

// tls returns a client's configuration.
func (rs *runningServer) tls() *tls.Config {
	return &tls.Config{RootCAs: rs.roots, ServerName: "pacs.test"}
}

// client returns a client that speaks one protocol to rs; it is closed when the
// test ends.
func (rs *runningServer) client(protocol string) *http.Client {
	rs.t.Helper()
	if protocol == "h3" {
		tr, err := quicnet.NewHTTPTransport(rs.tls(), quicnet.DefaultConfig())
		if err != nil {
			rs.t.Fatal(err)
		}
		rs.t.Cleanup(func() { _ = tr.Close() })
		return &http.Client{Transport: tr}
	}
	var protocols http.Protocols
	protocols.SetHTTP1(protocol == "h1")
	protocols.SetHTTP2(protocol == "h2")
	tr := &http.Transport{TLSClientConfig: rs.tls(), Protocols: &protocols, DisableCompression: true, MaxIdleConnsPerHost: 100}
	rs.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// hangUp closes a client's connections; over HTTP/3 with its requests, as
// quic-go keeps a connection that has had one.
func hangUp(c *http.Client) {
	if tr, ok := c.Transport.(*quicnet.HTTPTransport); ok {
		_ = tr.Close()
		return
	}
	c.CloseIdleConnections()
}

func (rs *runningServer) url(path string) string { return "https://" + rs.addr + path }

// get fetches path and returns the response with its body read.
func (rs *runningServer) get(c *http.Client, path string) (*http.Response, string) {
	rs.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		rs.t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		rs.t.Fatalf("GET %s: %v", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		rs.t.Fatalf("GET %s: body: %v", path, err)
	}
	return res, string(body)
}

// metric returns the sum of the series of name whose labels include want
// ("label=value"); of a histogram, the number of observations.
func (rs *runningServer) metric(name string, want ...string) float64 {
	rs.t.Helper()
	families, err := rs.registry.Gather()
	if err != nil {
		rs.t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		var sum float64
		for _, m := range f.GetMetric() {
			has := make(map[string]bool)
			for _, l := range m.GetLabel() {
				has[l.GetName()+"="+l.GetValue()] = true
			}
			if slices.ContainsFunc(want, func(w string) bool { return !has[w] }) {
				continue
			}
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
		return sum
	}
	return 0 // a vector without series yet
}

// eventually polls until ok, for patience at most.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-poll.C:
		case <-end:
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// syncBuffer is a log that is read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// fakeArchive answers /n/COUNT with that many bytes, /echo with what it got, and
// anything else with its path.
func fakeArchive(w http.ResponseWriter, r *http.Request) {
	var n int
	switch {
	case r.URL.Path == "/echo":
		// All of it first: an answer before costs an HTTP/1 client its connection.
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	case scan(r.URL.Path, "/n/%d", &n):
		w.Header().Set("Content-Length", fmt.Sprint(n))
		for chunk := strings.Repeat("x", 32<<10); n > 0; n -= len(chunk) {
			if _, err := io.WriteString(w, chunk[:min(n, len(chunk))]); err != nil {
				return
			}
		}
	default:
		w.Header().Set("Alt-Svc", `h3=":1"`) // of the archive itself
		_, _ = io.WriteString(w, r.URL.Path)
	}
}

func scan(s, format string, into ...any) bool {
	n, err := fmt.Sscanf(s, format, into...)
	return err == nil && n == len(into)
}

func TestServesEveryProtocolOnOnePort(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.AdvertisedPort = 443 })
	addrs := rs.server.Addrs()
	if tcp, udp := addrs.HTTPS.(*net.TCPAddr), addrs.HTTP3.(*net.UDPAddr); tcp.Port != udp.Port || !tcp.IP.Equal(udp.IP) {
		t.Errorf("TCP on %v and UDP on %v, want the same", tcp, udp)
	}
	for protocol, want := range map[string]struct {
		major  int
		altSvc string
	}{
		"h1": {1, `h3=":443"; ma=300`},
		"h2": {2, `h3=":443"; ma=300`},
		"h3": {3, `h3=":443"; ma=86400`},
	} {
		c := rs.client(protocol)
		res, body := rs.get(c, rs.url("/studies/1.2.3"))
		if res.StatusCode != http.StatusOK || body != "/studies/1.2.3" || res.ProtoMajor != want.major {
			t.Errorf("%s: %s %d %q", protocol, res.Proto, res.StatusCode, body)
		}
		if got := res.Header.Values("Alt-Svc"); len(got) != 1 || got[0] != want.altSvc {
			t.Errorf("%s: Alt-Svc %q, want %q", protocol, got, want.altSvc)
		}
		upload := strings.Repeat("0123456789", 100_000)
		res, err := c.Post(rs.url("/echo"), "application/octet-stream", strings.NewReader(upload))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(got) != upload {
			t.Errorf("%s: echo returned %d bytes (%v), want %d", protocol, len(got), err, len(upload))
		}

		p := "protocol=" + protocol
		eventually(t, protocol+" requests counted", func() bool {
			return rs.metric("fastpacs_http_requests_total", p, "code=2xx") == 2
		})
		for metric, want := range map[string]float64{
			"fastpacs_http_request_body_bytes_total":  1_000_000,
			"fastpacs_http_response_body_bytes_total": 1_000_000 + 14,
			"fastpacs_http_requests_in_flight":        0,
			"fastpacs_http_request_duration_seconds":  2,
			"fastpacs_upstream_response_seconds":      2,
			"fastpacs_connections":                    1,
			"fastpacs_connections_total":              1,
		} {
			if got := rs.metric(metric, p); got != want {
				t.Errorf("%s{%s} = %v, want %v", metric, p, got, want)
			}
		}
		if got := rs.metric("fastpacs_http_exchanges_total", p, "outcome=complete"); got != 2 {
			t.Errorf("%s: %v complete exchanges, want 2", protocol, got)
		}
	}
	for _, name := range []string{
		"fastpacs_cc_rtt_seconds", "fastpacs_cc_alpha_packets", "fastpacs_cc_window_bytes",
		"fastpacs_quic_packets_sent_total", "fastpacs_udp_socket_buffer_bytes", "fastpacs_build_info",
	} {
		eventually(t, name+" above 0", func() bool { return rs.metric(name) > 0 })
	}
	if got, want := rs.metric("fastpacs_certificate_expiry_timestamp_seconds"), float64(time.Now().Unix()); got < want {
		t.Errorf("certificate ends at %v, which is past", got)
	}
}

func TestHTTP3Off(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.HTTP3 = false })
	if a := rs.server.Addrs().HTTP3; a != nil {
		t.Errorf("listens on UDP %v", a)
	}
	res, _ := rs.get(rs.client("h2"), rs.url("/"))
	if got := res.Header.Values("Alt-Svc"); len(got) != 0 {
		t.Errorf("Alt-Svc %q, want none, not even the archive's", got)
	}
	// Its UDP port stays free for others.
	pc, err := net.ListenPacket("udp", rs.addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = pc.Close()
}

func TestMinTLSVersion(t *testing.T) {
	for version, accepted := range map[string]bool{"1.2": true, "1.3": false} {
		rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.MinTLSVersion = version })
		cfg := rs.tls()
		cfg.MaxVersion = tls.VersionTLS12
		c, err := tls.Dial("tcp", rs.addr, cfg)
		if (err == nil) != accepted {
			t.Errorf("minimum %s: a TLS 1.2 client got %v", version, err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}

func TestSelfSigned(t *testing.T) {
	dir := t.TempDir()
	var fingerprint string
	for range 2 { // the second start finds the first one's
		rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) {
			c.CertFile, c.KeyFile = "", ""
			c.StateDir = dir
			c.SelfSignedNames = []string{"pacs.test"}
		})
		cert, err := rs.server.certs.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		rs.roots = selfsign.Pool(*cert)
		for _, p := range protocols {
			rs.get(rs.client(p), rs.url("/"))
		}
		got, _ := Fingerprints(cert.Leaf)
		if fingerprint != "" && got != fingerprint {
			t.Error("the second start has another certificate")
		}
		fingerprint = got
		if !strings.Contains(rs.log.String(), fingerprint) {
			t.Error("the fingerprint is not in the log")
		}
		rs.stop()
	}
}

func TestReloadOnEveryProtocol(t *testing.T) {
	var certFile, keyFile string
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { certFile, keyFile = c.CertFile, c.KeyFile })
	write(t, keyFile, "not a key", 0o600)
	if err := rs.server.Reload(); err == nil || !strings.Contains(err.Error(), "stays") || !strings.Contains(err.Error(), keyFile) {
		t.Errorf("Reload with a broken key: %v, want an error that names it and says what stays", err)
	}
	for _, p := range protocols {
		rs.get(rs.client(p), rs.url("/")) // with the first certificate still
	}
	rs.roots = selfsign.Pool(writePair(t, certFile, keyFile, time.Now()))
	if err := rs.server.Reload(); err != nil {
		t.Fatal(err)
	}
	for _, p := range protocols {
		rs.get(rs.client(p), rs.url("/")) // trusts the second alone
	}
}

func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	takenUDP, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = takenUDP.Close() }()
	for name, change := range map[string]func(*Config){
		"TCP":   func(c *Config) { c.ListenAddr = taken.Addr().String() },
		"UDP":   func(c *Config) { c.ListenAddr = takenUDP.LocalAddr().String() },
		"admin": func(c *Config) { c.AdminAddr = taken.Addr().String() },
	} {
		cfg := DefaultConfig()
		cfg.ListenAddr, cfg.AdminAddr, cfg.StateDir = "127.0.0.1:0", "127.0.0.1:0", t.TempDir()
		cfg.Handler.Upstream = "http://127.0.0.1:1"
		change(&cfg)
		s, err := New(cfg, Options{Logger: slog.New(slog.DiscardHandler), Registry: prometheus.NewRegistry(), AccessLog: io.Discard})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err = s.Run(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "127.0.0.1:") || !strings.Contains(err.Error(), "address already in use") {
			t.Errorf("%s: Run = %v, want an error that names the address", name, err)
		}
	}
}

func TestRunsOnce(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive))
	if err := rs.server.Run(t.Context()); err == nil {
		t.Error("a second Run was taken")
	}
}

// A listener that fails ends the whole.
func TestFailingListenerEndsRun(t *testing.T) {
	for _, which := range []string{"tcp", "udp"} {
		rs := startServer(t, http.HandlerFunc(fakeArchive))
		if which == "tcp" {
			_ = rs.server.socks.tcp.Close()
		} else {
			_ = rs.server.socks.udp.Close()
		}
		select {
		case err := <-rs.done:
			if err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("%s: Run = %v, want the listener's error", which, err)
			}
		case <-time.After(patience):
			t.Errorf("%s: Run goes on without its listener", which)
		}
	}
}
