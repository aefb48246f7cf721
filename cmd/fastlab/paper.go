package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"fastpacs/cc/ccsim"
)

// paperConfig is what fastlab paper was asked for.
type paperConfig struct {
	experiments []ccsim.Experiment
	runs        int
	parallel    int
	json        bool
	out         string // folder for figures and rows; "" for none
}

func parsePaper(args []string, stderr io.Writer) (paperConfig, error) {
	var c paperConfig
	fs := flag.NewFlagSet("fastlab paper", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, `Usage: fastlab paper [flags]

Runs the article's experiments: its Algorithms 1, 2 and 3 by the rules of ns-2's
FAST module, and the production law, paced, beside them. Convergence is the last
time at which any flow's rate (window over smoothed RTT, sampled every 20 ms) is
more than 10 % away from its equal share; overshoot is the highest rate over it.`)
		fs.PrintDefaults()
	}
	numbers := fs.String("exp", "all", "`numbers` of experiments (1 to 7), comma separated, or all")
	fs.IntVar(&c.runs, "runs", 3, "`number` of runs with different seeds whose median is shown; 1 for Experiments 4 and 7")
	fs.IntVar(&c.parallel, "parallel", runtime.NumCPU(), "`number` of simulations at a time")
	fs.BoolVar(&c.json, "json", false, "print one JSON object a line instead of a table")
	fs.StringVar(&c.out, "out", "out/paper", "`folder` for the figures (SVG and PNG) and the rows (paper.json); empty for none")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	all := slices.Concat(ccsim.Experiments(), ccsim.SweepExperiments())
	slices.SortStableFunc(all, func(a, b ccsim.Experiment) int { return cmp.Compare(a.Number, b.Number) })
	if *numbers == "all" {
		*numbers = "1,2,3,4,5,6,7"
	}
	var wanted []int
	for s := range strings.SplitSeq(*numbers, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > 7 {
			return c, fmt.Errorf("-exp %q: must be numbers from 1 to 7, or all", s)
		}
		wanted = append(wanted, n)
	}
	for _, e := range all {
		if slices.Contains(wanted, e.Number) {
			c.experiments = append(c.experiments, e)
		}
	}
	switch {
	case c.runs < 1 || c.runs > 100:
		return c, fmt.Errorf("-runs %d: must be 1 to 100", c.runs)
	case c.parallel < 1:
		return c, fmt.Errorf("-parallel %d: must be 1 or more", c.parallel)
	}
	return c, nil
}

// runPaper is the subcommand; it returns the status of the process.
func runPaper(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parsePaper(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "fastlab paper:", err)
		return exitUsage
	}
	if err := c.run(ctx, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "fastlab paper:", err)
		return exitFailed
	}
	return exitOK
}

func (c paperConfig) run(ctx context.Context, stdout, stderr io.Writer) error {
	p := newProgress(stderr)
	cells, err := c.simulate(ctx, p)
	p.done()
	if err != nil {
		return err
	}
	report := newPaperReport(cells)
	if c.out != "" {
		if err := report.save(c.out); err != nil {
			return fmt.Errorf("saving to %s: %w", c.out, err)
		}
		if err := drawPaper(c.out, cells); err != nil {
			return fmt.Errorf("drawing to %s: %w", c.out, err)
		}
	}
	if c.json {
		return report.printJSON(stdout)
	}
	report.printTable(stdout)
	if c.out != "" {
		fmt.Fprintf(stdout, "\nFigures and rows are in %s.\n", c.out)
	}
	return nil
}

// paperCell is an experiment with a law.
type paperCell struct {
	experiment ccsim.Experiment
	law        ccsim.ExperimentLaw
	outcomes   []ccsim.Outcome // one a phase
	err        error
}

// paperCells pairs the experiments with the laws that they show.
func paperCells(experiments []ccsim.Experiment) []*paperCell {
	var cells []*paperCell
	for i, e := range experiments {
		laws := ccsim.ExperimentLaws()
		switch {
		case e.Number == 7:
			laws = []ccsim.ExperimentLaw{ccsim.Alg1, ccsim.Alg3, ccsim.Improved}
		case e.Number == 4:
			laws = []ccsim.ExperimentLaw{ccsim.Alg1}
			// Theta means nothing to the production law: once per link.
			if i == 0 || experiments[i-1].Number != 4 || experiments[i-1].Capacity != e.Capacity {
				laws = append(laws, ccsim.Improved)
			}
		}
		for _, law := range laws {
			cells = append(cells, &paperCell{experiment: e, law: law})
		}
	}
	return cells
}

// simulate runs all cells, those that take longest first. Cells that differ in
// their number only share one simulation.
func (c paperConfig) simulate(ctx context.Context, p *progress) ([]*paperCell, error) {
	cells := paperCells(c.experiments)
	type setup struct {
		capacity, alpha        float64
		flows                  int
		theta, duration, joins string
		law                    ccsim.ExperimentLaw
	}
	same := map[setup][]*paperCell{}
	var order []setup
	for _, cell := range cells {
		e := &cell.experiment
		key := setup{e.Capacity, e.Alpha, e.Flows, e.Theta.String(), e.Duration.String(), strconv.FormatBool(e.Joins), cell.law}
		if same[key] == nil {
			order = append(order, key)
		}
		same[key] = append(same[key], cell)
	}
	cost := func(k setup) float64 { return k.capacity * same[k][0].experiment.Duration.Seconds() }
	slices.SortStableFunc(order, func(a, b setup) int { return cmp.Compare(cost(b), cost(a)) })

	work := make(chan setup, len(order))
	for _, key := range order {
		work <- key
	}
	close(work)
	var mu sync.Mutex
	finished := 0
	var workers sync.WaitGroup
	for range min(c.parallel, len(order)) {
		workers.Go(func() {
			for key := range work {
				if ctx.Err() != nil {
					return
				}
				first := same[key][0]
				runs := c.runs
				if n := first.experiment.Number; n == 4 || n == 7 {
					runs = 1
				}
				outcomes, err := first.experiment.Run(key.law, runs)
				for _, cell := range same[key] {
					cell.outcomes, cell.err = outcomes, err
				}
				mu.Lock()
				finished++
				p.update("%d of %d simulations", finished, len(order))
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, cell := range cells {
		if cell.err != nil {
			return nil, cell.err
		}
	}
	return cells, nil
}
