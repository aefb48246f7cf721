package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/internal/dicomweb"
	"fastpacs/internal/orthanc"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args     string
		status   int
		out, err string // what each must contain
	}{
		{"", exitUsage, "", "Usage: fastlab COMMAND"},
		{"help", exitOK, "  demo   send a CT study", ""},
		{"--help", exitOK, "  run    start Orthanc", ""},
		{"nonsense", exitUsage, "", `unknown command "nonsense"`},
		{"help demo", exitOK, "-baseline-slices number", ""},
		{"run --help", exitOK, "-listen address", ""},
		{"run extra", exitUsage, "", `unexpected argument "extra"`},
		{"run -slices -1", exitUsage, "", "-slices -1: must be 0 to 10000"},
		{"demo extra", exitUsage, "", `unexpected argument "extra"`},
		{"demo -mbps 0", exitUsage, "", "-mbps 0: must be 1 to 1000"},
		{"demo -mbps NaN", exitUsage, "", "-mbps NaN: must be"},
		{"demo -rtt 3s", exitUsage, "", "-rtt 3s: must be 1ms to 2s"},
		{"demo -loss 50", exitUsage, "", "-loss 50: must be 0 to 20"},
		{"demo -slices 10", exitUsage, "", "-baseline-slices 20: must be 1 to -slices (10)"},
		{"demo -parallel 101", exitUsage, "", "-parallel 101: must be 0 to 100"},
		{"demo -slices x", exitUsage, "", "invalid value"},
	} {
		var out, err bytes.Buffer
		status := run(strings.Fields(c.args), &out, &err)
		if status != c.status || !strings.Contains(out.String(), c.out) || !strings.Contains(err.String(), c.err) {
			t.Errorf("fastlab %s: status %d\n%s\n%s", c.args, status, &out, &err)
		}
	}
}

func TestDefaultsLastUnderThreeMinutes(t *testing.T) {
	c, err := parseDemo(nil, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if c.limit() >= 3*time.Minute {
		t.Errorf("a demo may take %v", c.limit())
	}
	if _, err := parseDemo([]string{"-h"}, io.Discard, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h: %v", err)
	}
}

func TestJudge(t *testing.T) {
	improved := demoRow{CC: "improved", LinkMbps: 100, GoodputMbps: 90, MeanQueueMs: 8, Verified: true}
	reno := demoRow{CC: "reno", LinkMbps: 100, GoodputMbps: 3, Verified: true}
	for _, c := range []struct {
		name   string
		change func(improved, reno *demoRow)
		missed []int // bars
		notes  int
	}{
		{"all well", func(*demoRow, *demoRow) {}, nil, 0},
		{"just", func(i, r *demoRow) { i.GoodputMbps, r.GoodputMbps, i.MeanQueueMs = 85, 17, 20 }, nil, 0},
		{"slow", func(i, _ *demoRow) { i.GoodputMbps = 84.9 }, []int{0}, 0},
		{"reno as good", func(_, r *demoRow) { r.GoodputMbps = 20 }, []int{1}, 0},
		{"reno did nothing", func(_, r *demoRow) { r.GoodputMbps = 0 }, []int{1}, 0},
		{"long queue", func(i, _ *demoRow) { i.MeanQueueMs = 20.1 }, []int{2}, 0},
		{"wrong byte", func(i, _ *demoRow) { i.Verified = false }, []int{3}, 0},
		{"wrong byte in the baseline", func(_, r *demoRow) { r.Verified = false }, []int{3}, 0},
		{"busy machine", func(i, r *demoRow) { i.LateP99Ms, r.EmulatorLosses = 6, 1 }, nil, 2},
		{"busy before", func(i, _ *demoRow) { i.Attempt = 2 }, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			i, r := improved, reno
			c.change(&i, &r)
			report := &demoReport{Rows: []demoRow{r, i}}
			report.judge()
			var missed []int
			for n, b := range report.Bars {
				if !b.Passed {
					missed = append(missed, n)
				}
			}
			if len(missed) != len(c.missed) || len(missed) > 0 && missed[0] != c.missed[0] || report.Passed != (len(missed) == 0) {
				t.Errorf("missed bars %v, want %v; passed: %v", missed, c.missed, report.Passed)
			}
			if len(report.Notes) != c.notes {
				t.Errorf("notes %q, want %d", report.Notes, c.notes)
			}
			var table bytes.Buffer
			report.printTable(&table)
			if got := strings.Count(table.String(), "MISSED"); got != len(c.missed) {
				t.Errorf("%d bars MISSED in\n%s", got, &table)
			}
		})
	}
}

func TestReportFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "out", "demo.json")
	r := &demoReport{Rows: []demoRow{{CC: "reno", LinkMbps: 1}, {CC: "improved", LinkMbps: 1}}}
	r.judge()
	for range 2 { // a second run replaces the first
		if err := r.write(file); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Rows []map[string]any }
	if err := json.Unmarshal(b, &got); err != nil || len(got.Rows) != 2 {
		t.Fatalf("%v in %s", err, b)
	}
	for _, key := range []string{"cc", "link_mbps", "goodput_mbps", "utilization", "seconds", "bytes", "mean_queue_ms", "loss_pct", "verified"} {
		if _, ok := got.Rows[1][key]; !ok {
			t.Errorf("rows have no %q", key)
		}
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v, %v", left, err)
	}
}

func TestProgressPlain(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.say("first %d", 1)
	p.update("too soon")
	p.last = time.Now().Add(-plainEvery)
	p.update("in time")
	p.update("too soon")
	p.done()
	got := b.String()
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, "] first 1\n") || !strings.Contains(got, "] in time\n") || strings.Contains(got, "\r") {
		t.Errorf("progress %q", got)
	}
}

func TestProgressTerminal(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.terminal = true
	p.update("one")
	p.last = time.Time{}
	p.update("two")
	p.say("three")
	p.done()
	if got, want := strings.ReplaceAll(b.String(), p.clock(), "@"), "@ one\r\x1b[K@ two\r\x1b[K@ three\n"; got != want {
		t.Errorf("progress %q, want %q", got, want)
	}
}

func TestChildLog(t *testing.T) {
	l := newChildLog("ready", "certificate in use")
	for _, piece := range []string{
		`{"msg":"certificate in use","sha2`, `56":"AB"}` + "\nnot JSON\n", `{"msg":"other"}` + "\n",
		`{"msg":"ready","url":"https://x/"}`,
	} {
		if _, err := io.WriteString(l, piece); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-l.all:
		t.Fatal("all records there before the line ended")
	default:
	}
	_, _ = io.WriteString(l, "\n")
	<-l.all
	var ready struct{ URL string }
	if err := l.record("ready", &ready); err != nil || ready.URL != "https://x/" {
		t.Errorf("ready: %+v, %v", ready, err)
	}
	for range 100 {
		_, _ = io.WriteString(l, strings.Repeat("x", 1000)+"\n")
	}
	if n := len(l.text()); n < keptLog/2 || n > 2*keptLog {
		t.Errorf("%d bytes of log kept", n)
	}
}

func TestUnseen(t *testing.T) {
	a, b := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	u := newUnseen(originals{"1": a, "2": b})
	for i, c := range []struct {
		sum  [sha256.Size]byte
		uid  string
		want bool
	}{
		{sha256.Sum256([]byte("c")), "1", false}, // other bytes
		{a, "2", false},                          // those of another instance
		{a, "1", true},
		{a, "1", false}, // twice
		{b, "", true},   // by content alone
		{b, "", false},
	} {
		if got := u.take(c.sum, c.uid); got != c.want {
			t.Errorf("%d: take(%.4x, %q) = %v", i, c.sum, c.uid, got)
		}
	}
}

