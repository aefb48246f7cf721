package lab

import (
	"flag"
	"os"
	"testing"
)

// Main lets a command that is not a test run scenarios: it calls f with a
// testing.T, as synctest wants one, then ends the process with the status f
// returns. A T can be had only by running as a test does, and that prints to
// the standard output when f fails t and takes the process' flags; so a command
// does this in a child of its own that has nothing else to do.
func Main(f func(t *testing.T) (status int)) {
	testing.Init()
	// testing.Main parses flag.CommandLine if nobody has; the arguments are not
	// for it.
	if err := flag.CommandLine.Parse(nil); err != nil {
		panic(err) // parsing nothing cannot fail
	}
	always := func(_, _ string) (bool, error) { return true, nil }
	testing.Main(always, []testing.InternalTest{{
		Name: "scenario",
		F:    func(t *testing.T) { os.Exit(f(t)) },
	}}, nil, nil)
}
