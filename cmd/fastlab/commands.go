package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong, or a bar was missed
	exitUsage  = 2 // nothing was started
)

// command is one subcommand. run gets what follows its name and returns the exit
// status; its context ends with SIGINT or SIGTERM.
type command struct {
	name    string
	summary string
	run     func(ctx context.Context, args []string, stdout, stderr io.Writer) int
}

func commands() []command {
	return []command{
		{"run", "start Orthanc and fastpacs in front of it, on loopback, until Ctrl-C", runRun},
		{"demo", "send a CT study over an emulated slow link: improved FAST against Reno", runDemo},
		{"paper", "run the article's experiments in a simulator, with its laws and ours", runPaper},
		{"wan", "compare with kernel TCP, Caddy and ngtcp2 over an emulated WAN (Linux, root)", runWAN},
		{"suite", "run named scenarios in virtual time and hold them against their bars", runSuite},
	}
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	name, args := args[0], args[1:]
	if name == "help" && len(args) > 0 {
		name, args = args[0], []string{"--help"}
	}
	switch name {
	case "help", "--help", "-help", "-h":
		usage(stdout)
		return exitOK
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if name == "wan-endpoint" { // for `fastlab wan` alone
		return runWANEndpoint(ctx, args, os.Stdin, stdout, stderr)
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(ctx, args, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "fastlab: unknown command %q\nRun `fastlab help` for the list.\n", name)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "fastlab tries fastpacs out: beside a real PACS, over emulated links.\n\nUsage: fastlab COMMAND [--help]\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-7s%s\n", c.name, c.summary)
	}
	fmt.Fprintf(w, "  %-7s%s\n", "help", "print this, or the help of a command")
}
