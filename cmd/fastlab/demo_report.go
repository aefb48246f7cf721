package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"fastpacs/cc"
)

// demoReport is what demo.json holds.
type demoReport struct {
	Slices  int       `json:"slices"`
	Seed    uint64    `json:"seed"`
	RTTms   float64   `json:"rtt_ms"`
	LossPct float64   `json:"link_loss_pct"`
	Rows    []demoRow `json:"rows"`
	Bars    []demoBar `json:"bars"`
	Passed  bool      `json:"passed"`
	Notes   []string  `json:"notes,omitempty"`
}

// demoRow is one fetch through the link.
type demoRow struct {
	CC        string `json:"cc"`
	Retrieval string `json:"retrieval"`
	// Attempt is 2 or more if the machine was too busy for the ones before.
	Attempt int `json:"attempt"`
	// GoodputMbps counts the bytes of instances only, from the first request for
	// one to the last byte of the last.
	LinkMbps    float64 `json:"link_mbps"`
	GoodputMbps float64 `json:"goodput_mbps"`
	// Utilization is the share of the link's capacity that IP packets took in
	// that time.
	Utilization float64 `json:"utilization"`
	FindSeconds float64 `json:"find_seconds"` // connecting and QIDO-RS
	Seconds     float64 `json:"seconds"`
	Instances   int     `json:"instances"`
	Bytes       int64   `json:"bytes"`
	// Time in the link's buffer, toward the client, weighted by bytes.
	MeanQueueMs float64 `json:"mean_queue_ms"`
	P95QueueMs  float64 `json:"p95_queue_ms"`
	MaxQueueMs  float64 `json:"max_queue_ms"`
	LossPct     float64 `json:"loss_pct"` // random losses and buffer drops
	BufferDrops int64   `json:"buffer_drops"`
	Verified    bool    `json:"verified"` // every byte as it was stored
	// What the emulator itself added: milliseconds here mean a busy machine.
	LateP99Ms      float64 `json:"late_p99_ms"`
	LateMaxMs      float64 `json:"late_max_ms"`
	EmulatorLosses int64   `json:"emulator_losses"`
}

// demoBar is one thing the demo must show.
type demoBar struct {
	Name   string  `json:"name"`
	Want   string  `json:"want"`
	Got    float64 `json:"got"`
	Passed bool    `json:"passed"`
}

// What the demo must show.
const (
	barShare   = 0.85 // of the link's rate, as goodput
	barSpeedup = 5    // over reno
	barQueueMs = 20
	// disturbedLateMs is how late 1 in 100 packets may be for a figure to stand.
	disturbedLateMs = 5
)

func newDemoReport(c demoConfig) *demoReport {
	return &demoReport{Slices: c.slices, Seed: c.seed, RTTms: milliseconds(c.rtt), LossPct: c.loss}
}

// disturbed reports whether the machine, rather than the link, made the figures.
func (r demoRow) disturbed() bool {
	return r.LateP99Ms > disturbedLateMs || r.EmulatorLosses > 0
}

func (r *demoReport) row(law cc.Law) demoRow {
	for _, row := range r.Rows {
		if row.CC == string(law) {
			return row
		}
	}
	return demoRow{}
}

// judge holds the rows against the bars.
func (r *demoReport) judge() {
	improved, reno := r.row(cc.LawImproved), r.row(cc.LawReno)
	verified := 0.0
	if improved.Verified && reno.Verified {
		verified = 1
	}
	share := improved.GoodputMbps / improved.LinkMbps
	speedup := 0.0
	if reno.GoodputMbps > 0 {
		speedup = improved.GoodputMbps / reno.GoodputMbps
	}
	r.Bars = []demoBar{
		{"improved: goodput as a share of the link", fmt.Sprintf(">= %g", barShare), share, share >= barShare},
		{"improved against reno", fmt.Sprintf(">= %d times", barSpeedup), speedup, speedup >= barSpeedup},
		{"improved: mean queue, ms", fmt.Sprintf("<= %d", barQueueMs), improved.MeanQueueMs, improved.MeanQueueMs <= barQueueMs},
		{"every instance identical to what was stored", "1", verified, verified == 1},
	}
	r.Passed = true
	for _, b := range r.Bars {
		r.Passed = r.Passed && b.Passed
	}
	for _, row := range r.Rows {
		if row.disturbed() {
			r.Notes = append(r.Notes, fmt.Sprintf(
				"%s: the machine was busy: the emulator delivered 1 in 100 packets more than %.1f ms late and lost %d itself; run again when it is quiet",
				row.CC, row.LateP99Ms, row.EmulatorLosses))
		} else if row.Attempt > 1 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: measured %d times, since the machine was busy before", row.CC, row.Attempt))
		}
	}
}

// write stores the report, whole or not at all.
func (r *demoReport) write(file string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	next := file + ".new"
	if err := os.WriteFile(next, append(b, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(next, file)
}

func (r *demoReport) printJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

func (r *demoReport) printTable(w io.Writer) {
	first := r.Rows[0]
	fmt.Fprintf(w, "\nLink of %g Mb/s, %g ms round trip, %g %% random loss; study of %d slices\n\n", first.LinkMbps, r.RTTms, r.LossPct, r.Slices)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "cc\tMb/s\tof link\tutilization\tseconds\tMB\tqueue ms (mean, p95)\tloss %\tidentical\t")
	for _, row := range r.Rows {
		identical := "NO"
		if row.Verified {
			identical = fmt.Sprintf("%d of %d", row.Instances, row.Instances)
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.3f\t%.3f\t%.1f\t%.1f\t%.1f, %.1f\t%.2f\t%s\t\n",
			row.CC, row.GoodputMbps, row.GoodputMbps/row.LinkMbps, row.Utilization, row.Seconds, float64(row.Bytes)/1e6,
			row.MeanQueueMs, row.P95QueueMs, row.LossPct, identical)
	}
	_ = t.Flush()
	fmt.Fprintf(w, "\nWADO-RS: %s. Mb/s counts the instances' bytes, utilization all packets.\n\n", r.row(cc.LawImproved).Retrieval)
	for _, b := range r.Bars {
		verdict := "ok    "
		if !b.Passed {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "  %s  %s: %.3g (want %s)\n", verdict, b.Name, b.Got, b.Want)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(w, "  note   ", n)
	}
}
