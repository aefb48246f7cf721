package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "fastpacs"
	hook   = "github.com/quic-go/quic-go/quichook" // the nested module in cc/quichook
	quicGo = "github.com/quic-go/"

	prometheus = "github.com/prometheus/"
	dicom      = "github.com/suyashkumar/dicom"
	// httpguts holds net/http's own rules for header fields.
	httpguts = "golang.org/x/net/http/httpguts"

	// everything stands for any package, except the seam to quic-go.
	everything = "*"
)

// table says what a package may import beyond the standard library. Packages of
// this module are named by their folder; an entry that ends in "/" allows all
// that begins with it. Rows may stand for packages that are still to come.
var table = map[string][]string{
	"cc":            {},
	"cc/ccsim":      {"cc"},
	"cc/tcpfast":    {"cc"},
	hook:            {quicGo},
	"proxy/quicnet": {"cc", hook, quicGo},
	"proxy":         {"proxy/quicnet", "cc", "internal/selfsign", prometheus, httpguts},
	"proxy/link":    {"proxy/quicnet", "cc", prometheus},
	"dicomgw/pdu":   {},
	"dicomgw":       {"dicomgw/pdu", prometheus, dicom},

	"internal/arch":        {},
	"internal/selfsign":    {},
	"internal/orthanc":     {},
	"internal/dicomweb":    {},
	"internal/ctstudy":     {dicom},
	"internal/lab":         {"cc", "cc/ccsim", "proxy/quicnet", "internal/selfsign"},
	"internal/lab/udplink": {"golang.org/x/net/ipv4"}, // many datagrams a system call
	"internal/lab/wan":     {"golang.org/x/sys/unix"}, // namespaces and TUN devices
	"internal/e2e":         {everything},

	"cmd/fastpacs": {everything},
	"cmd/fastlab":  {everything},
}

// testAllowance is what tests may import on top of their package's row.
var testAllowance = []string{
	"go.uber.org/goleak",
	"internal/selfsign",
	"internal/orthanc",
	"internal/dicomweb",
	"internal/ctstudy",
	"internal/lab",
	"internal/lab/udplink",
	"cc/ccsim",
	prometheus,
}

// unsafeAllowed are the only packages that may use package unsafe or the
// linkname directive.
var unsafeAllowed = []string{hook}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Deps         []string
}

// name is the package as the table calls it.
func (p listed) name() string { return local(p.ImportPath) }

func local(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

// list returns the module's packages as seen on goos.
func list(t *testing.T, goos string) []listed {
	t.Helper()
	watchSources(t)
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Deps",
		module+"/...", hook+"/...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// watchSources looks at every source file, so that go test does not answer from
// its cache when one has changed: it cannot know what a child process read.
func watchSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isStandard follows the go command's rule: only paths outside the standard
// library have a dot in their first element.
func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return first != module && !strings.Contains(first, ".")
}

func allowed(importPath string, rules []string) bool {
	name := local(importPath)
	for _, rule := range rules {
		switch {
		case rule == everything && !strings.HasPrefix(name, quicGo),
			strings.HasSuffix(rule, "/") && strings.HasPrefix(name, rule),
			name == rule, strings.Contains(rule, ".") && strings.HasPrefix(name, rule+"/"):
			return true
		}
	}
	return false
}

// violations names what p imports against rules.
func violations(p listed, imports, rules []string) []string {
	var found []string
	for _, imported := range imports {
		// An external test imports the package that it tests.
		if !isStandard(imported) && imported != p.ImportPath && !allowed(imported, rules) {
			found = append(found, fmt.Sprintf("%s must not import %s", p.name(), local(imported)))
		}
	}
	return found
}

func TestImportTable(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		t.Run(goos, func(t *testing.T) {
			packages := list(t, goos)
			if len(packages) < 3 {
				t.Fatalf("go list found %d packages: the test looks at the wrong place", len(packages))
			}
			for _, p := range packages {
				rules, ok := table[p.name()]
				if !ok {
					t.Errorf("%s has no row in the import table", p.name())
					continue
				}
				for _, v := range violations(p, p.Imports, rules) {
					t.Error(v)
				}
				inTests := slices.Concat(rules, testAllowance)
				for _, v := range violations(p, slices.Concat(p.TestImports, p.XTestImports), inTests) {
					t.Errorf("%s, in its tests", v)
				}
			}
		})
	}
}

// TestApart holds what the table cannot: packages that must not reach each
// other through a third one either.
func TestApart(t *testing.T) {
	apart := [][2]string{{"proxy", "dicomgw"}, {"dicomgw", "proxy"}, {"cc", "proxy/quicnet"}}
	for _, p := range list(t, "linux") {
		for _, pair := range apart {
			if p.name() == pair[0] && slices.Contains(p.Deps, path.Join(module, pair[1])) {
				t.Errorf("%s reaches %s", pair[0], pair[1])
			}
		}
	}
}

func TestUnsafeStaysInTheSeam(t *testing.T) {
	for _, p := range list(t, "linux") {
		if slices.Contains(unsafeAllowed, p.ImportPath) {
			continue
		}
		if slices.Contains(slices.Concat(p.Imports, p.TestImports, p.XTestImports), "unsafe") {
			t.Errorf("%s imports unsafe", p.name())
		}
		for _, file := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			source, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(source), "\n//go:linkname ") {
				t.Errorf("%s: %s uses linkname", p.name(), file)
			}
		}
	}
}

// TestRules holds the rules themselves, so that a slip in them cannot let
// everything pass.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		importPath string
		rules      []string
		want       bool
	}{
		{"fastpacs/cc", []string{"cc"}, true},
		{"fastpacs/cc/ccsim", []string{"cc"}, false},
		{"github.com/suyashkumar/dicom", []string{dicom}, true},
		{"github.com/suyashkumar/dicom/pkg/tag", []string{dicom}, true},
		{"github.com/suyashkumar/dicomother", []string{dicom}, false},
		{"github.com/prometheus/client_golang/prometheus", []string{prometheus}, true},
		{"fastpacs/proxy/quicnet", []string{everything}, true},
		{"github.com/quic-go/quic-go", []string{everything}, false},
		{hook, []string{everything}, false},
		{"github.com/quic-go/quic-go/http3", []string{quicGo}, true},
		{"go.uber.org/goleak", nil, false},
	} {
		if got := allowed(c.importPath, c.rules); got != c.want {
			t.Errorf("allowed(%q, %q) = %v, want %v", c.importPath, c.rules, got, c.want)
		}
	}
	for importPath, want := range map[string]bool{
		"net/http": true, "unsafe": true, "fastpacs/cc": false, "fastpacs": false, "golang.org/x/net/http2": false,
	} {
		if got := isStandard(importPath); got != want {
			t.Errorf("isStandard(%q) = %v, want %v", importPath, got, want)
		}
	}
}
