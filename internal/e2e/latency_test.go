package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// BenchmarkSmallGet asks for 64 bytes, again and again, from the archive directly
// and through fastpacs by every protocol, in turns: what the proxy adds.
func BenchmarkSmallGet(b *testing.B) {
	const requests = 3000 // of each
	upstream := startChild(b, roleUpstream)
	f := startFastpacs(b, "http://"+upstream.addr)
	ways := []struct {
		name   string
		url    string
		client *http.Client
	}{
		{"direct", "http://" + upstream.addr + "/small", plainClient(b)},
		{"h1", f.url("/small"), f.client(b, "h1")},
		{"h2", f.url("/small"), f.client(b, "h2")},
		{"h3", f.url("/small"), f.client(b, "h3")},
	}
	ctx := within(b, 5*time.Minute)
	times := make(map[string][]float64) // ms
	for b.Loop() {
		for i := range requests + 100 {
			for _, w := range ways {
				took, err := timeGet(ctx, w.client, w.url)
				if err != nil {
					b.Fatalf("%s: %v", w.name, err)
				}
				if i >= 100 { // the first are for warming up
					times[w.name] = append(times[w.name], took)
				}
			}
		}
	}
	r := newReport(b)
	direct := median(times["direct"])
	r.value("direct", "ms", direct)
	for _, w := range ways[1:] {
		r.value(w.name, "ms", median(times[w.name]))
		r.atMost(w.name+"-adds", "ms", median(times[w.name])-direct, 0.5)
	}
	for _, w := range ways {
		slices.Sort(times[w.name])
		b.Logf("%-6s median %.3f ms, 95 %% within %.3f ms", w.name, median(times[w.name]), times[w.name][len(times[w.name])*95/100])
	}
}

// timeGet returns how long an answer took to its last byte, in ms.
func timeGet(ctx context.Context, c *http.Client, url string) (float64, error) {
	start := time.Now()
	got, err := get(ctx, c, url)
	took := time.Since(start)
	if err == nil && (got.status != http.StatusOK || len(got.body) != 64) {
		err = fmt.Errorf("status %d, %d bytes", got.status, len(got.body))
	}
	return float64(took) / 1e6, err
}
