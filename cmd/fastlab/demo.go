package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"fastpacs/cc"
	"fastpacs/internal/ctstudy"
	"fastpacs/internal/dicomweb"
	"fastpacs/internal/lab/udplink"
	"fastpacs/internal/orthanc"
	"fastpacs/proxy/quicnet"
)

// demoConfig is what fastlab demo was asked for.
type demoConfig struct {
	fastpacs string
	slices   int
	baseline int
	parallel int
	mbps     float64
	rtt      time.Duration
	loss     float64
	seed     uint64
	out      string
	json     bool
}

// limit ends a demo that hangs; a demo under the defaults takes about a minute. A
// slower link or a larger study has the time that it needs, twice.
func (c demoConfig) limit() time.Duration {
	needed := float64(c.slices) * 2 * sliceSize * sliceSize * 8 / (c.mbps * 1e6)
	return 140*time.Second + time.Duration(2*needed)*time.Second
}

// sliceSize is the number of rows and of columns of a slice.
const sliceSize = 512

// maxAttempts bounds how often a disturbed measurement is repeated.
const maxAttempts = 3

func parseDemo(args []string, stdout, stderr io.Writer) (demoConfig, error) {
	var c demoConfig
	fs := flag.NewFlagSet("fastlab demo", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fs.SetOutput(stdout)
		fmt.Fprint(stdout, `Usage: fastlab demo [flags]

Starts an Orthanc and two fastpacs in front of it, one sending with the improved
FAST controller and one with Reno, and stores a synthetic CT study by STOW-RS.
Then it fetches the study as a viewer does, by QIDO-RS and WADO-RS over HTTP/3,
through an emulated link: all of it from the first, a part from the second, which
is slow. Every byte is compared with the original.

Prints a table and writes demo.json. Status 1 if a bar is missed: improved FAST
fills 0.85 of the link, is 5 times as fast as Reno, keeps the mean queue at 20 ms
or less, and every instance comes back identical.

`)
		fs.PrintDefaults()
	}
	fs.StringVar(&c.fastpacs, "fastpacs", "", "the fastpacs `program`; else it is built from source, or found beside this one")
	fs.IntVar(&c.slices, "slices", 300, "`number` of slices of the study, 0.5 MB each")
	fs.IntVar(&c.baseline, "baseline-slices", 20, "`number` of them that Reno has to send")
	fs.IntVar(&c.parallel, "parallel", 8, "`number` of instances asked for at a time, as viewers do; 0 asks for the whole study in one response, which fills the link just as well")
	fs.Float64Var(&c.mbps, "mbps", 100, "`rate` of the link, Mb/s")
	fs.DurationVar(&c.rtt, "rtt", 80*time.Millisecond, "round-trip `time` of the link without queues")
	fs.Float64Var(&c.loss, "loss", 0.5, "random loss toward the client, `percent`")
	fs.Uint64Var(&c.seed, "seed", 1, "`seed` of the study and of the losses")
	fs.StringVar(&c.out, "out", "out", "`directory` for demo.json")
	fs.BoolVar(&c.json, "json", false, "print the report as JSON in place of the table")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	switch {
	case c.slices < 1 || c.slices > 10000:
		return c, fmt.Errorf("-slices %d: must be 1 to 10000", c.slices)
	case c.baseline < 1 || c.baseline > c.slices:
		return c, fmt.Errorf("-baseline-slices %d: must be 1 to -slices (%d)", c.baseline, c.slices)
	case c.parallel < 0 || c.parallel > 100:
		return c, fmt.Errorf("-parallel %d: must be 0 to 100", c.parallel)
	case !(c.mbps >= 1 && c.mbps <= 1000):
		return c, fmt.Errorf("-mbps %g: must be 1 to 1000", c.mbps)
	case c.rtt < time.Millisecond || c.rtt > 2*time.Second:
		return c, fmt.Errorf("-rtt %v: must be 1ms to 2s", c.rtt)
	case !(c.loss >= 0 && c.loss <= 20):
		return c, fmt.Errorf("-loss %g: must be 0 to 20", c.loss)
	}
	return c, nil
}

// runDemo is the subcommand; it returns the exit status.
func runDemo(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseDemo(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "fastlab demo:", err)
		return exitUsage
	}
	// The emulated link keeps time better with a processor to spare and without
	// the pauses of garbage collection, which grow with the load of the machine.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	p := newProgress(stderr)
	report, err := c.run(ctx, p)
	p.done()
	if err == nil {
		err = report.write(filepath.Join(c.out, "demo.json"))
	}
	if err != nil {
		fmt.Fprintln(stderr, "fastlab demo:", err)
		return exitFailed
	}
	if c.json {
		err = report.printJSON(stdout)
	} else {
		report.printTable(stdout)
	}
	if err != nil || !report.Passed {
		return exitFailed
	}
	return exitOK
}

