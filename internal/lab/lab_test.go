package lab

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"fastpacs/cc"
)

var (
	scenarioFlag = flag.String("scenario", "", "scenarios to run, comma separated, or all")
	ccFlag       = flag.String("cc", "improved", "laws to run, comma separated")
	seedFlag     = flag.Uint64("seed", 1, "first seed")
	durationFlag = flag.Duration("d", 0, "cut scenarios short")
	traceFlag    = flag.Duration("trace", 0, "print a line of trace this often")
)

// TestScenario runs what -scenario names and prints a line for each run; without
// the flag, there is nothing to do.
func TestScenario(t *testing.T) {
	if *scenarioFlag == "" {
		return
	}
	names := strings.Split(*scenarioFlag, ",")
	if *scenarioFlag == "all" {
		names = nil
		for _, s := range Scenarios() {
			names = append(names, s.Name)
		}
	}
	for _, name := range names {
		s, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for law := range strings.SplitSeq(*ccFlag, ",") {
			o := Options{Law: cc.Law(law), Seed: *seedFlag, Duration: *durationFlag}
			if *traceFlag > 0 {
				o.Trace, o.TraceEvery = os.Stderr, *traceFlag
			}
			wall := time.Now()
			r := Run(t, s, o)
			t.Logf("%v\n    wall %.1f s", &r, time.Since(wall).Seconds())
		}
	}
}

// enforced are the scenarios whose bars a plain go test holds the production law
// to: the cheap ones it is known to pass. fastlab suite runs them all.
var enforced = []string{"bloat", "short", "blackout"}

func TestProductionLawMeetsItsBars(t *testing.T) {
	for _, name := range enforced {
		t.Run(name, func(t *testing.T) {
			s, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			if r := Run(t, s, Options{Seed: 1}); !r.Pass() {
				t.Errorf("%v", &r)
			}
		})
	}
}

func TestAlphaGrowsWithJitter(t *testing.T) {
	jittery, err := Find("jitter")
	if err != nil {
		t.Fatal(err)
	}
	jittery.Duration = 10 * time.Second
	calm := jittery
	calm.Path.Jitter = 0
	alpha := func(s Scenario) Figure {
		r := Run(t, s, Options{Seed: 1})
		return r.Extra["alpha_packets"]
	}
	if without, with := alpha(calm), alpha(jittery); !(with > 1.2*without) {
		t.Errorf("alpha %v packets with jitter, %v without", with, without)
	}
}
