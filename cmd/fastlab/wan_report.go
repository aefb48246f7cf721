package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// wanRun is one transfer of the study. Queues, losses and drops are those of the
// way toward the client.
type wanRun struct {
	Seconds     float64 `json:"seconds"` // to the last byte, or until stopped
	Stopped     bool    `json:"stopped"`
	Bytes       int64   `json:"bytes"` // of instances
	GoodputMbps float64 `json:"goodput_mbps"`

	MeanQueueMs float64 `json:"mean_queue_ms"` // in the emulator, weighted by size
	P95QueueMs  float64 `json:"p95_queue_ms"`
	MaxQueueMs  float64 `json:"max_queue_ms"`
	ProbeMeanMs float64 `json:"probe_mean_ms"` // as a bystander sees it
	ProbeP95Ms  float64 `json:"probe_p95_ms"`
	ProbeMaxMs  float64 `json:"probe_max_ms"`
	Probes      int     `json:"probes"` // that came back

	Packets       int64  `json:"packets"` // offered to the link
	BufferDrops   int64  `json:"buffer_drops"`
	RandomLosses  int64  `json:"random_losses"`
	Retransmitted *int64 `json:"retransmitted_packets"` // null: not known of this peer

	LateP99Ms      float64 `json:"late_p99_ms"` // the emulator's error, both ways
	LateMaxMs      float64 `json:"late_max_ms"`
	EmulatorLosses int64   `json:"emulator_losses"`
	EndsLateP99Ms  float64 `json:"ends_late_p99_ms"` // how late a program in the namespaces gets to run
	BusyPct        float64 `json:"busy_pct"`         // of all processors, by everything
	Attempt        int     `json:"attempt"`
}

// wanLateBar is the lateness above which a run is disturbed.
const wanLateBar = 5.0 // ms

func (r wanRun) disturbed() bool { return r.late() > wanLateBar || r.EmulatorLosses > 0 }

func (r wanRun) late() float64 { return max(r.LateP99Ms, r.EndsLateP99Ms) }

// wanRow is a cell and a peer: medians over its runs.
type wanRow struct {
	wanCell
	BufferBytes int    `json:"buffer_bytes"`
	Peer        string `json:"peer"`
	Protocol    string `json:"protocol"`
	CC          string `json:"cc"`

	StudySeconds  *float64 `json:"study_s"` // null: stopped before the end
	Stopped       bool     `json:"stopped"`
	GoodputMbps   float64  `json:"goodput_mbps"`
	MeanQueueMs   float64  `json:"mean_queue_ms"`
	P95QueueMs    float64  `json:"p95_queue_ms"`
	MaxQueueMs    float64  `json:"max_queue_ms"`
	ProbeMeanMs   float64  `json:"probe_mean_ms"`
	ProbeP95Ms    float64  `json:"probe_p95_ms"`
	DropPct       float64  `json:"buffer_drop_pct"`
	Retransmitted *float64 `json:"retransmitted_packets"`
	LateP99Ms     float64  `json:"late_p99_ms"` // of the worst run, as is the next
	EndsLateP99Ms float64  `json:"ends_late_p99_ms"`
	BusyPct       float64  `json:"busy_pct"`
	Disturbed     bool     `json:"disturbed"` // some run, for all its attempts

	Runs []wanRun `json:"runs"`
}

// summarizeRuns fills in the medians. A row is stopped if its median run is.
func (r *wanRow) summarizeRuns() {
	r.BufferBytes = r.bufferBytes()
	stopped := 0
	for _, run := range r.Runs {
		r.Disturbed = r.Disturbed || run.disturbed()
		r.LateP99Ms = max(r.LateP99Ms, run.LateP99Ms)
		r.EndsLateP99Ms = max(r.EndsLateP99Ms, run.EndsLateP99Ms)
		if run.Stopped {
			stopped++
		}
	}
	m := func(of func(wanRun) float64) float64 { return round(median(r.Runs, of)) }
	r.GoodputMbps = m(func(x wanRun) float64 { return x.GoodputMbps })
	r.MeanQueueMs = m(func(x wanRun) float64 { return x.MeanQueueMs })
	r.P95QueueMs = m(func(x wanRun) float64 { return x.P95QueueMs })
	r.MaxQueueMs = m(func(x wanRun) float64 { return x.MaxQueueMs })
	r.ProbeMeanMs = m(func(x wanRun) float64 { return x.ProbeMeanMs })
	r.ProbeP95Ms = m(func(x wanRun) float64 { return x.ProbeP95Ms })
	r.DropPct = m(func(x wanRun) float64 { return 100 * float64(x.BufferDrops) / float64(max(x.Packets, 1)) })
	r.BusyPct = m(func(x wanRun) float64 { return x.BusyPct })
	if r.Runs[0].Retransmitted != nil {
		v := m(func(x wanRun) float64 { return float64(*x.Retransmitted) })
		r.Retransmitted = &v
	}
	if r.Stopped = 2*stopped > len(r.Runs); !r.Stopped {
		v := m(func(x wanRun) float64 { return x.Seconds })
		r.StudySeconds = &v
	}
}