// run sets up, measures both laws and tears down.
func (c demoConfig) run(ctx context.Context, p *progress) (_ *demoReport, err error) {
	study, err := ctstudy.New(ctstudy.Config{Slices: c.slices, Size: sliceSize, Seed: c.seed})
	if err != nil {
		return nil, err
	}
	archive, binary, err := prepare(ctx, c.fastpacs, p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, archive.Stop(context.WithoutCancel(ctx))) }()
	ctx, cancel := context.WithTimeoutCause(ctx, c.limit(), fmt.Errorf("not done after %v", c.limit()))
	defer cancel()

	state, err := os.MkdirTemp("", "fastpacs-demo-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	proxies := map[cc.Law]*proxyServer{}
	for _, law := range []cc.Law{cc.LawImproved, cc.LawReno} {
		p.say("starting fastpacs with %s", law)
		proxies[law], err = startProxy(ctx, proxyConfig{
			binary: binary, upstream: archive.URL(), stateDir: filepath.Join(state, string(law)),
			env: []string{
				"FASTPACS_CC=" + string(law), "FASTPACS_LISTEN=127.0.0.1:0",
				"FASTPACS_ADMIN=off", "FASTPACS_DRAIN_TIMEOUT=1s",
			},
		})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, proxies[law].Stop()) }()
	}

	sums, err := c.store(ctx, proxies[cc.LawImproved], study, p)
	if err != nil {
		return nil, err
	}
	report := newDemoReport(c)
	for _, law := range []cc.Law{cc.LawReno, cc.LawImproved} {
		row, err := c.measure(ctx, proxies[law], law, study.StudyInstanceUID(), sums, p)
		if err != nil {
			return nil, fmt.Errorf("with %s: %w", law, err)
		}
		report.Rows = append(report.Rows, row)
	}
	report.judge()
	return report, nil
}

// measure fetches, and fetches again while the emulator says that the machine
// disturbed it, whatever the result was. Reno is left at the first, which takes
// long and is limited by losses, not by the machine.
func (c demoConfig) measure(ctx context.Context, proxy *proxyServer, law cc.Law, studyUID string, sums originals, p *progress) (demoRow, error) {
	for attempt := 1; ; attempt++ {
		row, err := c.fetch(ctx, proxy, law, studyUID, sums, p)
		row.Attempt = attempt
		deadline, _ := ctx.Deadline()
		takes := time.Duration((row.FindSeconds + row.Seconds) * float64(time.Second))
		if err != nil || !row.disturbed() || law == cc.LawReno || attempt == maxAttempts || time.Until(deadline) < 2*takes {
			return row, err
		}
		p.say("%s: the machine was busy, packets came up to %.0f ms late: measuring again", law, row.LateMaxMs)
	}
}

// store sends the study through the proxy, over HTTP/3 and without the emulated
// link.
func (c demoConfig) store(ctx context.Context, proxy *proxyServer, study *ctstudy.Study, p *progress) (originals, error) {
	transport, err := quicnet.NewHTTPTransport(proxy.TLS(), quicnet.DefaultConfig())
	if err != nil {
		return nil, err
	}
	defer transport.Close()
	client, err := dicomweb.New(proxy.URL+orthanc.DICOMwebPath, &http.Client{Transport: transport})
	if err != nil {
		return nil, err
	}
	p.say("storing a synthetic CT study of %d slices by STOW-RS through the proxy", study.Len())
	began := time.Now()
	sums := make(originals, study.Len())
	var bytes int64
	err = store(ctx, client, study, func(inst ctstudy.Instance) {
		sums[inst.SOPInstanceUID] = sha256.Sum256(inst.File)
		bytes += int64(len(inst.File))
		p.update("stored %d of %d slices", inst.Number, study.Len())
	})
	if err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	p.say("stored %.0f MB in %.1f s (%.0f MB/s)", float64(bytes)/1e6, took, float64(bytes)/1e6/took)
	return sums, nil
}

// link is the emulated link: its buffer takes one bandwidth-delay product, and
// it loses packets toward the client only.
func (c demoConfig) link() udplink.Config {
	way := udplink.Direction{
		Rate:   c.mbps * 1e6,
		Delay:  c.rtt / 2,
		Buffer: max(int(c.mbps*1e6/8*c.rtt.Seconds()), 64<<10),
		Seed:   c.seed,
	}
	down := way
	down.Loss = c.loss / 100
	return udplink.Config{Up: way, Down: down}
}

