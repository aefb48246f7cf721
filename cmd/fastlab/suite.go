package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/internal/lab"
)

// suiteConfig is what fastlab suite was asked for.
type suiteConfig struct {
	scenarios []lab.Scenario
	laws      []cc.Law
	seed      uint64
	duration  time.Duration
	trace     time.Duration
	timeout   time.Duration
	parallel  int
	json      bool
	list      bool
	one       bool
}

func parseSuite(args []string, stderr io.Writer) (suiteConfig, error) {
	var c suiteConfig
	fs := flag.NewFlagSet("fastlab suite", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fmt.Fprintln(stderr, `Usage: fastlab suite [flags]

Runs named scenarios, the product's QUIC client and server on an emulated path
in virtual time, and holds the results against the bars of the production law.
Status 1 if "improved" misses a bar.`)
		fs.PrintDefaults()
	}
	scenarios := fs.String("scenario", "all", "`names` of scenarios, comma separated, or all")
	laws := fs.String("cc", "improved,static,reno", "congestion control `laws`, comma separated")
	fs.Uint64Var(&c.seed, "seed", 1, "`seed` of every random draw")
	fs.DurationVar(&c.duration, "d", 0, "cut scenarios short to this `duration`; bars are not judged then")
	fs.DurationVar(&c.trace, "trace", 0, "print the state of path and controllers to stderr every `interval` of virtual time; one run at a time")
	fs.DurationVar(&c.timeout, "timeout", 20*time.Minute, "`limit` for one scenario and law, by the wall's clock")
	fs.IntVar(&c.parallel, "parallel", runtime.NumCPU(), "`number` of runs at a time; each takes one CPU")
	fs.BoolVar(&c.json, "json", false, "print one JSON object a line instead of a table")
	fs.BoolVar(&c.list, "list", false, "list the scenarios and their bars, and run nothing")
	fs.BoolVar(&c.one, "one", false, "run one scenario with one law in this very process, print its JSON and exit; suite starts itself so for each row")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if *scenarios == "all" {
		c.scenarios = lab.Scenarios()
	} else {
		for name := range strings.SplitSeq(*scenarios, ",") {
			s, err := lab.Find(strings.TrimSpace(name))
			if err != nil {
				return c, err
			}
			c.scenarios = append(c.scenarios, s)
		}
	}
	for name := range strings.SplitSeq(*laws, ",") {
		law, err := cc.ParseLaw(strings.TrimSpace(name))
		if err != nil {
			return c, err
		}
		c.laws = append(c.laws, law)
	}
	switch {
	case c.parallel < 1:
		return c, fmt.Errorf("-parallel %d: must be 1 or more", c.parallel)
	case c.duration < 0 || c.trace < 0 || c.timeout <= 0:
		return c, errors.New("-d and -trace must be 0 or more, -timeout above 0")
	case c.one && (len(c.scenarios) != 1 || len(c.laws) != 1):
		return c, errors.New("-one: wants one -scenario and one -cc")
	}
	if c.trace > 0 {
		c.parallel = 1 // the traces of several runs would mix
	}
	return c, nil
}

// runSuite is the subcommand; it returns the status of the process.
func runSuite(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseSuite(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "fastlab suite:", err)
		return exitUsage
	case c.list:
		listScenarios(stdout, c.scenarios)
		return exitOK
	case c.one:
		context.AfterFunc(ctx, func() { os.Exit(exitFailed) }) // in virtual time nothing waits for it
		lab.Main(func(t *testing.T) int { return c.runOne(t, stdout, stderr) })
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, "fastlab suite: finding this program:", err)
		return exitFailed
	}
	return c.runAll(ctx, self, stdout, stderr)
}

// runOne is the work of a child.
func (c suiteConfig) runOne(t *testing.T, stdout, stderr io.Writer) int {
	o := lab.Options{Law: c.laws[0], Seed: c.seed, Duration: c.duration}
	if c.trace > 0 {
		o.Trace, o.TraceEvery = stderr, c.trace
	}
	if err := json.NewEncoder(stdout).Encode(lab.Run(t, c.scenarios[0], o)); err != nil {
		fmt.Fprintln(stderr, "fastlab suite: printing the result:", err)
		return exitFailed
	}
	return exitOK
}

// suiteRow is a row of the table, filled in by a child.
type suiteRow struct {
	scenario string
	law      cc.Law
	result   lab.Result
	took     time.Duration
	err      error
	done     chan struct{}
}

