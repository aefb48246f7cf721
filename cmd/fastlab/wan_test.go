package main

import (
	"bytes"
	"encoding/json"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestWANCommandLine(t *testing.T) {
	for _, c := range []struct {
		args     string
		status   int
		out, err string // what each must contain
	}{
		{"help wan", exitOK, "-cells cells", ""},
		{"wan extra", exitUsage, "", `unexpected argument "extra"`},
		{"wan -list", exitOK, "16 cells:\n  20/10/0/1        20 Mb/s, 10 ms, 0 % loss, 1 BDP\n", ""},
		{"wan -list -peers caddy-h3,fastpacs-reno", exitOK, "2 peers:\n  caddy-h3 ", ""},
		{"wan -peers nonsense", exitUsage, "", `no peer "nonsense": there are fastpacs, tcp-cubic-h1`},
		{"wan -cells 100/80", exitUsage, "", `"100/80" must be MBPS/RTT/LOSS/BDP`},
		{"wan -cells 300/80/0/1", exitUsage, "", "cell 300/80/0/1: the rate must be 1 to 200"},
		{"wan -cells 100/0/0/1", exitUsage, "", "the round trip must be 1 to 2000"},
		{"wan -loss 30", exitUsage, "", "the loss must be 0 to 20"},
		{"wan -buffer 0", exitUsage, "", "the buffer must be 0.01 to 100"},
		{"wan -rtt x", exitUsage, "", `-rtt x: "x" is not a number`},
		{"wan -cells all -rtt 10", exitUsage, "", "-cells all: cannot be given together"},
		{"wan -slices 0", exitUsage, "", "-slices 0: must be 1 to 1000"},
		{"wan -runs 0", exitUsage, "", "-runs 0: must be 1 to 100"},
		{"wan -attempts 0", exitUsage, "", "-attempts 0: must be 1 to 20"},
		{"wan -parallel 0", exitUsage, "", "-parallel 0: must be 1 to 100"},
		{"wan -limit 1ms", exitUsage, "", "-limit 1ms: must be 1s to 1h"},
		{"wan-endpoint nonsense", exitUsage, "", ""},
	} {
		var out, err bytes.Buffer
		status := run(strings.Fields(c.args), &out, &err)
		if status != c.status || !strings.Contains(out.String(), c.out) || !strings.Contains(err.String(), c.err) {
			t.Errorf("fastlab %s: status %d\n%s\n%s", c.args, status, &out, &err)
		}
	}
}

func TestWANCells(t *testing.T) {
	parse := func(args ...string) []wanCell {
		t.Helper()
		c, err := parseWAN(args, io.Discard, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return c.cells
	}
	all := parse("-cells", "all")
	if len(all) != 108 {
		t.Errorf("the matrix has %d cells", len(all))
	}
	defaults := parse()
	if len(defaults) != 16 {
		t.Errorf("%d cells stand for it", len(defaults))
	}
	values := map[[2]float64]bool{}
	for i, c := range defaults {
		if !slices.Contains(all, c) || slices.Contains(defaults[:i], c) {
			t.Errorf("default cell %s is not of the matrix, or there twice", c)
		}
		values[[2]float64{1, c.Mbps}], values[[2]float64{2, c.RTTms}] = true, true
		values[[2]float64{c.LossPct + 100, c.BDP}] = true
	}
	if want := len(wanRates) + len(wanRTTs) + len(wanLosses)*len(wanBuffers); len(values) != want {
		t.Errorf("the default cells have %d of %d values and pairs", len(values), want)
	}
	if got := parse("-rtt", "40", "-loss", "0, 1"); len(got) != 18 || got[0] != (wanCell{20, 40, 0, 0.25}) || got[17] != (wanCell{100, 40, 1, 4}) {
		t.Errorf("-rtt 40 -loss 0,1: %v", got)
	}
	if got := parse("-cells", "8/5/2.5/2"); len(got) != 1 || got[0].bufferBytes() != wanMinBuffer {
		t.Errorf("%v, buffer %d", got, got[0].bufferBytes())
	}
	if got := (wanCell{100, 80, 0, 0.25}).bufferBytes(); got != 250_000 {
		t.Errorf("a quarter of 1 MB is %d", got)
	}
}

// wanTestReport has one row a peer for one cell, of one run each.
func wanTestReport(cell wanCell, rates, queues map[string]float64) *wanReport {
	r := &wanReport{complete: true, Bytes: 10e6, RunsEach: 1, LimitS: 60}
	for _, p := range wanPeers {
		rate, ok := rates[p.Name]
		if !ok {
			continue
		}
		row := &wanRow{wanCell: cell, Peer: p.Name, Protocol: p.Protocol, CC: p.CC}
		row.Runs = []wanRun{{Seconds: 80 / rate, GoodputMbps: rate, MeanQueueMs: queues[p.Name], P95QueueMs: queues[p.Name]}}
		row.summarizeRuns()
		r.Rows = append(r.Rows, row)
	}
	return r
}

func TestWANJudge(t *testing.T) {
	type values = map[string]float64
	for _, c := range []struct {
		name          string
		cell          wanCell
		rates, queues values
		cells, missed [4]int // of the bars
		passed        bool
	}{
		{
			"all well",
			wanCell{100, 80, 1, 1},
			values{wanSubject: 90, "tcp-bbr-h2": 94, "caddy-h3": 2},
			values{wanSubject: 5, "tcp-bbr-h2": 6, "caddy-h3": 7},
			[4]int{1, 1, 1, 1},
			[4]int{},
			true,
		},
		{
			"slower than the best",
			wanCell{100, 80, 0, 0.25},
			values{wanSubject: 80, "tcp-bbr-h2": 85, "tcp-cubic-h1": 50},
			values{wanSubject: 5},
			[4]int{1, 0, 0, 0},
			[4]int{1, 0, 0, 0},
			false,
		},
		{
			"behind cubic with loss",
			wanCell{100, 80, 0.1, 0.25},
			values{wanSubject: 80, "tcp-bbr-h2": 81, "tcp-cubic-h1": 80},
			values{},
			[4]int{1, 1, 0, 0},
			[4]int{0, 1, 0, 0},
			false,
		},
		{
			"an idle link has no queue",
			wanCell{100, 80, 1, 4},
			values{wanSubject: 90, "tcp-reno-h1": 3, "ngtcp2-bbr": 89},
			values{wanSubject: 5, "tcp-reno-h1": 0.1, "ngtcp2-bbr": 50},
			[4]int{1, 1, 1, 1},
			[4]int{0, 0, 1, 0},
			false,
		},
		{
			"a longer queue",
			wanCell{100, 80, 0, 1},
			values{wanSubject: 90, "tcp-bbr-h2": 90},
			values{wanSubject: 5.1, "tcp-bbr-h2": 5},
			[4]int{1, 0, 1, 1},
			[4]int{0, 0, 1, 1},
			false,
		},
		{
			"our other laws are no rivals",
			wanCell{100, 80, 0, 1},
			values{wanSubject: 80, "fastpacs-reno": 95},
			values{wanSubject: 5},
			[4]int{},
			[4]int{},
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := wanTestReport(c.cell, c.rates, c.queues)
			r.judge()
			var cells, missed [4]int
			for i, b := range r.Bars {
				cells[i], missed[i] = b.Cells, len(b.Missed)
			}
			if cells != c.cells || missed != c.missed || r.Passed != c.passed {
				t.Errorf("judged %v, missed %v, passed %v", cells, missed, r.Passed)
			}
			var table bytes.Buffer
			r.printTable(&table)
			if got := strings.Count(table.String(), "MISSED"); got != missed[0]+missed[1]+missed[2]+missed[3] {
				t.Errorf("%d bars MISSED in\n%s", got, &table)
			}
		})
	}
	r := wanTestReport(wanCell{100, 80, 0, 1}, values{wanSubject: 90}, nil)
	r.complete = false
	if r.judge(); r.Passed {
		t.Error("half a report passed")
	}
}

func TestWANMedians(t *testing.T) {
	sent := func(n int64) *int64 { return &n }
	row := wanRow{wanCell: wanCell{100, 80, 0, 1}}
	row.Runs = []wanRun{
		{Seconds: 3, GoodputMbps: 80, MeanQueueMs: 9, Retransmitted: sent(5), LateP99Ms: 1},
		{Seconds: 60, GoodputMbps: 4, Stopped: true, MeanQueueMs: 1, Retransmitted: sent(1), EndsLateP99Ms: 6},
		{Seconds: 4, GoodputMbps: 60, MeanQueueMs: 2, Retransmitted: sent(9)},
	}
	row.summarizeRuns()
	if row.GoodputMbps != 60 || row.MeanQueueMs != 2 || *row.Retransmitted != 5 || row.Stopped || *row.StudySeconds != 4 {
		t.Errorf("medians %+v", row)
	}
	if !row.Disturbed || row.LateP99Ms != 1 || row.EndsLateP99Ms != 6 || row.BufferBytes != 1_000_000 {
		t.Errorf("%+v", row)
	}
	row = wanRow{wanCell: row.wanCell, Runs: []wanRun{{GoodputMbps: 1, Stopped: true}, {GoodputMbps: 2, Stopped: true}, {GoodputMbps: 6}}}
	row.summarizeRuns()
	if !row.Stopped || row.StudySeconds != nil || row.Retransmitted != nil || row.Disturbed {
		t.Errorf("%+v", row)
	}
	if got := median([]wanRun{{Seconds: 4}, {Seconds: 1}}, func(r wanRun) float64 { return r.Seconds }); got != 2.5 {
		t.Errorf("the median of 1 and 4 is %g", got)
	}
}

func TestWANSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	rates := map[string]float64{}
	for i, p := range wanPeers {
		rates[p.Name] = 100 / float64(i+1)
	}
	r := wanTestReport(wanCell{100, 80, 1, 1}, rates, nil)
	r.judge()
	for range 2 { // a second run replaces the first
		if err := r.save(dir); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, "wan.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Rows []map[string]any }
	if err := json.Unmarshal(b, &got); err != nil || len(got.Rows) != len(wanPeers) {
		t.Fatalf("%v in %s", err, b)
	}
	for _, key := range []string{"rate_mbps", "rtt_ms", "loss_pct", "buffer_bdp", "peer", "cc", "study_s", "goodput_mbps", "mean_queue_ms", "probe_mean_ms", "late_p99_ms", "busy_pct", "runs"} {
		if _, ok := got.Rows[0][key]; !ok {
			t.Errorf("rows have no %q", key)
		}
	}
	for _, f := range wanFigures {
		file, err := os.Open(filepath.Join(dir, f.name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(file)
		_ = file.Close()
		if err != nil {
			t.Fatal(err)
		}
		// The subject's colour is in it: the points, and the legend's.
		want, seen := paperColors[0], 0
		for x := range img.Bounds().Dx() {
			for y := range img.Bounds().Dy() {
				if r, g, b, _ := img.At(x, y).RGBA(); uint8(r>>8) == want.R && uint8(g>>8) == want.G && uint8(b>>8) == want.B {
					seen++
				}
			}
		}
		if seen < 100 {
			t.Errorf("%s.png has %d pixels of fastpacs", f.name, seen)
		}
		if _, err := os.Stat(filepath.Join(dir, f.name+".svg")); err != nil {
			t.Error(err)
		}
	}
}