func median(runs []wanRun, of func(wanRun) float64) float64 {
	v := make([]float64, len(runs))
	for i, r := range runs {
		v[i] = of(r)
	}
	slices.Sort(v)
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// wanMachine is where and when it was measured.
type wanMachine struct {
	Date      time.Time         `json:"date"`
	Command   string            `json:"command"`
	Kernel    string            `json:"kernel"`
	CPU       string            `json:"cpu"`
	CPUs      int               `json:"cpus"`
	Go        string            `json:"go"`
	Peers     map[string]string `json:"peers"` // versions
	LoadStart string            `json:"load_start"`
	LoadEnd   string            `json:"load_end"`
	Minutes   float64           `json:"minutes"`
}

// wanBar is a bar of improved FAST.
type wanBar struct {
	Name   string   `json:"name"`
	Cells  int      `json:"cells"` // that it was judged in
	Missed []string `json:"missed"`
}

type wanReport struct {
	Machine  wanMachine `json:"machine"`
	Slices   int        `json:"slices"`
	Bytes    int64      `json:"bytes"`
	Parallel int        `json:"parallel"`
	RunsEach int        `json:"runs_each"`
	LimitS   float64    `json:"limit_s"`
	Seed     uint64     `json:"seed"`
	Rows     []*wanRow  `json:"rows"`
	Bars     []*wanBar  `json:"bars"`
	Notes    []string   `json:"notes"`
	Passed   bool       `json:"passed"`
	complete bool
}

// wanAsFast is the share of our goodput from which on a peer's queue is one to
// compare with: an idle link has none.
const wanAsFast = 0.8

// judge holds our rows against the peers' in the same cell. Rates stand for
// times, since a stopped run has no time.
func (r *wanReport) judge() {
	studyTime := &wanBar{Name: "study time <= 1.05 x the best peer's"}
	ahead := &wanBar{Name: "ahead of cubic, reno and Caddy's h3 in cells with loss"}
	lowest := &wanBar{Name: "lowest mean queue of all with a buffer of 1 BDP or more"}
	lowestFast := &wanBar{Name: fmt.Sprintf("the same, of peers at least %g as fast", wanAsFast)}
	r.Bars = []*wanBar{studyTime, ahead, lowest, lowestFast}
	disturbed := 0
	for _, cell := range r.cells() {
		ours := r.row(cell, wanSubject)
		var peers []*wanRow
		for _, row := range r.Rows {
			if row.wanCell == cell && !strings.HasPrefix(row.Peer, "fastpacs") {
				peers = append(peers, row)
			}
		}
		if ours == nil || len(peers) == 0 {
			continue
		}
		best := slices.MaxFunc(peers, func(a, b *wanRow) int { return cmp.Compare(a.GoodputMbps, b.GoodputMbps) })
		studyTime.judge(cell, 1.05*ours.GoodputMbps >= best.GoodputMbps, "%.2f x %s's", best.GoodputMbps/ours.GoodputMbps, best.Peer)
		rivals := slices.DeleteFunc(slices.Clone(peers), func(p *wanRow) bool { return p.CC == "bbr" })
		if cell.LossPct > 0 && len(rivals) > 0 {
			fastest := slices.MaxFunc(rivals, func(a, b *wanRow) int { return cmp.Compare(a.GoodputMbps, b.GoodputMbps) })
			ahead.judge(cell, ours.GoodputMbps > fastest.GoodputMbps, "%s %.1f Mb/s, ours %.1f", fastest.Peer, fastest.GoodputMbps, ours.GoodputMbps)
		}
		if cell.BDP >= 1 {
			lowest.judgeQueue(cell, ours, peers)
			lowestFast.judgeQueue(cell, ours, slices.DeleteFunc(slices.Clone(peers), func(p *wanRow) bool {
				return p.GoodputMbps < wanAsFast*ours.GoodputMbps
			}))
		}
	}
	for _, row := range r.Rows {
		if row.Disturbed {
			disturbed++
		}
	}
	if disturbed > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d of %d rows stayed disturbed (marked ~): the machine was too busy; their figures are not to be trusted", disturbed, len(r.Rows)))
	}
	r.Passed = r.complete
	for _, b := range r.Bars {
		r.Passed = r.Passed && len(b.Missed) == 0
	}
}

