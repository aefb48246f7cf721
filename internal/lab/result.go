package lab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Result is what one scenario gave with one law.
type Result struct {
	Scenario string `json:"scenario"`
	CC       string `json:"cc"`
	Seed     uint64 `json:"seed"`
	Seeds    int    `json:"seeds"` // runs averaged, seeds Seed to Seed+Seeds-1

	Utilization        Figure `json:"utilization"`           // bytes the bottleneck sent / could have sent, while measured
	MeanQueueMs        Figure `json:"mean_queue_ms"`         // mean wait of a datagram, while measured
	P95QueueMs         Figure `json:"p95_queue_ms"`          // 95 % waited no longer, while measured
	PeakStartupQueueMs Figure `json:"peak_startup_queue_ms"` // longest wait in the first StartupPeriod
	LossPct            Figure `json:"loss_pct"`              // datagrams the queue dropped / offered, while measured; random loss aside
	Jain               Figure `json:"jain"`                  // Jain's index of the flows' goodput, while measured
	ConvergenceS       Figure `json:"convergence_s"`         // from the last start; see Record.Convergence
	TimeTo90S          Figure `json:"time_to_90_s"`          // from the first start until 100 ms ran at 90 % of the rate
	Share              Figure `json:"share"`                 // goodput of our flows / of all, while measured; null without cross traffic
	Survived           bool   `json:"survived"`              // every connection lived, and delivered to the end

	Extra  map[string]Figure `json:"extra"`
	Errors []string          `json:"errors,omitempty"` // why it did not survive
	Bars   []Verdict         `json:"bars,omitempty"`
}

// Figure returns the figure with a JSON name, Survived as 0 or 1.
func (r *Result) Figure(name string) Figure {
	switch name {
	case "utilization":
		return r.Utilization
	case "mean_queue_ms":
		return r.MeanQueueMs
	case "p95_queue_ms":
		return r.P95QueueMs
	case "peak_startup_queue_ms":
		return r.PeakStartupQueueMs
	case "loss_pct":
		return r.LossPct
	case "jain":
		return r.Jain
	case "convergence_s":
		return r.ConvergenceS
	case "time_to_90_s":
		return r.TimeTo90S
	case "share":
		return r.Share
	case "survived":
		if r.Survived {
			return 1
		}
		return 0
	}
	if f, ok := r.Extra[name]; ok {
		return f
	}
	if strings.HasPrefix(name, "in_") && strings.HasSuffix(name, "_pct") {
		return 0 // a state that was never entered
	}
	return None()
}

// figures lists the addresses of the figures that are averaged over seeds.
func (r *Result) figures() []*Figure {
	return []*Figure{
		&r.Utilization, &r.MeanQueueMs, &r.P95QueueMs, &r.PeakStartupQueueMs, &r.LossPct,
		&r.Jain, &r.ConvergenceS, &r.TimeTo90S, &r.Share,
	}
}

// Judge holds the result against bars.
func (r *Result) Judge(bars []Bar) {
	r.Bars = nil
	for _, b := range bars {
		r.Bars = append(r.Bars, b.judge(r.Figure(b.Metric)))
	}
}

// Pass reports whether no bar failed.
func (r *Result) Pass() bool {
	return !slices.ContainsFunc(r.Bars, func(v Verdict) bool { return !v.Pass })
}

// Mean averages results of one scenario and law over their seeds. A figure that
// one of them lacks is lacking in the mean; it survived if all did.
func Mean(runs []Result) Result {
	m := runs[0]
	m.Extra = maps.Clone(m.Extra)
	m.Seeds = len(runs)
	for _, r := range runs[1:] {
		for i, f := range r.figures() {
			*m.figures()[i] += *f
		}
		for k := range r.Extra {
			if _, ok := m.Extra[k]; !ok {
				m.Extra[k] = runs[0].Figure(k) // a state that only some runs entered
			}
		}
		for k := range m.Extra {
			m.Extra[k] += r.Figure(k)
		}
		m.Survived = m.Survived && r.Survived
		m.Errors = append(m.Errors, r.Errors...)
	}
	n := Figure(len(runs))
	for _, f := range m.figures() {
		*f /= n
	}
	for k := range m.Extra {
		m.Extra[k] /= n
	}
	return m
}

// String is one line for people.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s %-8s seed=%d util=%s queue=%sms p95=%s peak0=%s loss=%s%% jain=%s conv=%ss t90=%ss share=%s survived=%v",
		r.Scenario, r.CC, r.Seed, r.Utilization.Format(3), r.MeanQueueMs.Format(2), r.P95QueueMs.Format(2),
		r.PeakStartupQueueMs.Format(1), r.LossPct.Format(3), r.Jain.Format(3), r.ConvergenceS.Format(1),
		r.TimeTo90S.Format(2), r.Share.Format(3), r.Survived)
	for _, k := range slices.Sorted(maps.Keys(r.Extra)) {
		fmt.Fprintf(&b, " %s=%s", k, r.Extra[k].Format(3))
	}
	for _, e := range r.Errors {
		fmt.Fprintf(&b, "\n    error: %s", e)
	}
	for _, v := range r.Bars {
		if !v.Pass {
			fmt.Fprintf(&b, "\n    %v", v)
		}
	}
	return b.String()
}
