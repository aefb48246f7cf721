package main

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPaperRows(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	if status := runPaper(t.Context(), []string{"-exp", "1", "-runs", "1", "-json", "-out", dir}, &stdout, &stderr); status != exitOK {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	laws := map[string]map[string]any{}
	for dec := json.NewDecoder(&stdout); dec.More(); {
		row := map[string]any{}
		if err := dec.Decode(&row); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{
			"exp", "law", "capacity_mbps", "flows", "alpha", "convergence_s", "overshoot_pct", "queue_ms",
			"equilibrium_queue_ms", "article_convergence_s", "article_overshoot_pct",
		} {
			if _, ok := row[field]; !ok {
				t.Errorf("%v has no %s", row, field)
			}
		}
		laws[row["law"].(string)] = row
	}
	if len(laws) != 4 {
		t.Fatalf("rows of %d laws, want alg1, alg2, alg3 and improved", len(laws))
	}
	if got := laws["alg1"]; got["article_convergence_s"] != 2.0 || got["article_overshoot_pct"] != 25.0 || got["equilibrium_queue_ms"] != 50.0 || got["alpha"] != 200.0 || got["capacity_mbps"] != 96.0 {
		t.Errorf("Experiment 1: %v", got)
	}
	for _, law := range []string{"alg2", "alg3", "improved"} {
		if laws[law]["article_convergence_s"] != nil {
			t.Errorf("the article says nothing of %s in Experiment 1: %v", law, laws[law])
		}
	}
	if ours, theirs := laws["improved"]["convergence_s"].(float64), laws["alg3"]["convergence_s"].(float64); ours > theirs {
		t.Errorf("improved converges in %v s, Algorithm 3 in %v s", ours, theirs)
	}

	saved, err := os.ReadFile(filepath.Join(dir, "paper.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report paperReport
	if err := json.Unmarshal(saved, &report); err != nil || len(report.Rows) != 4 {
		t.Errorf("paper.json: %d rows, %v", len(report.Rows), err)
	}
	for _, name := range []string{"figure2-exp1-alg1", "exp1-improved"} {
		svg, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		if err != nil || !bytes.Contains(svg, []byte("equal share")) {
			t.Errorf("%s.svg: %d bytes, %v", name, len(svg), err)
		}
		f, err := os.Open(filepath.Join(dir, name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(f)
		if err != nil || picture.Bounds().Dx() < 400 {
			t.Errorf("%s.png: %v", name, err)
		}
		_ = f.Close()
	}
}

func TestPaperCells(t *testing.T) {
	c, err := parsePaper([]string{"-exp", "all"}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	count := map[int]int{}
	for _, cell := range paperCells(c.experiments) {
		count[cell.experiment.Number]++
	}
	// Experiment 4: 15 groups, and the production law on each of three links.
	for number, want := range map[int]int{1: 4, 2: 4, 3: 4, 4: 18, 5: 4, 6: 4, 7: 3} {
		if count[number] != want {
			t.Errorf("Experiment %d: %d cells, want %d", number, count[number], want)
		}
	}
}

func TestPaperRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"-exp", "8"}, {"-exp", "0,1"}, {"-exp", "one"}, {"-exp", ""}, {"-runs", "0"}, {"-parallel", "0"}, {"more"}, {"-unknown"},
	} {
		var stdout, stderr bytes.Buffer
		if status := runPaper(t.Context(), args, &stdout, &stderr); status != exitUsage || stderr.Len() == 0 {
			t.Errorf("%q: status %d, %q", strings.Join(args, " "), status, stderr.String())
		}
	}
}
