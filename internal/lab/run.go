package lab

import (
	"testing"
	"testing/synctest"
)

// Run runs a scenario in virtual time, once for each of its seeds. t must not
// be parallel.
func Run(t *testing.T, s Scenario, o Options) Result {
	t.Helper()
	var runs []Result
	for i := range max(s.Seeds, 1) {
		once := o
		once.Seed += uint64(i)
		restore := deterministic(t, once.Seed)
		synctest.Test(t, func(t *testing.T) {
			r, err := Measure(t.Context(), s, once)
			if err != nil {
				t.Fatal(err)
			}
			runs = append(runs, r)
		})
		restore()
	}
	res := runs[0]
	if len(runs) > 1 {
		res = Mean(runs)
		if o.Duration == 0 {
			res.Judge(s.bars())
		}
	}
	return res
}