// runAll runs every scenario with every law, each in a child of its own: runs
// use one CPU each, and one that fails takes no other with it. Rows are printed
// in order, as soon as they and those before are ready.
func (c suiteConfig) runAll(ctx context.Context, self string, stdout, stderr io.Writer) int {
	var rows []*suiteRow
	for _, s := range c.scenarios {
		for _, law := range c.laws {
			rows = append(rows, &suiteRow{scenario: s.Name, law: law, done: make(chan struct{})})
		}
	}
	work := make(chan *suiteRow)
	var workers sync.WaitGroup
	for range min(c.parallel, len(rows)) {
		workers.Go(func() {
			for row := range work {
				c.runChild(ctx, self, row, stderr)
				close(row.done)
			}
		})
	}
	go func() {
		for _, row := range rows {
			work <- row
		}
		close(work)
	}()
	if !c.json {
		printSuiteHead(stdout)
	}
	status := exitOK
	for _, row := range rows {
		<-row.done
		if row.err != nil {
			fmt.Fprintf(stderr, "fastlab suite: %s, %s: %v\n", row.scenario, row.law, row.err)
			status = exitFailed
			continue
		}
		if c.json {
			if err := json.NewEncoder(stdout).Encode(row.result); err != nil {
				fmt.Fprintln(stderr, "fastlab suite: printing a result:", err)
				status = exitFailed
			}
		} else {
			printSuiteRow(stdout, row)
		}
		if row.law == cc.LawImproved && !row.result.Pass() {
			status = exitFailed
		}
	}
	workers.Wait()
	return status
}

func (c suiteConfig) runChild(ctx context.Context, self string, row *suiteRow, stderr io.Writer) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "suite", "-one", "-scenario", row.scenario, "-cc", string(row.law),
		"-seed", fmt.Sprint(c.seed), "-d", c.duration.String(), "-trace", c.trace.String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, stderr
	start := time.Now()
	err := cmd.Run()
	row.took = time.Since(start)
	switch {
	case ctx.Err() != nil:
		row.err = fmt.Errorf("stopped after %v: %w", row.took.Round(time.Second), ctx.Err())
	case err != nil:
		row.err = fmt.Errorf("%w: %s", err, out.Bytes())
	default:
		if err := json.Unmarshal(out.Bytes(), &row.result); err != nil {
			row.err = fmt.Errorf("reading the result: %w", err)
		}
	}
}

const suiteColumns = "%-14s %-8s %6s %8s %8s %8s %7s %6s %6s %6s %6s %8s  %s\n"

func printSuiteHead(w io.Writer) {
	fmt.Fprintf(w, suiteColumns, "", "", "utili-", "mean", "p95", "start-up", "loss", "", "conv.", "90 %", "", "", "")
	fmt.Fprintf(w, suiteColumns, "scenario", "cc", "zation", "queue ms", "queue ms", "peak ms", "%", "jain", "s", "s", "share", "survived", "bars of improved")
}

func printSuiteRow(w io.Writer, row *suiteRow) {
	r := &row.result
	var missed []string
	for _, v := range r.Bars {
		if !v.Pass {
			missed = append(missed, v.String())
		}
	}
	bars := "-"
	if n := len(r.Bars); n > 0 {
		bars = fmt.Sprintf("%d of %d", n-len(missed), n)
	}
	survived := "yes"
	if !r.Survived {
		survived = "NO"
	}
	fmt.Fprintf(w, suiteColumns, r.Scenario, r.CC, r.Utilization.Format(3), r.MeanQueueMs.Format(2), r.P95QueueMs.Format(2),
		r.PeakStartupQueueMs.Format(1), r.LossPct.Format(3), r.Jain.Format(3), r.ConvergenceS.Format(1),
		r.TimeTo90S.Format(2), r.Share.Format(2), survived, bars)
	for _, e := range r.Errors {
		fmt.Fprintf(w, "    error: %s\n", e)
	}
	if row.law == cc.LawImproved { // the others are here to compare with
		for _, m := range missed {
			fmt.Fprintf(w, "    %s\n", m)
		}
	}
}

func listScenarios(w io.Writer, scenarios []lab.Scenario) {
	for _, s := range scenarios {
		fmt.Fprintf(w, "%-14s %s; %v\n", s.Name, s.About, s.Duration)
		for _, b := range s.Bars {
			fmt.Fprintf(w, "    %s %s %g\n", b.Metric, b.Op, b.Limit)
		}
	}
}
