package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// wanConfig is what fastlab wan was asked for.
type wanConfig struct {
	cells    []wanCell
	peers    []wanPeer
	fastpacs string
	caddy    string
	slices   int
	runs     int
	attempts int
	parallel int
	limit    time.Duration
	seed     uint64
	out      string
	json     bool
	list     bool
	args     []string // as given, for the report
}

const wanUsage = `Usage: fastlab wan [flags]

Fetches a synthetic CT study, as a browser does, over an emulated wide-area link
between two network namespaces: from fastpacs by HTTP/3, by the kernel's TCP with
cubic, bbr and reno, by HTTP/1.1 on six connections and by HTTP/2 on one, from
Caddy by HTTP/3 (quic-go's Reno) and from ngtcp2's server (cubic, bbr). Peers that
are not installed are left out.

Needs Linux, root and /dev/net/tun. No packet leaves the namespaces, which vanish
with this command. Prints a table and writes wan.json and plots. Status 1 if a bar
of improved FAST is missed or something went wrong. docs/benchmarks.md explains
the method. Keep the machine quiet: disturbed runs are repeated, and marked if
they stay disturbed.

`

func parseWAN(args []string, stdout, stderr io.Writer) (wanConfig, error) {
	c := wanConfig{args: args}
	fs := flag.NewFlagSet("fastlab wan", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fs.SetOutput(stdout)
		fmt.Fprint(stdout, wanUsage)
		fs.PrintDefaults()
	}
	cells := fs.String("cells", "", "`cells` MBPS/RTT/LOSS/BDP, such as 100/80/0.1/1, comma separated; all: the whole matrix; default: 16 that stand for it")
	mbps := fs.String("mbps", "", "`rates` in Mb/s, comma separated. With this or one of the next three, all their combinations are run; one not given takes all of its values, here 20,50,100")
	rtt := fs.String("rtt", "", "round-trip `times` in ms (10,40,80,160)")
	loss := fs.String("loss", "", "random losses toward the client in `percent` (0,0.1,1)")
	buffer := fs.String("buffer", "", "drop-tail buffers in bandwidth-delay `products` (0.25,1,4)")
	peers := fs.String("peers", "default", "`names` of peers, comma separated, out of "+strings.Join(wanPeerNames(), ", ")+"; default: all but the last two")
	fs.StringVar(&c.fastpacs, "fastpacs", "", "the fastpacs `program`; else it is built from source, or found beside this one")
	fs.StringVar(&c.caddy, "caddy", "", "the caddy `program`; else it is looked for in PATH, ./bin and ~/go/bin")
	fs.IntVar(&c.slices, "slices", 60, "`number` of slices of the study, 0.5 MB each")
	fs.IntVar(&c.runs, "runs", 3, "`number` of undisturbed runs of each cell and peer; figures are medians")
	fs.IntVar(&c.attempts, "attempts", 3, "`number` of times that a disturbed run is made at most")
	fs.IntVar(&c.parallel, "parallel", 25, "`number` of instances asked for at a time over HTTP/2 and 3, as viewers prefetch; over HTTP/1.1 it is the browsers' 6")
	fs.DurationVar(&c.limit, "limit", time.Minute, "`time` after which a run is stopped; its rate counts")
	fs.Uint64Var(&c.seed, "seed", 1, "`seed` of the study and of the losses, which are the same for every peer")
	fs.StringVar(&c.out, "out", "out", "`directory` for wan.json and the plots")
	fs.BoolVar(&c.json, "json", false, "print the report as JSON in place of the table")
	fs.BoolVar(&c.list, "list", false, "list cells and peers, and run nothing")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	var err error
	if c.cells, err = parseWANCells(*cells, *mbps, *rtt, *loss, *buffer); err != nil {
		return c, err
	}
	if c.peers, err = parseWANPeers(*peers); err != nil {
		return c, err
	}
	switch {
	case c.slices < 1 || c.slices > 1000:
		return c, fmt.Errorf("-slices %d: must be 1 to 1000", c.slices)
	case c.runs < 1 || c.runs > 100:
		return c, fmt.Errorf("-runs %d: must be 1 to 100", c.runs)
	case c.attempts < 1 || c.attempts > 20:
		return c, fmt.Errorf("-attempts %d: must be 1 to 20", c.attempts)
	case c.parallel < 1 || c.parallel > 100:
		return c, fmt.Errorf("-parallel %d: must be 1 to 100", c.parallel)
	case c.limit < time.Second || c.limit > time.Hour:
		return c, fmt.Errorf("-limit %v: must be 1s to 1h", c.limit)
	}
	return c, nil
}

