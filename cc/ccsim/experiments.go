package ccsim

import (
	"fmt"
	"slices"
	"time"

	"fastpacs/cc"
)

// Experiment is one of the article's: three flows or so through a dumbbell with an
// ample buffer, 1000-byte packets and a propagation RTT of 0.1 s.
type Experiment struct {
	Number   int
	Law      ExperimentLaw // the article's choice
	Capacity float64       // packets per second
	Flows    int
	Alpha    float64       // packets, of the article's laws
	Theta    time.Duration // of Algorithm 1
	Duration time.Duration

	// Joins says that flow 3 joins at a third of the duration, and that flow 2
	// leaves at two thirds.
	Joins bool

	// The article's figures; nil where it gives none.
	Convergence *time.Duration
	Overshoot   *float64 // share of the fair rate
}

// ExperimentLaw names a law in an experiment.
type ExperimentLaw string

// The article's algorithms run by the ns-2 rules; the production law is paced.
const (
	Alg1     ExperimentLaw = "alg1"
	Alg2     ExperimentLaw = "alg2"
	Alg3     ExperimentLaw = "alg3"
	Improved ExperimentLaw = ExperimentLaw(cc.LawImproved)
)

// ExperimentLaws lists every ExperimentLaw.
func ExperimentLaws() []ExperimentLaw { return []ExperimentLaw{Alg1, Alg2, Alg3, Improved} }

// What all experiments share.
const (
	articlePacket = 1000 // bytes
	articleRTT    = 100 * time.Millisecond
	articleTheta  = 750 * time.Microsecond

	leaver, joiner = 1, 2 // flows of Experiment 7, from 0

	// Band is how near to its fair rate a flow must stay to have converged.
	Band = 0.1
	// RateSample is how often a rate (window over avgRTT) is taken.
	RateSample = 20 * time.Millisecond
)

// Experiments are the article's, except the fourth, which SweepExperiments makes.
func Experiments() []Experiment {
	dur := func(d time.Duration) *time.Duration { return &d }
	share := func(v float64) *float64 { return &v }
	const slow, fast = 12_000, 120_000 // 96 and 960 Mb/s
	return []Experiment{
		{Number: 1, Law: Alg1, Capacity: slow, Flows: 3, Alpha: 200, Theta: articleTheta, Duration: 12 * time.Second, Convergence: dur(2 * time.Second), Overshoot: share(0.25)},
		{Number: 2, Law: Alg1, Capacity: fast, Flows: 3, Alpha: 200, Theta: articleTheta, Duration: 20 * time.Second, Convergence: dur(10 * time.Second)},
		{Number: 3, Law: Alg1, Capacity: fast, Flows: 3, Alpha: 2000, Theta: articleTheta, Duration: 12 * time.Second, Convergence: dur(2 * time.Second)},
		{Number: 5, Law: Alg2, Capacity: fast, Flows: 3, Alpha: 200, Theta: articleTheta, Duration: 20 * time.Second, Overshoot: share(0.06)},
		{Number: 6, Law: Alg3, Capacity: fast, Flows: 3, Alpha: 200, Theta: articleTheta, Duration: 20 * time.Second},
		{Number: 7, Law: Alg3, Capacity: fast, Flows: 3, Alpha: 200, Theta: articleTheta, Duration: 300 * time.Second, Joins: true},
	}
}

// SweepExperiments are the fifteen groups of Experiment 4. The article's table of
// them is lost; these are three links, on each of which theta gives the slow start
// ratio rho (cc.SlowStartRatio) five values.
func SweepExperiments() []Experiment {
	var groups []Experiment
	for _, base := range []Experiment{
		{Capacity: 12_000, Flows: 3, Alpha: 200},
		{Capacity: 48_000, Flows: 5, Alpha: 100},
		{Capacity: 120_000, Flows: 3, Alpha: 200},
	} {
		q := cc.EquilibriumQueueDelay(float64(base.Flows), base.Alpha, base.Capacity)
		for _, rho := range []float64{0.015, 0.05, 0.1, 0.2, 0.5} {
			e := base
			e.Number, e.Law, e.Duration = 4, Alg1, 20*time.Second
			e.Theta = time.Duration(rho * q * 1e9)
			groups = append(groups, e)
		}
	}
	return groups
}

// Rho is the slow start ratio of Algorithm 1 in this experiment.
func (e *Experiment) Rho() float64 {
	return cc.SlowStartRatio(e.Theta.Seconds(), e.Capacity, float64(e.Flows), e.Alpha)
}

// FairRate is a flow's equal share with n flows, in bytes per second.
func (e *Experiment) FairRate(n int) float64 { return e.Capacity * articlePacket / float64(n) }

// Config is the simulation of an experiment with a law. Flows start together; the
// seed draws the random overhead that keeps ns-2's flows out of lockstep.
func (e *Experiment) Config(law ExperimentLaw, seed uint64) Config {
	rate := e.Capacity * articlePacket
	c := Config{
		Link:     Link{Rate: rate, Buffer: int64(10 * rate)}, // 10 s: ample
		Duration: e.Duration, Sample: RateSample, Seed: seed,
	}
	for i := range e.Flows {
		f := Flow{RTT: articleRTT, Packet: articlePacket}
		if law == Improved {
			f.Paced = Law(cc.LawImproved)
		} else {
			p := Article(int(law[len(law)-1]-'0'), e.Alpha)
			p.Theta = e.Theta
			f.NS2, f.Access = &p, 2*rate
			f.Overhead = time.Duration(articlePacket * 1e9 / rate)
		}
		if e.Joins {
			switch i {
			case leaver:
				f.Stop = e.Duration * 2 / 3
			case joiner:
				f.Start = e.Duration / 3
			}
		}
		c.Flows = append(c.Flows, f)
	}
	return c
}

