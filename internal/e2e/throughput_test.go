package e2e

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"
)

// BenchmarkThroughput downloads a body over HTTP/3 through fastpacs, through
// Caddy and from bare quic-go that has it in memory, by the same client in turns,
// on loopback: what each costs, for there is no link to wait for.
func BenchmarkThroughput(b *testing.B) {
	const (
		size   = 256 << 20
		rounds = 9
	)
	upstream := startChild(b, roleUpstream)
	ours := startFastpacs(b, "http://"+upstream.addr)
	rival := startCaddy(b, upstream.addr)
	bare := startChild(b, roleBare)

	servers := []struct {
		name   string
		url    string
		client *http.Client
	}{
		{"fastpacs", ours.url(""), newClient(b, "h3", ours.leaf)},
		{"caddy", "https://" + rival.host, newClient(b, "h3", rival.leaf)},
		{"bare", "https://" + bare.addr, newClient(b, "h3", bare.leaf)},
	}
	rates := make(map[string][]float64) // MB/s
	for b.Loop() {
		for round := range rounds + 1 {
			for i := range servers {
				s := servers[(i+round)%len(servers)] // no one is always first
				rate, err := download(b, s.client, fmt.Sprintf("%s/bytes/%d", s.url, size), size)
				if err != nil {
					b.Fatalf("%s: %v", s.name, err)
				}
				if round > 0 { // the first warms up
					rates[s.name] = append(rates[s.name], rate)
				}
			}
		}
	}
	r := newReport(b)
	for _, s := range servers {
		r.value(s.name, "MB/s", median(rates[s.name]))
		b.Logf("%s: %.0f MB/s", s.name, rates[s.name])
	}
	r.atLeast("x-caddy", median(ratios(rates["fastpacs"], rates["caddy"])), 1.2)
	r.atLeast("x-bare", median(ratios(rates["fastpacs"], rates["bare"])), 0.75)
}

// ratios are those of each round: what else the machine does changes from round
// to round more than within one.
func ratios(of, to []float64) []float64 {
	all := make([]float64, len(of))
	for i := range of {
		all[i] = of[i] / to[i]
	}
	return all
}

// download returns the rate of one download in 10^6 bytes a second, from the
// request to the last byte.
func download(tb testing.TB, c *http.Client, url string, size int64) (float64, error) {
	req, err := http.NewRequestWithContext(within(tb, 2*time.Minute), http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, resp.Body, make([]byte, 256<<10))
	if err != nil || n != size || resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s, %d bytes of %d: %w", resp.Status, n, size, err)
	}
	return float64(n) / 1e6 / time.Since(start).Seconds(), nil
}

// report tells figures and holds them against bars.
type report struct{ b *testing.B }

// newReport leaves out the time per operation, which means nothing here.
func newReport(b *testing.B) report {
	b.ReportMetric(0, "ns/op")
	return report{b}
}

// value reports a figure.
func (r report) value(name, unit string, v float64) { r.b.ReportMetric(v, name+"-"+unit) }

// atLeast reports a figure that must not be below bar.
func (r report) atLeast(name string, v, bar float64) {
	r.b.ReportMetric(v, name)
	if v < bar {
		r.b.Errorf("MISSED: %s is %.2f: must be at least %.2f", name, v, bar)
		return
	}
	r.b.Logf("met: %s is %.2f, at least %.2f", name, v, bar)
}

// atMost reports a figure that must not be above bar.
func (r report) atMost(name, unit string, v, bar float64) {
	r.value(name, unit, v)
	if v > bar {
		r.b.Errorf("MISSED: %s is %.2f %s: must be at most %.2f", name, v, unit, bar)
		return
	}
	r.b.Logf("met: %s is %.2f %s, at most %.2f", name, v, unit, bar)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
