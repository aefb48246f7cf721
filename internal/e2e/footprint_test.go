package e2e

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// BenchmarkMemory sends a body of 2 GiB each way by HTTP/2 and HTTP/3, and looks
// how much memory fastpacs had at most, above what it has when idle.
func BenchmarkMemory(b *testing.B) {
	const size = 2 << 30
	upstream := startChild(b, roleUpstream)
	for b.Loop() {
		r := newReport(b)
		for _, protocol := range []string{"h2", "h3"} {
			for _, way := range []struct {
				name string
				send func(c *http.Client, base string) (float64, error)
			}{
				{"download", func(c *http.Client, base string) (float64, error) {
					return download(b, c, fmt.Sprintf("%s/bytes/%d", base, size), size)
				}},
				{"upload", func(c *http.Client, base string) (float64, error) {
					return upload(b, c, base+"/sink", size)
				}},
			} {
				// A process for each, or the peak of one hides the other's.
				f := startFastpacs(b, "http://"+upstream.addr)
				c := f.client(b, protocol)
				if _, err := get(within(b, time.Minute), c, f.url("/small")); err != nil {
					b.Fatal(err)
				}
				f.resetPeak(b)
				idle := f.memory(b).rss
				rate, err := way.send(c, f.url(""))
				if err != nil {
					b.Fatalf("%s %s: %v", protocol, way.name, err)
				}
				above := float64(f.memory(b).peak-idle) / (1 << 20)
				b.Logf("%s %s: %.0f MB/s", protocol, way.name, rate)
				r.atMost(protocol+"-"+way.name, "MiB", above, 64)
				c.CloseIdleConnections()
				f.stop(b)
			}
		}
	}
}

// upload returns the rate of one upload, as download does. Its length is not
// told, as that of a STOW-RS request often is not.
func upload(tb testing.TB, c *http.Client, url string, size int64) (float64, error) {
	body := io.LimitReader(&pattern{make([]byte, 1<<20)}, size)
	start := time.Now()
	got, err := fetch(within(tb, 5*time.Minute), c, http.MethodPost, url,
		http.Header{"Content-Type": {`multipart/related; type="application/dicom"; boundary=x`}}, io.NopCloser(body))
	if err != nil {
		return 0, err
	}
	if got.status != http.StatusOK || string(got.body) != fmt.Sprint(size) {
		return 0, fmt.Errorf("status %d, and the archive got %s bytes of %d", got.status, got.body, size)
	}
	return float64(size) / 1e6 / time.Since(start).Seconds(), nil
}

// pattern yields its bytes without end.
type pattern struct{ bytes []byte }

func (p *pattern) Read(b []byte) (int, error) { return copy(b, p.bytes), nil }

// BenchmarkDroppedConnections opens 10,000 TCP connections and some thousands by
// QUIC, drops them in every way there is, and looks what fastpacs keeps of them.
func BenchmarkDroppedConnections(b *testing.B) {
	upstream := startChild(b, roleUpstream)
	f := startFastpacs(b, "http://"+upstream.addr, "FASTPACS_QUIC_IDLE_TIMEOUT=2s")
	ctx := within(b, 5*time.Minute)
	if err := (flood{tcp: 500, quic: 100}).run(ctx, f); err != nil {
		b.Fatal(err)
	}
	before := f.settle(b, 40)
	var took time.Duration
	for b.Loop() {
		start := time.Now()
		if err := (flood{tcp: 10_000, quic: 3000}).run(ctx, f); err != nil {
			b.Fatal(err)
		}
		took = time.Since(start)
	}
	after := f.settle(b, before.goroutines)
	b.Logf("before %v, after %v, in %v", before, after, took.Round(time.Millisecond))
	r := newReport(b)
	r.value("took", "s", took.Seconds())
	r.atMost("kept", "MiB", float64(after.rss-before.rss)/(1<<20), 16)
	r.atMost("kept", "goroutines", after.goroutines-before.goroutines, 5)
}