func (b *wanBar) judge(cell wanCell, passed bool, how string, args ...any) {
	b.Cells++
	if !passed {
		b.Missed = append(b.Missed, cell.spec()+": "+fmt.Sprintf(how, args...))
	}
}

func (b *wanBar) judgeQueue(cell wanCell, ours *wanRow, peers []*wanRow) {
	if len(peers) == 0 {
		return
	}
	low := slices.MinFunc(peers, func(a, b *wanRow) int { return cmp.Compare(a.MeanQueueMs, b.MeanQueueMs) })
	b.judge(cell, ours.MeanQueueMs <= low.MeanQueueMs, "%.1f ms, %s %.1f ms at %.1f Mb/s", ours.MeanQueueMs, low.Peer, low.MeanQueueMs, low.GoodputMbps)
}

// cells are those that there are rows of, in order.
func (r *wanReport) cells() []wanCell {
	var out []wanCell
	for _, row := range r.Rows {
		if !slices.Contains(out, row.wanCell) {
			out = append(out, row.wanCell)
		}
	}
	return out
}

func (r *wanReport) row(cell wanCell, peer string) *wanRow {
	for _, row := range r.Rows {
		if row.wanCell == cell && row.Peer == peer {
			return row
		}
	}
	return nil
}

// save writes DIR/wan.json and the plots.
func (r *wanReport) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "wan.json")
	if err := os.WriteFile(file+".new", append(b, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.Rename(file+".new", file); err != nil {
		return err
	}
	return drawWAN(dir, r)
}

func (r *wanReport) printJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *wanReport) printTable(w io.Writer) {
	fmt.Fprintf(w, "\nCT study of %d slices, %.1f MB; medians of %d runs. %s\n", r.Slices, float64(r.Bytes)/1e6, r.RunsEach, r.Machine.Date.Format("2006-01-02 15:04 MST"))
	m := r.Machine
	fmt.Fprintf(w, "Linux %s, %d x %s, %s, load %s before and %s after\n", m.Kernel, m.CPUs, m.CPU, m.Go, m.LoadStart, m.LoadEnd)
	for _, peer := range slices.Sorted(maps.Keys(m.Peers)) {
		fmt.Fprintf(w, "  %-10s %s\n", peer, m.Peers[peer])
	}
	for _, cell := range r.cells() {
		fmt.Fprintf(w, "\n%s: %.1f s if the link were full\n", cell, float64(r.Bytes)*8/1e6/cell.Mbps)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "\tstudy s\tMb/s\tqueue ms (mean, p95)\tprobe ms (mean, p95)\tdropped %\tsent again\tlate ms (link, ends)\tbusy %\t")
		for _, row := range r.Rows {
			if row.wanCell != cell {
				continue
			}
			study := fmt.Sprintf("> %.0f", r.LimitS)
			if row.StudySeconds != nil {
				study = fmt.Sprintf("%.2f", *row.StudySeconds)
			}
			mark := ""
			if row.Disturbed {
				mark = "~"
			}
			again := "?"
			if row.Retransmitted != nil {
				again = fmt.Sprintf("%.0f", *row.Retransmitted)
			}
			fmt.Fprintf(t, "%s\t%s\t%.1f\t%.1f, %.1f\t%.1f, %.1f\t%.2f\t%s\t%s%.1f, %.1f\t%.0f\t\n", row.Peer, study, row.GoodputMbps,
				row.MeanQueueMs, row.P95QueueMs, row.ProbeMeanMs, row.ProbeP95Ms, row.DropPct, again, mark, row.LateP99Ms, row.EndsLateP99Ms, row.BusyPct)
		}
		_ = t.Flush()
	}
	fmt.Fprintln(w)
	for _, b := range r.Bars {
		verdict := "ok    "
		switch {
		case len(b.Missed) > 0:
			verdict = "MISSED"
		case b.Cells == 0:
			verdict = "-     "
		}
		fmt.Fprintf(w, "  %s  %s (%d cells)\n", verdict, b.Name, b.Cells)
		for _, m := range b.Missed {
			fmt.Fprintf(w, "            %s\n", m)
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "  note    "+n)
	}
}
