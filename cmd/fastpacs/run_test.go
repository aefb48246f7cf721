package main

import (
	"strings"
	"testing"
)

// call runs a command line in this process.
func call(args, environ []string) (status int, stdout, stderr string) {
	var out, errors strings.Builder
	status = run(args, environ, &out, &errors)
	return status, out.String(), errors.String()
}

func TestCommandLine(t *testing.T) {
	upstream := []string{"FASTPACS_UPSTREAM=http://127.0.0.1:1"}
	for _, c := range []struct {
		args    string
		environ []string
		status  int
		stdout  string // part of it; "" means that nothing is printed
		stderr  string
	}{
		{"", nil, exitUsage, "", "Usage: fastpacs COMMAND"},
		{"help", nil, exitOK, "serve    stand beside a PACS", ""},
		{"--help", nil, exitOK, "Usage: fastpacs COMMAND", ""},
		{"-h", nil, exitOK, "Usage: fastpacs COMMAND", ""},
		{"help serve", nil, exitOK, "FASTPACS_UPSTREAM", ""},
		{"help nothing", nil, exitUsage, "", `unknown command "nothing"`},
		{"serv", nil, exitUsage, "", `unknown command "serv": did you mean serve?`},
		{"version", nil, exitOK, "quic-go v0.", ""},
		{"--version", nil, exitOK, "fastpacs ", ""},
		{"version 1", nil, exitUsage, "", "usage: fastpacs version"},
		{"serve --help", nil, exitOK, "--check-config", ""},
		{"serve --nothing", upstream, exitUsage, "", "flag provided but not defined: -nothing"},
		{"serve http://127.0.0.1:1", upstream, exitUsage, "", "takes no arguments"},
		{"serve", nil, exitUsage, "", "FASTPACS_UPSTREAM is not set"},
		{"serve --check-config", upstream, exitOK, "the configuration is valid", ""},
		{"serve --check-config", []string{"FASTPACS_UPSTREAM=pacs"}, exitUsage, "", `FASTPACS_UPSTREAM="pacs": must be a URL`},
	} {
		status, stdout, stderr := call(strings.Fields(c.args), c.environ)
		if status != c.status {
			t.Errorf("fastpacs %s: status %d, want %d", c.args, status, c.status)
		}
		for _, output := range []struct{ name, got, want string }{{"stdout", stdout, c.stdout}, {"stderr", stderr, c.stderr}} {
			if !strings.Contains(output.got, output.want) || (output.got == "") != (output.want == "") {
				t.Errorf("fastpacs %s: %s is %q, want %q in it", c.args, output.name, output.got, output.want)
			}
		}
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	_, help, _ := call([]string{"serve", "--help"}, nil)
	for name, value := range texts(defaults()) {
		if !strings.Contains(help, "\n  "+name+"\n") {
			t.Errorf("help does not list %s", name)
		}
		words := strings.Join(strings.Fields(help), " ") // lines are wrapped
		if value != "" && !strings.Contains(words, "Default: "+value+".") {
			t.Errorf("help does not tell the default of %s, %s", name, value)
		}
	}
	for line := range strings.Lines(help) {
		if len(line) > 81 {
			t.Errorf("line too wide for a terminal: %s", line)
		}
	}
}
