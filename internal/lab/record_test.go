package lab

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"fastpacs/cc"
)

// recorded is a record of flows on a link of 80 Mb/s, sampled to the end, of
// which flow i gets share(i, t) of the link's bytes.
func recorded(end time.Duration, flows []Flow, share func(i int, t time.Duration) float64) *Record {
	const rate = 80e6
	tickBytes := rate / 8 * Tick.Seconds()
	s := newSeries(len(flows))
	sums := make([]int64, len(flows))
	for t := Tick; t <= end; t += Tick {
		total := 0.0
		received := make([]int64, len(flows))
		for i := range flows {
			x := share(i, t)
			total += x
			sums[i] += int64(x * tickBytes)
			received[i] = sums[i]
		}
		s.add(sample{rate: rate, link: LinkStats{Packets: 100, Bytes: int64(total * tickBytes)}, received: received})
	}
	for i := range flows {
		if flows[i].Stop == 0 {
			flows[i].Stop = end
		}
	}
	return &Record{Series: s, Scenario: &Scenario{Name: "test", Duration: end}, Flows: flows, PacketSize: 1280, Queue: new(QueueHistogram)}
}

func near(f Figure, want, tolerance float64) bool { return math.Abs(float64(f)-want) <= tolerance }

func TestConvergenceIsTheLastExcursion(t *testing.T) {
	const settles = 3 * time.Second
	unfair := func(i int, t time.Duration) float64 {
		if t <= settles {
			return []float64{0.7, 0.3}[i]
		}
		return 0.5
	}
	r := recorded(10*time.Second, make([]Flow, 2), unfair)
	// half a second's mean is within 10 % once 0.2 of 0.2+0.05 has gone by
	if c := r.Convergence(0, r.End()); !near(c, 3.375, 0.03) {
		t.Errorf("converged after %v s", c)
	}
	if c := r.Convergence(2*time.Second, r.End()); !near(c, 1.375, 0.03) {
		t.Errorf("converged %v s after second 2", c)
	}
	if c := r.Convergence(0, settles); c.Exists() {
		t.Errorf("converged after %v s before it was fair", c)
	}
	if o := r.overshoot(0, 4*time.Second); !near(o, 40, 0.1) {
		t.Errorf("overshoot %v %%", o)
	}
	if j := r.jain(0, 3*time.Second); !near(j, 1/(2*(0.49+0.09)), 1e-3) {
		t.Errorf("Jain %v", j)
	}
}

func TestConvergenceLeavesDrainsOut(t *testing.T) {
	const from, to = 5 * time.Second, 5200 * time.Millisecond
	dip := func(_ int, t time.Duration) float64 {
		if t > from && t <= to {
			return 0.1
		}
		return 0.5
	}
	r := recorded(10*time.Second, []Flow{{RTT: 100 * time.Millisecond}, {RTT: 100 * time.Millisecond}}, dip)
	if c := r.Convergence(0, r.End()); !near(c, 5.6, 0.3) {
		t.Errorf("a dip: converged after %v s", c)
	}
	for k := r.index(from); k <= r.index(to); k++ {
		r.draining[k] = true
	}
	if c := r.Convergence(0, r.End()); c != 0 {
		t.Errorf("a drain: converged after %v s", c)
	}
}

func TestFairShareCountsWhoIsThere(t *testing.T) {
	flows := []Flow{{}, {Start: 4 * time.Second, Stop: 6 * time.Second}}
	r := recorded(8*time.Second, flows, func(i int, t time.Duration) float64 {
		if there := t > 4*time.Second && t <= 6*time.Second; !there {
			return []float64{1, 0}[i]
		}
		return 0.5
	})
	for from, want := range map[time.Duration]float64{time.Second: 80e6, 5 * time.Second: 40e6, 7 * time.Second: 80e6} {
		if got := r.fairShare(from, from+smoothing); math.Abs(got-want) > 1e4 {
			t.Errorf("at %v: %v, want %v", from, got, want)
		}
	}
	if end := r.undisturbedUntil(4 * time.Second); end != 6*time.Second {
		t.Errorf("undisturbed until %v", end)
	}
	if first, last := r.starts(); first != 0 || last != 4*time.Second {
		t.Errorf("starts %v, %v", first, last)
	}
}