func TestSourceTree(t *testing.T) {
	if root, ok := sourceTree(); !ok {
		t.Errorf("not in the source: %s", root)
	}
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("go.mod", []byte("module somebody/else\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if root, ok := sourceTree(); ok {
		t.Errorf("%s is taken for our source", root)
	}
	if _, err := fastpacsBinary(t.Context(), filepath.Join(dir, "missing"), func(string) {}); err == nil || !strings.Contains(err.Error(), "-fastpacs") {
		t.Errorf("a program that is not there: %v", err)
	}
}

// parts returns a built fastpacs if Orthanc is installed, and skips the test
// otherwise; REQUIRE_PARTS=1 forbids skipping.
func parts(t *testing.T) (fastpacs string) {
	t.Helper()
	if _, err := orthanc.Find(); err != nil {
		if os.Getenv("REQUIRE_PARTS") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return buildFastpacs(t)
}

func buildFastpacs(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fastpacs")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", file, "fastpacs/cmd/fastpacs").CombinedOutput(); err != nil {
		t.Fatalf("building fastpacs: %v\n%s", err, out)
	}
	return file
}

// TestDemo runs small demos, with both ways of retrieval. Figures are the
// demo's own business; here it counts that everything came back.
func TestDemo(t *testing.T) {
	fastpacs := parts(t)
	for _, parallel := range []string{"0", "4"} {
		c, err := parseDemo([]string{
			"-fastpacs", fastpacs, "-slices", "8", "-baseline-slices", "2", "-parallel", parallel,
			"-rtt", "10ms", "-mbps", "50", "-loss", "1",
		}, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		report, err := c.run(t.Context(), newProgress(&log))
		if err != nil {
			t.Fatalf("%v\n%s", err, &log)
		}
		improved, reno := report.row(cc.LawImproved), report.row(cc.LawReno)
		if !improved.Verified || improved.Instances != 8 || improved.Bytes < 8*2*sliceSize*sliceSize {
			t.Errorf("improved: %+v", improved)
		}
		if !reno.Verified || reno.Instances != 2 {
			t.Errorf("reno: %+v", reno)
		}
		for _, row := range report.Rows {
			if row.Utilization <= 0 || row.Utilization > 1.001 || row.Utilization < row.GoodputMbps/row.LinkMbps {
				t.Errorf("utilization: %+v", row)
			}
		}
	}
}

// awaitText is a writer that tells when it has seen a text.
type awaitText struct {
	mu   sync.Mutex
	b    bytes.Buffer
	text string
	seen chan struct{}
}

func (a *awaitText) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	was := strings.Contains(a.b.String(), a.text)
	a.b.Write(p)
	if !was && strings.Contains(a.b.String(), a.text) {
		close(a.seen)
	}
	return len(p), nil
}

func (a *awaitText) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.b.String()
}

// TestRun brings both servers up, finds the study through the proxy at the
// printed address and takes both down.
func TestRun(t *testing.T) {
	fastpacs := parts(t)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("FASTPACS_NONSENSE", "is not handed down")
	c, err := parseRun([]string{"-fastpacs", fastpacs, "-listen", "127.0.0.1:0", "-admin", "127.0.0.1:0", "-slices", "2"}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &awaitText{text: "Ctrl-C stops both", seen: make(chan struct{})}
	ended := make(chan error, 1)
	var log bytes.Buffer
	go func() { ended <- c.run(ctx, newProgress(&log), out) }()
	select {
	case <-out.seen:
	case err := <-ended:
		t.Fatalf("run ended: %v\n%s", err, &log)
	}
	var base string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "DICOMweb" {
			base = f[1]
		}
	}
	p := &proxyServer{URL: strings.TrimSuffix(base, orthanc.DICOMwebPath)}
	if p.Certificate, err = leafOf(ctx, p.Host()); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: p.TLS(), DisableKeepAlives: true}
	client, err := dicomweb.New(base, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	studies, err := client.Studies(ctx, nil)
	if err != nil || len(studies) != 1 {
		t.Errorf("found %d studies, %v", len(studies), err)
	}
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	if !strings.Contains(out.String(), "path=/dicom-web/studies") {
		t.Errorf("no access log in\n%s", out)
	}
}

// TestProxyDoesNotStart: the reason is in the error.
func TestProxyDoesNotStart(t *testing.T) {
	_, err := startProxy(t.Context(), proxyConfig{
		binary: buildFastpacs(t), upstream: "http://127.0.0.1:1", stateDir: t.TempDir(),
		env: []string{"FASTPACS_CC=vegas"},
	})
	if err == nil || !strings.Contains(err.Error(), "FASTPACS_CC") || !strings.Contains(err.Error(), "exit status 2") {
		t.Errorf("error %v", err)
	}
}
