package main

import (
	"fmt"
	"io"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // something went wrong while running
	exitUsage  = 2 // wrong usage or configuration: nothing was started
)

// command is one subcommand. Its run function gets what follows its name, and
// returns the exit status.
type command struct {
	name    string
	summary string
	run     func(args, environ []string, stdout, stderr io.Writer) int
}

func commands() []command {
	return []command{
		{"serve", "stand beside a PACS and speed up its DICOMweb clients", serve},
		{"version", "print the version", version},
	}
}

// run carries out the command line args (without the program's name) and
// returns the exit status.
func run(args, environ []string, stdout, stderr io.Writer) int {
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
	case "--version", "-version":
		name = "version"
	}
	var names []string
	for _, c := range commands() {
		if c.name == name {
			return c.run(args, environ, stdout, stderr)
		}
		names = append(names, c.name)
	}
	fmt.Fprintf(stderr, "fastpacs: unknown command %q%s\nRun `fastpacs help` for the list.\n",
		name, suggest(name, append(names, "help")))
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, `fastpacs makes a PACS fast over long, lossy or busy links.

Usage: fastpacs COMMAND [--help]

`)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s%s\n", c.name, c.summary)
	}
	fmt.Fprintf(w, "  %-9s%s\n", "help", "print this, or the help of a command")
}