func TestShareIsAgainstCrossTraffic(t *testing.T) {
	quarter := func(i int, _ time.Duration) float64 { return []float64{0.25, 0.75}[i] }
	if s := recorded(time.Second, make([]Flow, 2), quarter).share(0, time.Second); s.Exists() {
		t.Errorf("share %v without cross traffic", s)
	}
	if s := recorded(time.Second, []Flow{{}, {Law: cc.LawReno}}, quarter).share(0, time.Second); !near(s, 0.25, 1e-3) {
		t.Errorf("share %v, want 0.25", s)
	}
}

func TestTimesAreFound(t *testing.T) {
	r := recorded(5*time.Second, make([]Flow, 1), func(_ int, t time.Duration) float64 {
		if t <= 2*time.Second {
			return 0.5
		}
		return 0.95
	})
	// 100 ms of which 90 are at 0.95 average 0.9
	if s := r.reaches(0, 0.9); !near(s, 2.1, 0.021) {
		t.Errorf("90 %% after %v s", s)
	}
	if s := r.reaches(0, 0.99); s.Exists() {
		t.Errorf("99 %% after %v s", s)
	}
	if s := r.full(time.Second, 0, 0.94); !near(s, 1.2, 0.021) {
		t.Errorf("full %v s after second 1", s)
	}
	if u := r.Utilization(0, 4*time.Second); math.Abs(u-0.725) > 1e-3 {
		t.Errorf("utilization %v", u)
	}
}

func TestMeanOfSeeds(t *testing.T) {
	m := Mean([]Result{
		{Scenario: "x", Seed: 3, Share: 0.25, Jain: 1, Survived: true, Extra: map[string]Figure{"a": 1, "in_steady_pct": 100}},
		{Scenario: "x", Seed: 4, Share: 0.75, Jain: None(), Errors: []string{"dead"}, Extra: map[string]Figure{"a": 3, "in_probe_pct": 10}},
	})
	if m.Share != 0.5 || m.Jain.Exists() || m.Survived || len(m.Errors) != 1 || m.Seed != 3 || m.Seeds != 2 {
		t.Errorf("%+v", m)
	}
	if x := m.Extra; x["a"] != 2 || x["in_steady_pct"] != 50 || x["in_probe_pct"] != 5 {
		t.Errorf("%v", x)
	}
}

func TestBars(t *testing.T) {
	r := Result{Utilization: 0.95, Jain: None(), Survived: true, Extra: map[string]Figure{"drops": 0}}
	r.Judge([]Bar{
		{"utilization", AtLeast, 0.95},
		{"utilization", AtMost, 0.94},
		{"jain", AtMost, 1},
		{"drops", AtMost, 0},
		{"survived", AtLeast, 1},
		{stateMetric(cc.StateCompetitive), AtMost, 0},
		{"no_such_figure", AtLeast, 0},
	})
	want := []bool{true, false, false, true, true, true, false}
	for i, v := range r.Bars {
		if v.Pass != want[i] {
			t.Errorf("%v", v)
		}
	}
	if r.Pass() {
		t.Error("passed with bars missed")
	}
}

func TestResultIsJSON(t *testing.T) {
	in := Result{
		Scenario: "x", CC: "reno", Utilization: 0.987654321, Jain: None(), ConvergenceS: Figure(math.Inf(1)), Survived: true,
		Extra: map[string]Figure{"drops": 3, "b": None()},
	}
	in.Judge([]Bar{{"utilization", AtLeast, 0.9}})
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(b, &raw); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"scenario", "cc", "utilization", "mean_queue_ms", "p95_queue_ms", "peak_startup_queue_ms", "loss_pct",
		"jain", "convergence_s", "time_to_90_s", "share", "survived",
	} {
		if _, ok := raw[name]; !ok {
			t.Errorf("no %s in %s", name, b)
		}
	}
	if raw["jain"] != nil || raw["convergence_s"] != nil {
		t.Errorf("figures that do not exist: %s", b)
	}
	var out Result
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if out.Jain.Exists() || !near(out.Utilization, 0.987654, 1e-6) || out.Extra["drops"] != 3 || len(out.Bars) != 1 || !out.Bars[0].Pass {
		t.Errorf("%+v from %s", out, b)
	}
}
