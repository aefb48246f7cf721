package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"fastpacs/cc/ccsim"
)

// paperRow is one experiment, or one phase of it, with one law. Null stands for
// what the article does not say, and for flows that did not settle.
type paperRow struct {
	Exp                 int      `json:"exp"`
	Law                 string   `json:"law"`
	Phase               *string  `json:"phase"` // of Experiment 7: start, join, leave
	CapacityMbps        float64  `json:"capacity_mbps"`
	Flows               int      `json:"flows"`
	Alpha               float64  `json:"alpha"`    // packets; of the production law as measured
	ThetaMs             *float64 `json:"theta_ms"` // of Algorithm 1
	Rho                 *float64 `json:"rho"`      // eq. (1)
	ConvergenceS        *float64 `json:"convergence_s"`
	OvershootPct        float64  `json:"overshoot_pct"`
	QueueMs             float64  `json:"queue_ms"` // in the last quarter
	EquilibriumQueueMs  float64  `json:"equilibrium_queue_ms"`
	PeakQueueMs         float64  `json:"peak_queue_ms"`
	Utilization         float64  `json:"utilization"`
	ArticleConvergenceS *float64 `json:"article_convergence_s"`
	ArticleOvershootPct *float64 `json:"article_overshoot_pct"`
}

// round keeps as many decimals as a simulation's figures are good for.
func round(v float64) float64 { return math.Round(v*1e4) / 1e4 }

func msOf(d time.Duration) float64 { return round(d.Seconds() * 1e3) }

func newPaperRow(number int, o *ccsim.Outcome) paperRow {
	e := &o.Experiment
	row := paperRow{
		Exp: number, Law: string(o.Law),
		CapacityMbps: e.FairRate(1) * 8 / 1e6, Flows: o.Flows, Alpha: math.Round(o.Alpha*10) / 10,
		OvershootPct: round(o.Overshoot * 100),
		QueueMs:      msOf(o.Queue), EquilibriumQueueMs: msOf(o.Equilibrium), PeakQueueMs: msOf(o.Peak),
		Utilization: round(o.Utilization),
	}
	if o.Phase != "" {
		row.Phase = &o.Phase
	}
	if o.Law == ccsim.Alg1 {
		theta, rho := msOf(e.Theta), round(e.Rho())
		row.ThetaMs, row.Rho = &theta, &rho
	}
	if o.Convergence != nil {
		s := round(o.Convergence.Seconds())
		row.ConvergenceS = &s
	}
	return row
}

type paperReport struct {
	Rows []paperRow `json:"rows"`
}

func newPaperReport(cells []*paperCell) *paperReport {
	r := &paperReport{}
	for _, cell := range cells {
		e := &cell.experiment
		for i := range cell.outcomes {
			row := newPaperRow(e.Number, &cell.outcomes[i])
			// The article's figures are of the law that it used there.
			if cell.law == e.Law && e.Convergence != nil {
				s := e.Convergence.Seconds()
				row.ArticleConvergenceS = &s
			}
			if cell.law == e.Law && e.Overshoot != nil {
				pct := *e.Overshoot * 100
				row.ArticleOvershootPct = &pct
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return r
}

func (r *paperReport) printJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	for _, row := range r.Rows {
		if err := e.Encode(row); err != nil {
			return err
		}
	}
	return nil
}

// save writes the rows to DIR/paper.json.
func (r *paperReport) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "paper.json"), append(b, '\n'), 0o644)
}

func (r *paperReport) printTable(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "exp\tlaw\tMb/s\tflows\talpha\trho\tconverges s\tarticle\tovershoot %\tarticle\tqueue ms\tN*alpha/c\tpeak ms\tutilization\t")
	exp := 0
	for _, row := range r.Rows {
		if exp != 0 && row.Exp != exp {
			fmt.Fprintln(t, "\t\t\t\t\t\t\t\t\t\t\t\t\t\t")
		}
		exp = row.Exp
		law := row.Law
		if row.Phase != nil {
			law += ", " + *row.Phase
		}
		converges := "-"
		if row.ConvergenceS != nil {
			converges = fmt.Sprintf("%.2f", *row.ConvergenceS)
		}
		fmt.Fprintf(t, "%d\t%s\t%.0f\t%d\t%.0f\t%s\t%s\t%s\t%.1f\t%s\t%.2f\t%.2f\t%.1f\t%.3f\t\n",
			row.Exp, law, row.CapacityMbps, row.Flows, row.Alpha, optional(row.Rho, "%.3f"),
			converges, optional(row.ArticleConvergenceS, "%.0f"), row.OvershootPct, optional(row.ArticleOvershootPct, "%.0f"),
			row.QueueMs, row.EquilibriumQueueMs, row.PeakQueueMs, row.Utilization)
	}
	_ = t.Flush()
	fmt.Fprintln(w, "\nconverges: - where some flow was never within 10 % of its share to stay.")
	r.printBest(w)
}

// printBest says where Experiment 4's sweep found rho best, link by link.
func (r *paperReport) printBest(w io.Writer) {
	best := map[float64]paperRow{}
	var links []float64
	for _, row := range r.Rows {
		if row.Exp != 4 || row.Rho == nil || row.ConvergenceS == nil {
			continue
		}
		b, seen := best[row.CapacityMbps]
		if !seen {
			links = append(links, row.CapacityMbps)
		}
		if !seen || *row.ConvergenceS < *b.ConvergenceS {
			best[row.CapacityMbps] = row
		}
	}
	for _, link := range links {
		b := best[link]
		fmt.Fprintf(w, "Experiment 4, %.0f Mb/s x %d flows: fastest with rho = %.3f (theta %.2f ms), %.2f s. The article: rho about 0.1.\n",
			link, b.Flows, *b.Rho, *b.ThetaMs, *b.ConvergenceS)
	}
}

func optional(v *float64, format string) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf(format, *v)
}
