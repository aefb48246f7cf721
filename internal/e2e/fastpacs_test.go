package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// fastpacs is the program under test, running.
type fastpacs struct {
	process
	host  string // host:port of TCP and UDP, on 127.0.0.1
	admin string // base URL of the operator's listener
	leaf  *x509.Certificate
	spki  string // base64 of the SHA-256 of leaf's public key, as logged

	cmd    *exec.Cmd
	log    *logReader
	exited chan struct{}
	err    error // of Wait, after exited
	once   sync.Once
}

// certificateNames are in the certificate of every fastpacs under test.
const certificateNames = "pacs.test,localhost,127.0.0.1"

// startFastpacs runs `fastpacs serve` in front of upstream, on loopback, with
// the settings env ("NAME=value") on top of the defaults, and stops it with the
// test. A wrong end, a panic or a data race fails the test.
func startFastpacs(tb testing.TB, upstream string, env ...string) *fastpacs {
	tb.Helper()
	file, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	f := &fastpacs{exited: make(chan struct{}), log: newLogReader()}
	f.cmd = exec.Command(file, "serve")
	f.cmd.Env = append(cleanEnviron(),
		"FASTPACS_UPSTREAM="+upstream,
		"FASTPACS_LISTEN=127.0.0.1:0",
		"FASTPACS_ADMIN=127.0.0.1:0",
		"FASTPACS_STATE_DIR="+tb.TempDir(),
		"FASTPACS_TLS_NAMES="+certificateNames,
		"FASTPACS_LOG_FORMAT=json",
		"FASTPACS_DRAIN_TIMEOUT=2s",
		"GORACE=halt_on_error=0",
	)
	f.cmd.Env = append(f.cmd.Env, env...)
	f.cmd.Stderr = f.log // the access log, on standard output, goes nowhere
	if err := f.cmd.Start(); err != nil {
		tb.Fatalf("starting fastpacs: %v", err)
	}
	go func() {
		f.err = f.cmd.Wait()
		close(f.exited)
	}()
	tb.Cleanup(func() { f.stop(tb) })
	f.pid = f.cmd.Process.Pid

	ctx := within(tb, 20*time.Second)
	var ready struct{ URL, Metrics string }
	f.await(tb, ctx, "ready", &ready)
	var certificate struct {
		SPKI string `json:"spki_sha256"`
	}
	f.await(tb, ctx, "certificate in use", &certificate)
	f.host = strings.Trim(strings.TrimPrefix(ready.URL, "https:"), "/")
	f.admin = strings.TrimSuffix(ready.Metrics, "/metrics")
	f.spki = certificate.SPKI
	f.leaf = fetchLeaf(tb, ctx, f.host)
	return f
}

// await decodes the log record with that message into v.
func (f *fastpacs) await(tb testing.TB, ctx context.Context, message string, v any) {
	tb.Helper()
	var record []byte
	select {
	case record = <-f.log.find(message):
	case <-f.exited:
		tb.Fatalf("fastpacs ended before it logged %q: %v\n%s", message, f.err, f.log.text())
	case <-ctx.Done():
		tb.Fatalf("fastpacs did not log %q in time\n%s", message, f.log.text())
	}
	if err := json.Unmarshal(record, v); err != nil {
		tb.Fatalf("fastpacs logged %s: %v", record, err)
	}
}

// stop ends fastpacs as an administrator would, once.
func (f *fastpacs) stop(tb testing.TB) {
	tb.Helper()
	f.once.Do(func() {
		select {
		case <-f.exited:
			tb.Errorf("fastpacs ended by itself: %v\n%s", f.err, f.log.text())
			return
		default:
		}
		_ = f.cmd.Process.Signal(syscall.SIGTERM) // fails only if it is gone
		timer := time.NewTimer(15 * time.Second)
		defer timer.Stop()
		select {
		case <-f.exited:
		case <-timer.C:
			_ = f.cmd.Process.Kill()
			<-f.exited
			tb.Errorf("fastpacs did not end on SIGTERM\n%s", f.log.text())
			return
		}
		text := f.log.text()
		if f.err != nil || strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
			tb.Errorf("fastpacs ended with %v\n%s", f.err, text)
		}
	})
}

// url returns the URL of a path, by a name in the certificate.
func (f *fastpacs) url(path string) string { return "https://" + f.host + path }

// get reads a URL of the operator's listener.
func (f *fastpacs) adminGet(path string) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.admin+path, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// metric sums the samples of a counter or gauge that have all those labels
// ("name=value").
func (f *fastpacs) metric(tb testing.TB, name string, labels ...string) float64 {
	tb.Helper()
	_, body, err := f.adminGet("/metrics")
	if err != nil {
		tb.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	if err != nil {
		tb.Fatalf("GET /metrics: %v", err)
	}
	family, ok := families[name]
	if !ok {
		tb.Fatalf("GET /metrics: no %s", name)
	}
	sum := 0.0
	for _, m := range family.GetMetric() {
		if hasLabels(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return sum
}

func hasLabels(m *dto.Metric, labels []string) bool {
	has := make(map[string]bool)
	for _, l := range m.GetLabel() {
		has[l.GetName()+"="+l.GetValue()] = true
	}
	for _, l := range labels {
		if !has[l] {
			return false
		}
	}
	return true
}

// fetchLeaf takes the certificate on first sight; it is fastpacs' own child.
func fetchLeaf(tb testing.TB, ctx context.Context, host string) *x509.Certificate {
	tb.Helper()
	d := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	c, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		tb.Fatal(err)
	}
	defer c.Close()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

// cleanEnviron is our environment without what would configure a child.
func cleanEnviron() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "FASTPACS_") && !strings.HasPrefix(e, roleVariable+"=") {
			env = append(env, e)
		}
	}
	return env
}

// logReader takes a log of JSON lines, and keeps the start of it.
type logReader struct {
	mu      sync.Mutex
	partial []byte
	kept    bytes.Buffer
	records map[string][]byte // first of each message
	waiting map[string][]chan []byte
}

const maxKeptLog = 64 << 10

func newLogReader() *logReader {
	return &logReader{records: map[string][]byte{}, waiting: map[string][]chan []byte{}}
}

func (l *logReader) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := maxKeptLog - l.kept.Len(); room > 0 {
		l.kept.Write(p[:min(room, len(p))])
	}
	l.partial = append(l.partial, p...)
	for {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		l.partial = rest
		var record struct{ Msg string }
		if json.Unmarshal(line, &record) != nil {
			continue // not ours: a panic, the race detector
		}
		if _, ok := l.records[record.Msg]; !ok && len(l.records) < 1000 {
			l.records[record.Msg] = bytes.Clone(line)
			for _, c := range l.waiting[record.Msg] {
				c <- l.records[record.Msg]
			}
			delete(l.waiting, record.Msg)
		}
	}
}

// find returns a channel that gets the first record with that message.
func (l *logReader) find(message string) <-chan []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := make(chan []byte, 1)
	if r, ok := l.records[message]; ok {
		c <- r
	} else {
		l.waiting[message] = append(l.waiting[message], c)
	}
	return c
}

func (l *logReader) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kept.String()
}