// runWAN is the subcommand; it returns the exit status.
func runWAN(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseWAN(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "fastlab wan:", err)
		return exitUsage
	case c.list:
		c.printList(stdout)
		return exitOK
	}
	if err := wanPossible(); err != nil {
		fmt.Fprintln(stderr, "fastlab wan:", err)
		return exitUsage
	}
	// The emulated link keeps time better with processors of the scheduler to
	// spare and without the pauses of garbage collection.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 30))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))

	p := newProgress(stderr)
	report, err := c.run(ctx, p)
	p.done()
	if report != nil { // perhaps a part, if there is an error
		report.judge()
		err = errors.Join(err, report.save(c.out))
	}
	if err != nil {
		fmt.Fprintln(stderr, "fastlab wan:", err)
	}
	if report == nil {
		return exitFailed
	}
	if c.json {
		err = errors.Join(err, report.printJSON(stdout))
	} else {
		report.printTable(stdout)
	}
	if err != nil || !report.Passed {
		return exitFailed
	}
	return exitOK
}

func (c wanConfig) printList(w io.Writer) {
	fmt.Fprintf(w, "%d cells:\n", len(c.cells))
	for _, cell := range c.cells {
		fmt.Fprintf(w, "  %-16s %s\n", cell.spec(), cell)
	}
	fmt.Fprintf(w, "%d peers:\n", len(c.peers))
	for _, p := range c.peers {
		fmt.Fprintf(w, "  %-16s %s\n", p.Name, p.about)
	}
}

// wanPeer is a server, a protocol and a congestion control to compare.
type wanPeer struct {
	Name     string
	Kind     wanKind
	Protocol string // h1, h2, h3
	CC       string
	about    string
}

// wanKind is what serves.
type wanKind string

const (
	kindFastpacs wanKind = "fastpacs"
	kindTCP      wanKind = "tcp" // our front: the slices from memory, by TLS over the kernel's TCP
	kindCaddy    wanKind = "caddy"
	kindNgtcp2   wanKind = "ngtcp2"
)

// wanSubject is the peer whose bars are judged.
const wanSubject = "fastpacs"

var wanPeers = []wanPeer{
	{wanSubject, kindFastpacs, "h3", "improved", "fastpacs serve, HTTP/3, improved FAST"},
	{"tcp-cubic-h1", kindTCP, "h1", "cubic", "kernel TCP cubic, HTTP/1.1 x 6"},
	{"tcp-cubic-h2", kindTCP, "h2", "cubic", "kernel TCP cubic, HTTP/2"},
	{"tcp-bbr-h1", kindTCP, "h1", "bbr", "kernel TCP bbr, HTTP/1.1 x 6"},
	{"tcp-bbr-h2", kindTCP, "h2", "bbr", "kernel TCP bbr, HTTP/2"},
	{"tcp-reno-h1", kindTCP, "h1", "reno", "kernel TCP reno, HTTP/1.1 x 6"},
	{"tcp-reno-h2", kindTCP, "h2", "reno", "kernel TCP reno, HTTP/2"},
	{"caddy-h3", kindCaddy, "h3", "reno", "Caddy, HTTP/3, quic-go's Reno"},
	{"ngtcp2-cubic", kindNgtcp2, "h3", "cubic", "ngtcp2's gtlsserver and gtlsclient, HTTP/3, cubic"},
	{"ngtcp2-bbr", kindNgtcp2, "h3", "bbr", "ngtcp2's gtlsserver and gtlsclient, HTTP/3, bbr"},
	{"fastpacs-static", kindFastpacs, "h3", "static", "fastpacs serve, HTTP/3, the original FAST"},
	{"fastpacs-reno", kindFastpacs, "h3", "reno", "fastpacs serve, HTTP/3, quic-go's Reno"},
}

const wanDefaultPeers = 10 // of wanPeers

func wanPeerNames() []string {
	var names []string
	for _, p := range wanPeers {
		names = append(names, p.Name)
	}
	return names
}

func parseWANPeers(names string) ([]wanPeer, error) {
	if names == "default" {
		return wanPeers[:wanDefaultPeers], nil
	}
	var peers []wanPeer
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(wanPeerNames(), name)
		if i < 0 {
			return nil, fmt.Errorf("-peers: no peer %q: there are %s", name, strings.Join(wanPeerNames(), ", "))
		}
		if !slices.Contains(peers, wanPeers[i]) {
			peers = append(peers, wanPeers[i])
		}
	}
	return peers, nil
}
