package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"fastpacs/cc"
	"fastpacs/proxy"
	"fastpacs/proxy/quicnet"
)

// serve runs the proxy until a signal ends it.
func serve(args, environ []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("fastpacs serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	checkOnly := flags.Bool("check-config", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		serveUsage(stdout)
		return exitOK
	case err != nil:
		fmt.Fprintf(stderr, "fastpacs serve: %v\nRun `fastpacs serve --help`.\n", err)
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "fastpacs serve takes no arguments, and got %q: it is configured by variables (see fastpacs serve --help)\n", flags.Args())
		return exitUsage
	}

	c, err := load(environ)
	if err != nil {
		fmt.Fprintf(stderr, "fastpacs: wrong configuration:\n  %s\n", strings.ReplaceAll(err.Error(), "\n", "\n  "))
		return exitUsage
	}
	if *checkOnly {
		fmt.Fprintln(stdout, "the configuration is valid")
		return exitOK
	}

	log := c.LogFormat.logger(stderr, c.LogLevel)
	if err := c.senderError(quicnet.CheckHook()); err != nil {
		log.Error("cannot start", "error", err)
		return exitUsage
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	server, err := proxy.New(c.proxy(), proxy.Options{
		Logger: log, Registry: registry, AccessLog: stdout, Version: versionOf().version,
	})
	if err != nil {
		log.Error("cannot start", "error", err)
		return exitUsage
	}
	return runServer(server, log)
}

// senderError says why the congestion controller that c asks for cannot run,
// given what quicnet.CheckHook says of the quic-go that is linked in.
func (c config) senderError(hook error) error {
	if hook == nil || !c.HTTP3 || c.CC == cc.LawReno {
		return nil
	}
	return fmt.Errorf("FASTPACS_CC=%s cannot run: %w: FASTPACS_CC=reno asks for quic-go's own controller", c.CC, hook)
}

// runServer runs server until SIGINT or SIGTERM, then lets it drain; a second
// one ends it at once. SIGHUP reloads the certificate.
func runServer(server *proxy.Server, log *slog.Logger) int {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	ready := server.Ready()
	for {
		select {
		case <-ready:
			ready = nil
			announce(server.Addrs(), log)
		case s := <-signals:
			switch {
			case s == syscall.SIGHUP:
				if err := server.Reload(); err != nil {
					log.Error("certificate not reloaded", "error", err)
				}
			case ctx.Err() == nil:
				log.Info("stopping once transfers are done; a second signal stops at once", "signal", s)
				stop()
			default:
				log.Warn("stopped at once: transfers were cut", "signal", s)
				return exitFailed
			}
		case err := <-ended:
			if err != nil {
				log.Error("failed", "error", err, "hint", hint(err))
				return exitFailed
			}
			return exitOK
		}
	}
}

// hint says what to do about err, where that is not obvious.
func hint(err error) string {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "another process listens there: stop it, or set FASTPACS_LISTEN or FASTPACS_ADMIN"
	case errors.Is(err, syscall.EACCES):
		return "ports below 1024 need CAP_NET_BIND_SERVICE: grant it, or set FASTPACS_LISTEN"
	}
	return "none"
}

// announce tells where the server is, as URLs to click on.
func announce(addrs proxy.Addrs, log *slog.Logger) {
	attrs := []any{"url", "https://" + reachable(addrs.HTTPS) + "/", "http3", addrs.HTTP3 != nil}
	if addrs.Admin != nil {
		attrs = append(attrs, "metrics", "http://"+reachable(addrs.Admin)+"/metrics")
	}
	log.Info("ready", attrs...)
}

// reachable is host:port for an address listened on; when that is all addresses
// of the machine, the host is the machine's name.
func reachable(addr net.Addr) string {
	ap, err := netip.ParseAddrPort(addr.String())
	if err != nil || !ap.Addr().IsUnspecified() {
		return addr.String()
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return net.JoinHostPort(host, fmt.Sprint(ap.Port()))
}

func serveUsage(w io.Writer) {
	fmt.Fprint(w, `fastpacs serve stands beside a PACS and sends to its DICOMweb clients over
HTTP/3 with the improved FAST congestion controller, and over HTTP/1.1 and 2.

Usage: FASTPACS_UPSTREAM=http://127.0.0.1:8042 fastpacs serve [--check-config]

  --check-config  say whether the configuration is valid, and start nothing

SIGTERM or SIGINT lets transfers end and stops; a second one stops at once.
SIGHUP reads the certificate again. Exit status: 0 stopped as asked, 1 failed
while running, 2 wrong usage or configuration.

It is configured by these variables of the environment. One that is empty counts
as not set; an unknown one that begins with FASTPACS_ is refused.
`)
	printVariables(w)
}
