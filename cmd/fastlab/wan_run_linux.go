package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"fastpacs/internal/ctstudy"
	"fastpacs/internal/lab/wan"
)

// wanPossible says what is missing to run here.
func wanPossible() error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, to make network namespaces: run it with sudo, or in a container with --cap-add NET_ADMIN,SYS_ADMIN and /dev/net/tun")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Errorf("needs TUN devices: %w; run: modprobe tun", err)
	}
	return nil
}

// wanBench is a running comparison.
type wanBench struct {
	wanConfig
	net     *wan.Network
	servers *wanServers
	study   *ctstudy.Study
	sums    map[string]string // hexadecimal SHA-256 by SOP Instance UID
	bytes   int64             // of all instances
	p       *progress
}

// run sets up, measures every cell and tears down. After an error the report
// holds the cells that were complete.
func (c wanConfig) run(ctx context.Context, p *progress) (report *wanReport, err error) {
	b := &wanBench{wanConfig: c, p: p}
	dir, err := os.MkdirTemp("", "fastlab-wan-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	report = newWANReport(c)
	began := time.Now()
	tools, err := b.findPeers(ctx, report)
	if err != nil {
		return nil, err
	}
	if err := b.makeStudy(ctx, filepath.Join(dir, "htdocs")); err != nil {
		return nil, err
	}
	report.Bytes = b.bytes
	if b.net, err = wan.New(c.cells[0].link(0)); err != nil {
		return nil, err
	}
	defer b.net.Close()
	b.servers = &wanServers{ns: b.net.Server, dir: dir, htdocs: filepath.Join(dir, "htdocs"), ngtcp2: tools.ngtcp2}
	defer func() { err = errors.Join(err, b.servers.stop()) }()
	if err := b.startServers(ctx, tools); err != nil {
		return nil, err
	}
	for i, cell := range c.cells {
		rows, err := b.measureCell(ctx, i, cell)
		if err != nil {
			return report, fmt.Errorf("%s: %w", cell, err)
		}
		report.Rows = append(report.Rows, rows...)
		report.Machine.Minutes = round(time.Since(began).Minutes())
		report.Machine.LoadEnd = loadAverage()
	}
	report.complete = true
	return report, nil
}

// wanTools are the programs of the peers; empty if not needed.
type wanTools struct {
	fastpacs, caddy string
	ngtcp2          struct{ server, client string }
}

// findPeers leaves out what is not installed, and says so.
func (b *wanBench) findPeers(ctx context.Context, report *wanReport) (t wanTools, err error) {
	needs := func(kind wanKind) bool {
		return slices.ContainsFunc(b.peers, func(p wanPeer) bool { return p.Kind == kind })
	}
	leaveOut := func(kind wanKind, why string) {
		b.peers = slices.DeleteFunc(slices.Clone(b.peers), func(p wanPeer) bool { return p.Kind == kind })
		report.Notes = append(report.Notes, why)
		b.p.say("%s", why)
	}
	if needs(kindFastpacs) {
		if t.fastpacs, err = fastpacsBinary(ctx, b.fastpacs, func(line string) { b.p.say("%s", line) }); err != nil {
			return t, err
		}
		report.Machine.Peers["fastpacs"] = firstLine(ctx, t.fastpacs, "version")
	}
	if needs(kindTCP) {
		report.Machine.Peers["tcp"] = "the kernel's, behind a front of Go's net/http"
	}
	if needs(kindCaddy) {
		if t.caddy, err = findCaddy(b.caddy); err != nil {
			leaveOut(kindCaddy, fmt.Sprintf("left out: caddy-h3: %v; run: scripts/setup.sh caddy", err))
		} else {
			report.Machine.Peers["caddy"] = caddyVersion(t.caddy)
		}
	}
	if needs(kindNgtcp2) {
		server, err := exec.LookPath("gtlsserver")
		if err != nil {
			server, err = exec.LookPath("/usr/sbin/gtlsserver")
		}
		client, err2 := exec.LookPath("gtlsclient")
		if err := errors.Join(err, err2); err != nil {
			leaveOut(kindNgtcp2, fmt.Sprintf("left out: ngtcp2: %v; run: apt-get install ngtcp2-server ngtcp2-client", err))
		} else {
			t.ngtcp2.server, t.ngtcp2.client = server, client
			report.Machine.Peers["ngtcp2"] = ngtcp2Version(ctx)
		}
	}
	if len(b.peers) == 0 {
		return t, errors.New("no peer is left to measure")
	}
	return t, nil
}

// findCaddy looks where `make bench` builds it, too.
func findCaddy(asked string) (string, error) {
	if asked != "" {
		return exec.LookPath(asked)
	}
	file, err := exec.LookPath("caddy")
	if err == nil {
		return file, nil
	}
	places := []string{"bin/caddy"}
	if root, ok := sourceTree(); ok {
		places = append(places, filepath.Join(root, "bin", "caddy"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, filepath.Join(home, "go", "bin", "caddy"))
	}
	for _, place := range places {
		if _, err := exec.LookPath(place); err == nil {
			return filepath.Abs(place)
		}
	}
	return "", err
}

// makeStudy writes the slices, each a file at the path of its resource.
func (b *wanBench) makeStudy(ctx context.Context, dir string) (err error) {
	b.p.say("making a CT study of %d slices", b.slices)
	if b.study, err = ctstudy.New(ctstudy.Config{Slices: b.slices, Size: sliceSize, Seed: b.seed}); err != nil {
		return err
	}
	below := filepath.Join(dir, b.instances())
	if err := os.MkdirAll(below, 0o755); err != nil {
		return err
	}
	b.sums = map[string]string{}
	for inst, err := range b.study.All(ctx) {
		if err != nil {
			return err
		}
		sum := sha256.Sum256(inst.File)
		b.sums[inst.SOPInstanceUID] = hex.EncodeToString(sum[:])
		b.bytes += int64(len(inst.File))
		if err := os.WriteFile(filepath.Join(below, inst.SOPInstanceUID), inst.File, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// instances is the path of the study's instances.
func (b *wanBench) instances() string {
	return "/studies/" + b.study.StudyInstanceUID() + "/series/" + b.study.SeriesInstanceUID() + "/instances"
}

func (b *wanBench) startServers(ctx context.Context, tools wanTools) error {
	b.p.say("starting the servers")
	if err := b.servers.writeCertificate(); err != nil {
		return err
	}
	var fronts []string
	for _, p := range b.peers {
		if p.Kind == kindTCP && !slices.Contains(fronts, p.CC) {
			fronts = append(fronts, p.CC)
		}
	}
	if err := b.servers.startOrigin(ctx, fronts); err != nil {
		return err
	}
	for _, p := range b.peers {
		var err error
		switch p.Kind {
		case kindFastpacs:
			err = b.servers.startFastpacs(ctx, tools.fastpacs, p.CC)
		case kindCaddy:
			err = b.servers.startCaddy(ctx, tools.caddy)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// link is the emulated link of a run: losses are toward the client only, and the
// same for every peer.
func (c wanCell) link(seed uint64) wan.Link {
	d := wan.Direction{Rate: c.Mbps * 1e6, Delay: c.rtt() / 2, Buffer: c.bufferBytes(), Seed: seed}
	l := wan.Link{Up: d, Down: d}
	l.Down.Loss = c.LossPct / 100
	return l
}

// measureCell makes the runs of a cell, a round of all peers after the other, so
// that a change of the machine's load meets all of them.
func (b *wanBench) measureCell(ctx context.Context, number int, cell wanCell) ([]*wanRow, error) {
	var rows []*wanRow
	for _, p := range b.peers {
		rows = append(rows, &wanRow{wanCell: cell, Peer: p.Name, Protocol: p.Protocol, CC: p.CC})
	}
	for run := range b.runs {
		b.p.say("cell %d of %d, run %d of %d: %s", number+1, len(b.cells), run+1, b.runs, cell)
		for i, peer := range b.peers {
			r, err := b.measure(ctx, cell, peer, b.seed*1000+uint64(run))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", peer.Name, err)
			}
			rows[i].Runs = append(rows[i].Runs, r)
		}
	}
	for _, row := range rows {
		row.summarizeRuns()
	}
	return rows, nil
}

// measure makes a run, and again while it is disturbed. If it always is, the
// least disturbed one stands.
func (b *wanBench) measure(ctx context.Context, cell wanCell, peer wanPeer, seed uint64) (best wanRun, err error) {
	for attempt := 1; attempt <= b.attempts; attempt++ {
		r, err := b.measureOnce(ctx, cell, peer, seed)
		if err != nil {
			return r, err
		}
		r.Attempt = attempt
		stopped := ""
		if r.Stopped {
			stopped = ", stopped"
		}
		b.p.say("  %-15s %6.2f s  %5.1f Mb/s  queue %5.1f ms  late %.1f ms%s", peer.Name, r.Seconds, r.GoodputMbps, r.MeanQueueMs, r.late(), stopped)
		if attempt == 1 || !r.disturbed() || r.EmulatorLosses <= best.EmulatorLosses && r.late() < best.late() {
			best = r
		}
		if !r.disturbed() {
			break
		}
	}
	return best, nil
}

const (
	probeEvery = 20 * time.Millisecond
	// sampleInterval is how often fastpacs brings its counters up to date, and a
	// little more.
	sampleInterval = 1100 * time.Millisecond
	// betweenRuns bounds the wait for what a run left under way.
	betweenRuns = 3 * time.Second
)

func (b *wanBench) measureOnce(ctx context.Context, cell wanCell, peer wanPeer, seed uint64) (r wanRun, err error) {
	if err := b.servers.alive(); err != nil {
		return r, err
	}
	if err := context.Cause(ctx); err != nil {
		return r, err
	}
	b.net.Quiet(50*time.Millisecond, betweenRuns)
	before, err := b.observe(ctx, peer)
	if err != nil {
		return r, err
	}
	if err := b.net.Set(cell.link(seed)); err != nil {
		return r, err
	}
	probe, err := startEndpoint(b.net.Client, "probe", wanProbeJob{To: b.servers.addr(wanEchoPort), Every: probeEvery, RTT: cell.rtt()})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, probe.stop()) }()
	cpuBefore, err := readCPUTimes()
	if err != nil {
		return r, err
	}
	stopShowing := b.show(ctx, peer)
	var got wanFetchResult
	if peer.Kind == kindNgtcp2 {
		got, err = b.fetchByNgtcp2(ctx, peer)
	} else {
		got, err = b.fetch(ctx, peer)
	}
	up, down := b.net.Stats()
	stopShowing()
	cpuAfter, err2 := readCPUTimes()
	if err := errors.Join(err, err2); err != nil {
		return r, err
	}
	_ = probe.stdin.Close()
	var seen wanProbeResult
	if err := probe.result(ctx, &seen); err != nil {
		return r, err
	}
	after, err := b.observe(ctx, peer)
	if err != nil {
		return r, err
	}
	r = wanRun{
		Seconds: round(got.Seconds), Stopped: got.Stopped, Bytes: got.Bytes,
		GoodputMbps: round(float64(got.Bytes) * 8 / 1e6 / got.Seconds),
		MeanQueueMs: msOf(down.Queueing.Mean), P95QueueMs: msOf(down.Queueing.P95), MaxQueueMs: msOf(down.Queueing.Max),
		ProbeMeanMs: round(seen.MeanMs), ProbeP95Ms: round(seen.P95Ms), ProbeMaxMs: round(seen.MaxMs), Probes: seen.Received,
		Packets: down.Offered, BufferDrops: down.TailDrops, RandomLosses: down.Lost,
		LateP99Ms: msOf(max(up.Late.P99, down.Late.P99)), LateMaxMs: msOf(max(up.Late.Max, down.Late.Max)),
		EmulatorLosses: up.WriteErrors + down.WriteErrors + after.deviceDrops - before.deviceDrops,
		EndsLateP99Ms:  round(seen.TickLateP99Ms),
		BusyPct:        round(cpuAfter.busySince(cpuBefore)),
	}
	if before.retransmitted != nil {
		v := *after.retransmitted - *before.retransmitted
		r.Retransmitted = &v
	}
	return r, nil
}

// wanObservation are counters before or after a run.
type wanObservation struct {
	retransmitted *int64
	deviceDrops   int64
}

func (b *wanBench) observe(ctx context.Context, peer wanPeer) (o wanObservation, err error) {
	c, err := wan.CountersOf(b.servers.origin.pid())
	if err != nil {
		return o, err
	}
	o.deviceDrops = c.DeviceDrops
	switch {
	case peer.Kind == kindTCP:
		o.retransmitted = &c.TCPRetransmitted
	case peer.Kind == kindFastpacs:
		select {
		case <-time.After(sampleInterval):
		case <-ctx.Done():
			return o, context.Cause(ctx)
		}
		lost, err := b.servers.lostPackets(ctx, peer.CC)
		if err != nil {
			return o, err
		}
		o.retransmitted = &lost
	}
	return o, nil
}

// show keeps the progress up to date until the returned function is called.
func (b *wanBench) show(ctx context.Context, peer wanPeer) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				_, down := b.net.Stats()
				b.p.update("  %-15s %.1f of %.1f MB passed the link", peer.Name, float64(down.DeliveredBytes)/1e6, float64(b.bytes)/1e6)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// fetch has our client fetch the study.
func (b *wanBench) fetch(ctx context.Context, peer wanPeer) (result wanFetchResult, err error) {
	job := wanFetchJob{
		Protocol: peer.Protocol, Root: b.servers.cert.Raw, Parallel: b.parallel, Limit: b.limit,
		Study: b.study.StudyInstanceUID(), Series: b.study.SeriesInstanceUID(), Sums: b.sums,
	}
	port := uint16(wanCaddyPort)
	switch peer.Kind {
	case kindFastpacs:
		port = wanFastpacsPorts[peer.CC]
	case kindTCP:
		port = wanFrontPorts[peer.CC]
	}
	job.Host = b.servers.addr(port)
	connections := int64(0)
	switch peer.Protocol {
	case "h1":
		job.Parallel, connections = browserConnections, int64(min(browserConnections, b.slices))
	case "h2":
		connections = 1
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.limit+20*time.Second, errors.New("the client did not stop in time"))
	defer cancel()
	c, err := startEndpoint(b.net.Client, "fetch", job)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	if err := c.result(ctx, &result); err != nil {
		return result, err
	}
	if !result.Stopped && (result.Bytes != b.bytes || result.Instances != b.slices || result.Connections < connections) {
		return result, fmt.Errorf("%d of %d bytes came, over %d connections", result.Bytes, b.bytes, result.Connections)
	}
	return result, nil
}
