package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"fastpacs/internal/ctstudy"
	"fastpacs/internal/dicomweb"
	"fastpacs/internal/orthanc"
)

// runConfig is what fastlab run was asked for.
type runConfig struct {
	fastpacs string
	listen   string
	admin    string
	slices   int
	seed     uint64
}

func parseRun(args []string, stdout, stderr io.Writer) (runConfig, error) {
	var c runConfig
	fs := flag.NewFlagSet("fastlab run", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() {
		fs.SetOutput(stdout)
		fmt.Fprint(stdout, `Usage: fastlab run [flags]

Starts an Orthanc with an empty archive and fastpacs in front of it, on loopback,
prints where they are and stays up until Ctrl-C. Then both stop and the archive
is removed. A missing Orthanc is installed (Debian, Ubuntu; as root), or the
command to do so is printed.

Variables FASTPACS_* are not taken from the environment.

`)
		fs.PrintDefaults()
	}
	fs.StringVar(&c.fastpacs, "fastpacs", "", "the fastpacs `program`; else it is built from source, or found beside this one")
	fs.StringVar(&c.listen, "listen", "127.0.0.1:8443", "`address` of the proxy, TCP and UDP")
	fs.StringVar(&c.admin, "admin", "127.0.0.1:9464", "`address` of metrics and health")
	fs.IntVar(&c.slices, "slices", 50, "store a synthetic CT study of so `many` slices first; 0 stores none")
	fs.Uint64Var(&c.seed, "seed", 1, "`seed` of that study")
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	if fs.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if c.slices < 0 || c.slices > 10000 {
		return c, fmt.Errorf("-slices %d: must be 0 to 10000", c.slices)
	}
	return c, nil
}

// runRun is the subcommand; it returns the exit status.
func runRun(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, err := parseRun(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "fastlab run:", err)
		return exitUsage
	}
	p := newProgress(stderr)
	err = c.run(ctx, p, stdout)
	p.done()
	if err != nil {
		fmt.Fprintln(stderr, "fastlab run:", err)
		return exitFailed
	}
	return exitOK
}

func (c runConfig) run(ctx context.Context, p *progress, stdout io.Writer) (err error) {
	archive, binary, err := prepare(ctx, c.fastpacs, p)
	if err != nil {
		return err
	}
	defer func() {
		p.say("stopping Orthanc")
		err = errors.Join(err, archive.Stop(context.WithoutCancel(ctx)))
	}()
	state, err := labStateDir()
	if err != nil {
		return err
	}
	proxy, err := startProxy(ctx, proxyConfig{
		binary: binary, upstream: archive.URL(), stateDir: state, accessLog: stdout,
		env: []string{
			"FASTPACS_LISTEN=" + c.listen, "FASTPACS_ADMIN=" + c.admin,
			"FASTPACS_ACCESS_LOG=text", "FASTPACS_DRAIN_TIMEOUT=5s",
		},
	})
	if err != nil {
		return fmt.Errorf("%w\n(-listen and -admin choose other addresses)", err)
	}
	defer func() {
		p.say("stopping fastpacs")
		err = errors.Join(err, proxy.Stop())
	}()
	if c.slices > 0 {
		p.say("storing a synthetic CT study of %d slices", c.slices)
		if err := storeDirectly(ctx, archive, ctstudy.Config{Slices: c.slices, Size: sliceSize, Seed: c.seed}); err != nil {
			return err
		}
	}
	p.say("up")
	fmt.Fprintf(stdout, `
fastpacs      %[1]s/                  HTTP/1.1, HTTP/2 and HTTP/3
DICOMweb      %[1]s%[2]s
explorer      %[1]s/app/explorer.html
metrics       %[3]s
Orthanc       %[4]s   (directly; DICOM: %[5]s at %[6]s)
certificate   self-signed, SHA-256 %[7]s
              A browser asks once whether to trust it. HTTP/3 in Chromium:
              --origin-to-force-quic-on=%[8]s --ignore-certificate-errors-spki-list=%[9]s

Each request is shown below. Ctrl-C stops both and removes the archive.

`, proxy.URL, orthanc.DICOMwebPath, proxy.Metrics, archive.URL(), orthanc.AETitle, archive.DICOMAddr(),
		proxy.SHA256, proxy.Host(), proxy.SPKI)
	select {
	case <-ctx.Done():
		return nil
	case <-archive.Exited():
		return errors.New("the archive ended by itself")
	case <-proxy.exited:
		return errors.New("the proxy ended by itself")
	}
}

// prepare sets up what is missing and starts the archive.
func prepare(ctx context.Context, fastpacs string, p *progress) (_ *orthanc.Server, binary string, err error) {
	installation, err := orthanc.Install(ctx, func(line string) { p.say("%s", line) })
	if err != nil {
		return nil, "", err
	}
	binary, err = fastpacsBinary(ctx, fastpacs, func(line string) { p.say("%s", line) })
	if err != nil {
		return nil, "", err
	}
	p.say("starting Orthanc")
	archive, err := orthanc.Start(ctx, orthanc.Config{Installation: installation})
	return archive, binary, err
}

// storeDirectly puts a study into the archive, not through the proxy.
func storeDirectly(ctx context.Context, archive *orthanc.Server, cfg ctstudy.Config) error {
	study, err := ctstudy.New(cfg)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableCompression: true, IdleConnTimeout: 500 * time.Millisecond}
	defer transport.CloseIdleConnections()
	client, err := dicomweb.New(archive.URL()+orthanc.DICOMwebPath, &http.Client{Transport: transport})
	if err != nil {
		return err
	}
	return store(ctx, client, study, func(ctstudy.Instance) {})
}
