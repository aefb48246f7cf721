package quicnet

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestHookIsInPlace(t *testing.T) {
	if err := CheckHook(); err != nil {
		t.Fatal(err)
	}
}

// The client constructor's type cannot be reached by reflection, so that the
// hook cannot check it at start-up; its source is compared here instead. The
// server's is compared too, and both in full.
func TestConstructorSourceIsTheKnownOne(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/quic-go/quic-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))
	for name, want := range map[string]string{
		"newConnection": "context.Context, context.CancelCauseFunc, sendConn, connRunner, " +
			"protocol.ConnectionID, protocol.ConnectionID, protocol.ConnectionID, protocol.ConnectionID, protocol.ConnectionID, " +
			"ConnectionIDGenerator, *statelessResetter, *Config, *tls.Config, *handshake.TokenGenerator, " +
			"bool, time.Duration, qlogwriter.Trace, utils.Logger, protocol.Version, *wrappedConn",
		"newClientConnection": "context.Context, sendConn, connRunner, protocol.ConnectionID, protocol.ConnectionID, " +
			"ConnectionIDGenerator, *statelessResetter, *Config, *tls.Config, protocol.PacketNumber, bool, bool, " +
			"qlogwriter.Trace, utils.Logger, protocol.Version, *wrappedConn",
	} {
		if got := funcVar(t, filepath.Join(dir, "connection.go"), name); got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
	}
	// What quic-go calls is the variable, so that wrapping it has an effect.
	for file, use := range map[string]string{
		"server.go":    "newConn:                   newConnection,",
		"transport.go": "conn := newClientConnection(",
	} {
		src, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(src, []byte(use)) {
			t.Errorf("%s does not say %q", file, use)
		}
	}
}

// funcVar returns the parameter and result types of the function literal that a
// package variable is set to.
func funcVar(t *testing.T, file, name string) string {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 || v.Names[0].Name != name {
			return true
		}
		lit, ok := v.Values[0].(*ast.FuncLit)
		if !ok {
			return true
		}
		for _, p := range append(lit.Type.Params.List, lit.Type.Results.List...) {
			var b strings.Builder
			if err := printer.Fprint(&b, fset, p.Type); err != nil {
				t.Fatal(err)
			}
			for range max(len(p.Names), 1) {
				types = append(types, b.String())
			}
		}
		return false
	})
	return strings.Join(types, ", ")
}
