package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write configs/serve.env and README.md's table anew")

const (
	envPath    = "../../configs/serve.env"
	readmePath = "../../README.md"
	tableBegin = "<!-- The table is made by: go test ./cmd/fastpacs -update -->\n"
	tableEnd   = "<!-- end of the table -->\n"
)

// envFile is configs/serve.env as it should be: every variable with its
// description, and commented out with its default.
func envFile() string {
	var b strings.Builder
	b.WriteString(`# fastpacs serve: every variable, its meaning and its default.
#
# Copy this file, take the # away from the lines to change, and hand it to
#
#   systemd   EnvironmentFile=/etc/fastpacs/serve.env
#   docker    docker run --env-file serve.env ...
#   a shell   set -a; . ./serve.env; set +a; fastpacs serve
#
# Durations are like 500ms, 30s, 5m or 1h; sizes like 4096, 64KiB, 32MiB or 1GiB.
# An empty value stands for the default. fastpacs serve --check-config says
# whether all is right.
`)
	defaults := texts(defaults())
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n\n## %s\n", s.heading)
		for _, v := range s.variables {
			b.WriteByte('\n')
			for line := range wrap(v.help, 78) {
				fmt.Fprintf(&b, "# %s\n", line)
			}
			for line := range wrap("Allowed: "+v.allowed+".", 78) {
				fmt.Fprintf(&b, "# %s\n", line)
			}
			if v.name == "FASTPACS_UPSTREAM" {
				fmt.Fprintf(&b, "%s\n", someUpstream)
			} else {
				fmt.Fprintf(&b, "#%s=%s\n", v.name, defaults[v.name])
			}
		}
	}
	return b.String()
}

// table is README.md's table of the variables.
func table() string {
	var b strings.Builder
	defaults := texts(defaults())
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n**%s**\n\n| Variable | Default | Allowed | Meaning |\n|---|---|---|---|\n", s.heading)
		for _, v := range s.variables {
			value := ""
			if d := defaults[v.name]; d != "" {
				value = "`" + d + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.name, value, v.allowed, v.help)
		}
	}
	return b.String() + "\n"
}

// expect compares a file with what it should hold, or writes it with -update.
func expect(t *testing.T, path, got, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s is not what the variables are: run go test ./cmd/fastpacs -update", path)
	}
}

func TestEnvFile(t *testing.T) {
	text, err := os.ReadFile(envPath)
	if err != nil && !*update {
		t.Fatal(err)
	}
	expect(t, envPath, string(text), envFile())
}

func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile(readmePath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", readmePath)
	}
	expect(t, readmePath, string(text), before+tableBegin+table()+tableEnd+after)
}

// parseEnvFile reads what systemd, docker and a shell read alike: NAME=value
// lines without quotes. Lines "#NAME=value" are returned apart.
func parseEnvFile(text string) (set, commented map[string]string, err error) {
	set, commented = make(map[string]string), make(map[string]string)
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(line, "\n")
		into := set
		switch {
		case line == "", line == "#", strings.HasPrefix(line, "# "), strings.HasPrefix(line, "##"):
			continue
		case line[0] == '#':
			line, into = line[1:], commented
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || !isName(name) || strings.ContainsAny(value, " \t\r\"'`$\\;&|<>()#*?[]{}~!") {
			return nil, nil, fmt.Errorf("line %d: %q does not mean the same to systemd, docker and a shell", number, line)
		}
		if _, twice := into[name]; twice {
			return nil, nil, fmt.Errorf("line %d: %s is there twice", number, name)
		}
		into[name] = value
	}
	return set, commented, nil
}

func isName(s string) bool {
	for _, b := range []byte(s) {
		if (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '_' {
			return false
		}
	}
	return s != "" && (s[0] < '0' || s[0] > '9')
}

// TestEnvFileLoads reads the file as an administrator would have it: as shipped,
// and with all its lines taken into use.
func TestEnvFileLoads(t *testing.T) {
	text, err := os.ReadFile(envPath)
	if err != nil {
		t.Fatal(err)
	}
	set, commented, err := parseEnvFile(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for v := range allVariables() {
		names = append(names, v.name)
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(merge(set, commented))); !slices.Equal(got, names) {
		t.Errorf("the file has\n%q, want\n%q", got, names)
	}
	defaults := texts(defaults())
	for name, value := range commented {
		if value != defaults[name] {
			t.Errorf("%s=%s is commented out, and the default is %s", name, value, cmp.Or(defaults[name], "none"))
		}
	}
	for _, values := range []map[string]string{set, merge(set, commented)} {
		var environ []string
		for name, value := range values {
			environ = append(environ, name+"="+value)
		}
		if _, err := load(environ); err != nil {
			t.Error(err)
		}
	}
}

func merge(a, b map[string]string) map[string]string {
	both := maps.Clone(a)
	maps.Copy(both, b)
	return both
}

func FuzzEnvFile(f *testing.F) {
	f.Add(envFile())
	f.Add("A=1\n#B=2\n# text\n\n")
	f.Add("A=1\nA=2")
	f.Add("=\n#")
	f.Fuzz(func(t *testing.T, text string) {
		set, commented, err := parseEnvFile(text)
		if err != nil {
			return
		}
		var b strings.Builder
		for name, value := range set {
			fmt.Fprintf(&b, "%s=%s\n", name, value)
		}
		for name, value := range commented {
			fmt.Fprintf(&b, "#%s=%s\n", name, value)
		}
		set2, commented2, err := parseEnvFile(b.String())
		if err != nil || !maps.Equal(set, set2) || !maps.Equal(commented, commented2) {
			t.Fatalf("%q, written again as %q, is read as %q and %q, %v", text, b.String(), set2, commented2, err)
		}
	})
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"one", []string{"one"}},
		{"one two three", []string{"one two", "three"}},
		{"a averylongword b", []string{"a", "averylongword", "b"}},
	} {
		if got := slices.Collect(wrap(c.text, 7)); !slices.Equal(got, c.want) {
			t.Errorf("wrap(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}
