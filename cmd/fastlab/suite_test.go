package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fastpacs/internal/lab"
)

// buildFastlab builds this command.
func buildFastlab(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "fastlab")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("building fastlab: %v\n%s", err, out)
	}
	return bin
}

func TestSuiteRunsInChildrenAndRepeats(t *testing.T) {
	bin := buildFastlab(t)
	suite := func() (rows []lab.Result) {
		var stderr bytes.Buffer
		cmd := exec.CommandContext(t.Context(), bin, "suite", "-scenario", "loss1,short", "-cc", "reno,static", "-d", "3s", "-seed", "5", "-json")
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, stderr.Bytes())
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); ; {
			var r lab.Result
			if err := dec.Decode(&r); err == io.EOF {
				return rows
			} else if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
	}
	first, again := suite(), suite()
	var names []string
	for i, r := range first {
		if r.Seed != 5 || !r.Survived || !(r.Utilization > 0) {
			t.Errorf("row %+v", r)
		}
		// what the runtime draws at random (see package lab) moves little
		if i >= len(again) || math.Abs(float64(r.Utilization-again[i].Utilization)) > 0.1 {
			t.Errorf("one seed, two results:\n%v\n%v", &r, &again[i])
		}
		names = append(names, r.Scenario+" "+r.CC)
	}
	if got, want := strings.Join(names, ","), "loss1 reno,loss1 static,short reno,short static"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

func TestSuiteTable(t *testing.T) {
	bin := buildFastlab(t)
	out, err := exec.CommandContext(t.Context(), bin, "suite", "-scenario", "short", "-cc", "reno").Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"utili-", "short", "reno", "yes", " of 5"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

func TestSuiteStopsAtItsLimit(t *testing.T) {
	bin := buildFastlab(t)
	out, err := exec.CommandContext(t.Context(), bin, "suite", "-scenario", "gaps", "-cc", "reno", "-timeout", "1ms").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "stopped after") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestSuiteRefuses(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"-scenario nowhere", `unknown scenario "nowhere"`},
		{"-cc cubic", `unknown law "cubic"`},
		{"-parallel 0", "-parallel"},
		{"-d -1s", "-d"},
		{"-one -cc reno", "-one"},
		{"extra", `"extra"`},
	} {
		var stdout, stderr strings.Builder
		status := runSuite(t.Context(), strings.Fields(c.args), &stdout, &stderr)
		if status != exitUsage || !strings.Contains(stderr.String(), c.want) || stdout.Len() > 0 {
			t.Errorf("%s: status %d, %q, want %q", c.args, status, stderr.String(), c.want)
		}
	}
}

func TestSuiteListsScenarios(t *testing.T) {
	var stdout, stderr strings.Builder
	if status := runSuite(t.Context(), []string{"-list"}, &stdout, &stderr); status != exitOK {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	for _, s := range lab.Scenarios() {
		if !strings.Contains(stdout.String(), s.Name) || s.About == "" {
			t.Errorf("%s is not listed, or has nothing to say", s.Name)
		}
	}
}
