package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// needWAN skips a test that may not make namespaces; REQUIRE_PARTS=1 forbids it.
func needWAN(t *testing.T) {
	t.Helper()
	if err := wanPossible(); err != nil {
		if os.Getenv("REQUIRE_PARTS") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

// TestWAN runs a small comparison with all that is installed. Figures are the
// comparison's own business; here it counts that everything came, and that the
// link was obeyed.
func TestWAN(t *testing.T) {
	needWAN(t)
	bin, out := buildFastlab(t), t.TempDir()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), bin, "wan", "-fastpacs", buildFastpacs(t), "-slices", "4", "-runs", "1", "-attempts", "1",
		"-cells", "50/20/0.1/1", "-peers", "fastpacs,tcp-cubic-h1,tcp-bbr-h2,caddy-h3,ngtcp2-bbr", "-out", out, "-json")
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != exitFailed) { // a bar may be missed
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var r wanReport
	if err := json.Unmarshal(stdout, &r); err != nil {
		t.Fatalf("%v in %s\n%s", err, stdout, &stderr)
	}
	for _, peer := range []string{"fastpacs", "tcp-cubic-h1", "tcp-bbr-h2", "caddy-h3", "ngtcp2-bbr"} {
		row := r.row(wanCell{50, 20, 0.1, 1}, peer)
		if row == nil {
			kind, _, _ := strings.Cut(peer, "-")
			if kind != "caddy" && kind != "ngtcp2" || !strings.Contains(strings.Join(r.Notes, "\n"), "left out: "+kind) {
				t.Errorf("no row of %s\n%s", peer, &stderr)
			}
			continue
		}
		run := row.Runs[0]
		if run.Stopped || run.Bytes != r.Bytes || run.Bytes < 4*2*sliceSize*sliceSize {
			t.Errorf("%s: %d of %d bytes", peer, run.Bytes, r.Bytes)
		}
		if least := float64(r.Bytes) * 8 / 50e6; run.Seconds < least || run.GoodputMbps >= 50 {
			t.Errorf("%s: %g Mb/s in %g s on a link of 50: it takes %g s", peer, run.GoodputMbps, run.Seconds, least)
		}
		if run.Packets < r.Bytes/1500 || run.Probes == 0 || run.MaxQueueMs > 20.7 {
			t.Errorf("%s: %d packets, %d probes, a queue of %g ms in a buffer of 20", peer, run.Packets, run.Probes, run.MaxQueueMs)
		}
		if known := !strings.Contains(peer, "caddy") && !strings.Contains(peer, "ngtcp2"); known != (run.Retransmitted != nil) {
			t.Errorf("%s: retransmissions known: %v", peer, run.Retransmitted != nil)
		}
	}
	for _, file := range []string{"wan.json", "wan-time.png", "wan-queue.svg"} {
		if _, err := os.Stat(filepath.Join(out, file)); err != nil {
			t.Error(err)
		}
	}
}

// TestWANInterrupted holds that an interrupted comparison takes all that it has
// started with it.
func TestWANInterrupted(t *testing.T) {
	needWAN(t)
	bin, out, tmp := buildFastlab(t), t.TempDir(), t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "wan", "-fastpacs", buildFastpacs(t), "-slices", "60", "-cells", "10/40/0/1", "-peers", "fastpacs", "-out", out)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	log := &awaitText{text: "cell 1 of 1", seen: make(chan struct{})}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-log.seen:
	case <-ctx.Done():
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitFailed {
		t.Errorf("%v\n%s", err, &log.b)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if b, err := os.ReadFile(filepath.Join(out, "wan.json")); err != nil || !strings.Contains(string(b), `"passed": false`) {
		t.Errorf("the report: %v\n%s", err, b)
	}
}

func TestWANArchive(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "studies", "1")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("slice"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := newWANArchive(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/dicom-web/studies/1": 200, "/dicom-web/studies/2": 404, "/studies/1": 404, "/system": 204} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || want == 200 && (!strings.Contains(w.Body.String(), "\r\n\r\nslice\r\n--") || w.Header().Get("Content-Length") != fmt.Sprint(w.Body.Len())) {
			t.Errorf("%s: %d %q", path, w.Code, w.Body)
		}
	}
	if _, err := newWANArchive(filepath.Join(dir, "missing")); err == nil {
		t.Error("an archive of nothing")
	}
}

func TestWANProbe(t *testing.T) {
	echo, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wanEcho(echo)
	}()
	job, err := json.Marshal(wanProbeJob{To: echo.LocalAddr().String(), Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	stdin, end := io.Pipe()
	go func() {
		_, _ = end.Write(job)
		time.AfterFunc(100*time.Millisecond, func() { _ = end.Close() })
	}()
	var out, stderr bytes.Buffer
	status := runWANEndpoint(t.Context(), []string{"probe"}, stdin, &out, &stderr)
	_ = echo.Close()
	<-done
	var r wanProbeResult
	if err := json.Unmarshal(out.Bytes(), &r); status != exitOK || err != nil {
		t.Fatalf("status %d, %v\n%s\n%s", status, err, &out, &stderr)
	}
	if r.Sent < 2 || r.Received == 0 || r.MeanMs <= 0 || r.MaxMs < r.P95Ms || r.MaxMs > 1000 {
		t.Errorf("%+v", r)
	}
}

func TestSummarize(t *testing.T) {
	var delays []time.Duration
	for i := range 100 {
		delays = append(delays, time.Duration(100-i)*time.Millisecond)
	}
	if r := summarize(120, delays); r.Sent != 120 || r.Received != 100 || r.MeanMs != 50.5 || r.P95Ms != 96 || r.MaxMs != 100 {
		t.Errorf("%+v", r)
	}
	if r := summarize(3, nil); r != (wanProbeResult{Sent: 3}) {
		t.Errorf("%+v", r)
	}
}

func TestMetricSum(t *testing.T) {
	const text = "# TYPE lost_total counter\nlost_total{a=\"b\"} 3\nlost_total 4\nlost_total_more 100\n"
	if n, err := metricSum([]byte(text), "lost_total"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, text := range []string{"", "lost_total x\n"} {
		if n, err := metricSum([]byte(text), "lost_total"); err == nil {
			t.Errorf("%d in %q", n, text)
		}
	}
}

func TestBusySince(t *testing.T) {
	if got := (cpuTimes{busy: 30, total: 200}).busySince(cpuTimes{busy: 10, total: 100}); got != 20 {
		t.Errorf("%g %%", got)
	}
	if c, err := readCPUTimes(); err != nil || c.busy <= 0 || c.total < c.busy {
		t.Errorf("%+v, %v", c, err)
	}
}