// fetch measures one law: find the study, fetch it, compare.
func (c demoConfig) fetch(ctx context.Context, proxy *proxyServer, law cc.Law, studyUID string, sums originals, p *progress) (demoRow, error) {
	server, err := net.ResolveUDPAddr("udp", proxy.Host())
	if err != nil {
		return demoRow{}, err
	}
	link, err := udplink.Start(ctx, server, c.link())
	if err != nil {
		return demoRow{}, err
	}
	defer link.Close()
	transport, err := quicnet.NewHTTPTransport(proxy.TLS(), quicnet.DefaultConfig())
	if err != nil {
		return demoRow{}, err
	}
	defer transport.Close()
	transport.DialAddr = func(context.Context, string) (net.Addr, error) { return link.Addr(), nil }
	client, err := dicomweb.New(proxy.URL+orthanc.DICOMwebPath, &http.Client{Transport: transport})
	if err != nil {
		return demoRow{}, err
	}

	p.say("%s: looking the study up by QIDO-RS over HTTP/3 through the link", law)
	began := time.Now()
	refs, err := find(ctx, client, studyUID)
	if err != nil {
		return demoRow{}, err
	}
	if len(refs) != c.slices {
		return demoRow{}, fmt.Errorf("QIDO-RS found %d of %d instances", len(refs), c.slices)
	}
	found := time.Since(began)
	if law != cc.LawImproved {
		refs = refs[:c.baseline]
	}
	whole := c.parallel == 0 && len(refs) == c.slices
	p.say("%s: fetching %d instances by WADO-RS, %s", law, len(refs), c.retrieval(whole))

	want := make(originals, len(refs))
	for _, r := range refs {
		want[r.Instance] = sums[r.Instance]
	}
	var got fetched
	ticking := c.showFetch(ctx, p, law, &got, len(refs))
	before := link.Snapshot().Down
	began = time.Now()
	if whole {
		err = fetchStudy(ctx, client, studyUID, newUnseen(want), &got)
	} else {
		err = fetchInstances(ctx, client, refs, max(c.parallel, 1), newUnseen(want), &got)
	}
	took := time.Since(began)
	down := link.Snapshot().Down.Since(before)
	ticking()
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w (%w)", err, cause)
		}
		return demoRow{}, fmt.Errorf("after %d instances: %w", got.instances.Load(), err)
	}
	row := demoRow{
		CC:             string(law),
		Retrieval:      c.retrieval(whole),
		LinkMbps:       c.mbps,
		GoodputMbps:    float64(got.bytes.Load()) * 8 / 1e6 / took.Seconds(),
		Utilization:    down.Utilization,
		FindSeconds:    found.Seconds(),
		Seconds:        took.Seconds(),
		Instances:      int(got.instances.Load()),
		Bytes:          got.bytes.Load(),
		MeanQueueMs:    milliseconds(down.Queueing.Mean),
		P95QueueMs:     milliseconds(down.Queueing.P95),
		MaxQueueMs:     milliseconds(down.Queueing.Max),
		LossPct:        100 * down.LossShare(),
		BufferDrops:    down.TailDrops,
		Verified:       int(got.instances.Load()) == len(refs),
		LateP99Ms:      milliseconds(down.Late.P99),
		LateMaxMs:      milliseconds(down.Late.Max),
		EmulatorLosses: down.SocketDrops + down.Refused + down.WriteErrors,
	}
	p.say("%s: %.1f MB in %.1f s: %.1f Mb/s", law, float64(row.Bytes)/1e6, row.Seconds, row.GoodputMbps)
	return row, nil
}

// retrieval says how instances are asked for.
func (c demoConfig) retrieval(whole bool) string {
	if whole {
		return "the whole study in one response"
	}
	return fmt.Sprintf("%d instances at a time", max(c.parallel, 1))
}

// showFetch keeps the progress up to date until the returned function is called.
func (c demoConfig) showFetch(ctx context.Context, p *progress, law cc.Law, got *fetched, of int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(terminalEvery)
		defer tick.Stop()
		began, last, lastAt := time.Now(), int64(0), time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				n := got.bytes.Load()
				rate := float64(n-last) * 8 / 1e6 / now.Sub(lastAt).Seconds()
				p.update("%s: %d of %d instances, %.1f MB in %.0f s, now %.1f Mb/s", law, got.instances.Load(), of, float64(n)/1e6, time.Since(began).Seconds(), rate)
				if now.Sub(lastAt) > time.Second {
					last, lastAt = n, now
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