// Outcome is what an experiment showed: medians over its runs.
type Outcome struct {
	Experiment Experiment
	Law        ExperimentLaw
	Phase      string // of Experiment 7: "start", "join", "leave"
	Flows      int    // running in this phase

	// Convergence is the last time at which any flow's rate was outside of Band
	// around its fair rate, from the phase's start; nil if they did not settle.
	Convergence *time.Duration
	Overshoot   float64       // highest rate over the fair rate, less 1
	Alpha       float64       // packets; of the production law the mean at the end
	Queue       time.Duration // mean wait in the last quarter
	Equilibrium time.Duration // N*alpha/c
	Peak        time.Duration // longest queue
	Utilization float64       // of the phase

	Result *Result // of the first run
}

// Run runs an experiment with a law, once for each seed from 1 to runs.
func (e *Experiment) Run(law ExperimentLaw, runs int) ([]Outcome, error) {
	var phases [][]Outcome // by phase, then run
	for seed := 1; seed <= runs; seed++ {
		r, err := Run(e.Config(law, uint64(seed)))
		if err != nil {
			return nil, fmt.Errorf("experiment %d with %s: %w", e.Number, law, err)
		}
		for i, o := range e.outcomes(law, r) {
			if seed == 1 {
				o.Result = r
				phases = append(phases, nil)
			}
			phases[i] = append(phases[i], o)
		}
	}
	outcomes := make([]Outcome, len(phases))
	for i, all := range phases {
		outcomes[i] = medianOutcome(all)
	}
	return outcomes, nil
}

func (e *Experiment) outcomes(law ExperimentLaw, r *Result) []Outcome {
	if !e.Joins {
		return []Outcome{e.outcome(law, r, "", e.Flows, 0, e.Duration)}
	}
	third := e.Duration / 3
	return []Outcome{
		e.outcome(law, r, "start", e.Flows-1, 0, third),
		e.outcome(law, r, "join", e.Flows, third, 2*third, joiner),
		e.outcome(law, r, "leave", e.Flows-1, 2*third, e.Duration),
	}
}

// outcome takes the figures of a phase. Overshoot is that of the flows in over, or
// of all: those that a joiner finds stand above their new share, and should.
func (e *Experiment) outcome(law ExperimentLaw, r *Result, phase string, flows int, from, to time.Duration, over ...int) Outcome {
	o := Outcome{
		Experiment: *e, Law: law, Phase: phase, Flows: flows, Alpha: e.Alpha,
		Overshoot: r.Overshoot(from, to, over...), Peak: r.PeakQueueDelay(from, to), Utilization: r.Utilization(from, to),
		// The last quarter stands for the equilibrium.
		Queue: r.QueueDelay(to-(to-from)/4, to),
	}
	if after, settled := r.Convergence(Band, from, to); settled {
		o.Convergence = &after
	}
	if law == Improved {
		o.Alpha = r.meanAlpha(to-(to-from)/4, to)
	}
	q := cc.EquilibriumQueueDelay(float64(flows), o.Alpha, e.Capacity)
	o.Equilibrium = time.Duration(q * 1e9)
	return o
}

// meanAlpha is the running flows' mean alpha between from and to.
func (r *Result) meanAlpha(from, to time.Duration) float64 {
	first, last := r.span(from, to)
	sum, n := 0.0, 0
	for f := range r.Flows {
		for _, s := range r.Flows[f].Samples[first:last] {
			if s.Running {
				sum += s.Alpha
				n++
			}
		}
	}
	return sum / float64(max(n, 1))
}

func medianOutcome(all []Outcome) Outcome {
	o := all[0]
	o.Overshoot = median(all, func(o *Outcome) float64 { return o.Overshoot })
	o.Alpha = median(all, func(o *Outcome) float64 { return o.Alpha })
	o.Utilization = median(all, func(o *Outcome) float64 { return o.Utilization })
	o.Queue = median(all, func(o *Outcome) time.Duration { return o.Queue })
	o.Equilibrium = median(all, func(o *Outcome) time.Duration { return o.Equilibrium })
	o.Peak = median(all, func(o *Outcome) time.Duration { return o.Peak })
	const unsettled = time.Duration(1<<63 - 1)
	convergence := median(all, func(o *Outcome) time.Duration {
		if o.Convergence == nil {
			return unsettled
		}
		return *o.Convergence
	})
	o.Convergence = &convergence
	if convergence == unsettled {
		o.Convergence = nil
	}
	return o
}

// median is the middle one of the values, the lower of two.
func median[T float64 | time.Duration](all []Outcome, value func(*Outcome) T) T {
	values := make([]T, len(all))
	for i := range all {
		values[i] = value(&all[i])
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
