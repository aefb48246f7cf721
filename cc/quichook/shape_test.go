//lint:file-ignore U1000 the fakes' fields are looked at by reflection

package quichook

import (
	"reflect"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/internal/ackhandler"
	"github.com/quic-go/quic-go/internal/congestion"
	"github.com/quic-go/quic-go/internal/utils"
)

func TestHookIsInPlace(t *testing.T) {
	if err := Err(); err != nil {
		t.Fatal(err)
	}
}

// Each fake differs in one point from what this package knows.
type (
	noHandler struct {
		connStats utils.ConnectionStats
		rttStats  *utils.RTTStats
	}
	otherHandler struct {
		sentPacketHandler *ackhandler.SentPacketHandler
		connStats         utils.ConnectionStats
		rttStats          *utils.RTTStats
	}
	otherStats struct {
		sentPacketHandler ackhandler.SentPacketHandler
		connStats         *utils.ConnectionStats
		rttStats          *utils.RTTStats
	}
	otherRTT struct {
		sentPacketHandler ackhandler.SentPacketHandler
		connStats         utils.ConnectionStats
		rttStats          utils.RTTStats
	}
	embeds struct{ otherRTT }

	noCongestion struct {
		c congestion.SendAlgorithmWithDebugInfos
	}
	otherCongestion struct{ congestion congestion.SendAlgorithm }

	noConstructor struct{ baseServer *struct{ newC func() } }
	fewerParams   struct {
		baseServer *struct{ newConn func() *wrappedConn }
	}
	constructor[F any] struct {
		baseServer *struct{ newConn F }
	}
)

func TestUnknownLayoutIsRefused(t *testing.T) {
	known := linkedShape()
	if _, err := known.check(); err != nil {
		t.Fatal(err)
	}
	with := func(change func(*shape)) shape {
		s := known
		change(&s)
		return s
	}
	conn := func(v any) shape { return with(func(s *shape) { s.conn = reflect.TypeOf(v) }) }
	handler := func(v any) shape { return with(func(s *shape) { s.handler = reflect.TypeOf(v) }) }
	listener := func(v any) shape { return with(func(s *shape) { s.listener = reflect.TypeOf(v) }) }
	for _, tc := range []struct {
		name string
		s    shape
		want string
	}{
		{"no handler", conn(noHandler{}), "has no field sentPacketHandler"},
		{"handler of another type", conn(otherHandler{}), "sentPacketHandler is a *ackhandler"},
		{"stats by pointer", conn(otherStats{}), "connStats is a *utils"},
		{"RTT by value", conn(otherRTT{}), "rttStats is a utils"},
		{"embedded", conn(embeds{}), "has no field sentPacketHandler"},
		{"no struct", conn(0), "int is no struct"},
		{"handler no pointer", handler(noCongestion{}), "want a pointer"},
		{"no congestion", handler(&noCongestion{}), "has no field congestion"},
		{"congestion of another type", handler(&otherCongestion{}), "congestion is a congestion.SendAlgorithm"},
		{"no baseServer", listener(struct{}{}), "has no baseServer"},
		{"no constructor", listener(noConstructor{}), "has no function newConn"},
		{"fewer parameters", listener(fewerParams{}), "want 19 parameters"},
		{"another result", listener(constructor[serverFunc]{}), "does not hold a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, err := tc.s.check()
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
			if l != (layout{}) {
				t.Error("a refused shape has a layout")
			}
		})
	}
}

type (
	emptyWrapped struct{ testHooks unsafe.Pointer }
	receiver     struct{ *quic.Conn }
	knownWrapped struct {
		testHooks unsafe.Pointer
		receiver
	}
	movedWrapped struct {
		testHooks, more unsafe.Pointer
		receiver
	}
	flatWrapped struct {
		testHooks unsafe.Pointer
		*quic.Conn
	}
)

func TestConstructorsAreCompared(t *testing.T) {
	conn := reflect.TypeFor[quic.Conn]()
	type ours = func(any, unsafe.Pointer, int) *wrappedConn
	type named interface{ m() }
	for _, tc := range []struct {
		name string
		f    any
		want string
	}{
		{"known", (func(named, *string, int) *knownWrapped)(nil), ""},
		{"variadic", (func(named, *string, ...int) *knownWrapped)(nil), "want 3 parameters"},
		{"no interface", (func(*string, *string, int) *knownWrapped)(nil), "parameter 0"},
		{"no pointer", (func(named, string, int) *knownWrapped)(nil), "parameter 1"},
		{"another type", (func(named, *string, int64) *knownWrapped)(nil), "parameter 2"},
		{"result by value", (func(named, *string, int) knownWrapped)(nil), "want a pointer to a struct"},
		{"no connection", (func(named, *string, int) *emptyWrapped)(nil), "does not hold"},
		{"moved", (func(named, *string, int) *movedWrapped)(nil), "holds its Conn at 16, want 8"},
		{"flat", (func(named, *string, int) *flatWrapped)(nil), "does not hold"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := sameFunc(reflect.TypeOf(tc.f), reflect.TypeFor[ours](), conn)
			if tc.want == "" && err != nil {
				t.Fatal(err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
		})
	}
}

func TestVersionIsCompared(t *testing.T) {
	build := func(m ...*debug.Module) *debug.BuildInfo { return &debug.BuildInfo{Deps: m} }
	other := &debug.Module{Path: "example.com/other", Version: "v1.0.0"}
	for _, tc := range []struct {
		name string
		info *debug.BuildInfo
		want string
	}{
		{"no build information", nil, ""},
		{"test binary", build(), ""},
		{"pinned", build(other, &debug.Module{Path: quicGo, Version: pinned}), ""},
		{"newer", build(other, &debug.Module{Path: quicGo, Version: "v0.66.0"}), "linked with v0.66.0"},
		{"replaced", build(&debug.Module{Path: quicGo, Version: pinned, Replace: &debug.Module{Path: "../quic-go"}}), "replacement ../quic-go"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := checkVersion(tc.info)
			if tc.want == "" && err != nil {
				t.Fatal(err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
		})
	}
}

func TestOriginIsCompared(t *testing.T) {
	const cache = "/go/pkg/mod/github.com/quic-go/"
	for _, tc := range []struct {
		name, function, file, want string
	}{
		{"module cache", quicGo + ".init.func1", cache + "quic-go@v0.65.0/connection.go", ""},
		{"trimmed", quicGo + ".glob..func2", "github.com/quic-go/quic-go@v0.65.0/connection.go", ""},
		{"vendored", quicGo + ".init.func1", "/src/vendor/github.com/quic-go/quic-go/connection.go", ""},
		{"newer", quicGo + ".init.func1", cache + "quic-go@v0.66.0/connection.go", "newConnection is of v0.66.0"},
		{"moved", quicGo + ".init.func1", cache + "quic-go@v0.65.0/conn.go", "something else has replaced it"},
		{"wrapped", quicGo + "/quichook.wrapConstructors.func1", cache + "quic-go@v0.65.0/connection.go", "something else has replaced it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := checkSource("newConnection", tc.function, tc.file)
			if tc.want == "" && err != nil {
				t.Fatal(err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
		})
	}
	if err := checkOrigin("newConnection", serverFunc(nil)); err == nil || !strings.Contains(err.Error(), "is not set") {
		t.Errorf("no constructor: %v", err)
	}
	// By now this package has replaced them itself.
	if err := checkOrigin("newConnection", newConnection); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("a replaced constructor: %v", err)
	}
}
