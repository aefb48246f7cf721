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

// TestScenario runs what -scenario names and prints a line for each run.
func TestScenario(t *testing.T) {
	if *scenarioFlag == "" {
		return
	}
	for _, s := range Scenarios() {
		if *scenarioFlag != "all" && !strings.Contains(","+*scenarioFlag+",", ","+s.Name+",") {
			continue
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
