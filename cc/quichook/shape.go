package quichook

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"unsafe"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/internal/ackhandler"
	"github.com/quic-go/quic-go/internal/congestion"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
)

const (
	quicGo = "github.com/quic-go/quic-go"
	// pinned is the only version whose layout is known.
	pinned = "v0.65.0"
)

// A shape names the types of quic-go this package looks into.
type shape struct {
	conn     reflect.Type // quic.Conn, a struct
	listener reflect.Type // quic.Listener, a struct
	handler  reflect.Type // of an ackhandler.SentPacketHandler: a pointer to a struct
}

// A layout says where in them the parts stand that this package reads or
// replaces: offsets in bytes.
type layout struct {
	sentPacketHandler uintptr // in quic.Conn
	connStats         uintptr // in quic.Conn
	rttStats          uintptr // in quic.Conn
	congestion        uintptr // in the sent packet handler
	handler           reflect.Type
}

func linkedShape() shape {
	h := ackhandler.NewSentPacketHandler(0, protocol.InitialPacketSize, utils.NewRTTStats(), &utils.ConnectionStats{},
		true, false, nil, protocol.PerspectiveClient, nil, utils.DefaultLogger)
	return shape{
		conn:     reflect.TypeFor[quic.Conn](),
		listener: reflect.TypeFor[quic.Listener](),
		handler:  reflect.TypeOf(h),
	}
}

// checkVersion refuses a quic-go other than the pinned one, or a replaced one.
// Test binaries carry no dependencies in their build information; there the
// shape alone decides.
func checkVersion(info *debug.BuildInfo) error {
	if info == nil {
		return nil
	}
	for _, m := range info.Deps {
		if m.Path != quicGo {
			continue
		}
		if m.Version != pinned {
			return fmt.Errorf("quichook: made for %s %s, linked with %s", quicGo, pinned, m.Version)
		}
		if m.Replace != nil {
			return fmt.Errorf("quichook: made for %s %s, linked with its replacement %s %s", quicGo, pinned, m.Replace.Path, m.Replace.Version)
		}
	}
	return nil
}

// checkOrigin refuses a constructor that does not stand in quic-go's own source
// file of the pinned version: the file's path holds the version when it comes
// from a module cache, in test binaries too.
func checkOrigin(variable string, constructor any) error {
	f := runtime.FuncForPC(reflect.ValueOf(constructor).Pointer())
	if f == nil {
		return fmt.Errorf("quichook: quic-go's %s is not set", variable)
	}
	file, _ := f.FileLine(f.Entry())
	return checkSource(variable, f.Name(), file)
}

func checkSource(variable, function, file string) error {
	if !strings.HasPrefix(function, quicGo+".") || path.Base(file) != "connection.go" {
		return fmt.Errorf("quichook: quic-go's %s is %s in %s: something else has replaced it", variable, function, file)
	}
	_, version, ok := strings.Cut(path.Base(path.Dir(file)), "@")
	if ok && version != pinned {
		return fmt.Errorf("quichook: made for %s %s, but %s is of %s", quicGo, pinned, variable, version)
	}
	return nil
}

// check compares s with what this package was written for.
func (s shape) check() (layout, error) {
	var (
		l    layout
		errs [5]error
	)
	l.sentPacketHandler, errs[0] = field(s.conn, "sentPacketHandler", reflect.TypeFor[ackhandler.SentPacketHandler]())
	l.connStats, errs[1] = field(s.conn, "connStats", reflect.TypeFor[utils.ConnectionStats]())
	l.rttStats, errs[2] = field(s.conn, "rttStats", reflect.TypeFor[*utils.RTTStats]())
	if s.handler.Kind() != reflect.Pointer {
		errs[3] = fmt.Errorf("the sent packet handler is a %v, want a pointer", s.handler)
	} else {
		l.handler = s.handler
		l.congestion, errs[3] = field(s.handler.Elem(), "congestion", reflect.TypeFor[congestion.SendAlgorithmWithDebugInfos]())
	}
	errs[4] = s.checkConstructor()
	if err := errors.Join(errs[:]...); err != nil {
		return layout{}, fmt.Errorf("quichook: the linked quic-go is not laid out as %s: %s", pinned, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return l, nil
}

// field returns the offset of t's own field name, which must be of type want.
func field(t reflect.Type, name string, want reflect.Type) (uintptr, error) {
	if t.Kind() != reflect.Struct {
		return 0, fmt.Errorf("%v is no struct", t)
	}
	f, ok := t.FieldByName(name)
	if !ok || len(f.Index) != 1 {
		return 0, fmt.Errorf("%v has no field %s", t, name)
	}
	if f.Type != want {
		return 0, fmt.Errorf("%v.%s is a %v, want %v", t, name, f.Type, want)
	}
	return f.Offset, nil
}

// checkConstructor compares the server's constructor, whose type is also that of
// a field of the listener, with serverFunc. The client's returns the same
// struct.
func (s shape) checkConstructor() error {
	if s.listener.Kind() != reflect.Struct {
		return fmt.Errorf("%v is no struct", s.listener)
	}
	server, ok := s.listener.FieldByName("baseServer")
	if !ok || server.Type.Kind() != reflect.Pointer || server.Type.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("%v has no baseServer", s.listener)
	}
	f, ok := server.Type.Elem().FieldByName("newConn")
	if !ok || f.Type.Kind() != reflect.Func {
		return fmt.Errorf("%v has no function newConn", server.Type)
	}
	return sameFunc(f.Type, reflect.TypeFor[serverFunc](), s.conn)
}

// sameFunc compares the function type got with ours, in which any stands for an
// interface and unsafe.Pointer for a pointer that cannot be named here.
func sameFunc(got, ours, conn reflect.Type) error {
	if got.NumIn() != ours.NumIn() || got.NumOut() != ours.NumOut() || got.IsVariadic() != ours.IsVariadic() {
		return fmt.Errorf("newConn is a %v, want %d parameters and %d results", got, ours.NumIn(), ours.NumOut())
	}
	for i := range got.NumIn() {
		g, o := got.In(i), ours.In(i)
		switch {
		case g == o:
		// any and a named interface with methods differ in their first word (type
		// or itab), but both are two pointers, and we only pass them on.
		case o == reflect.TypeFor[any]() && g.Kind() == reflect.Interface:
		case o == reflect.TypeFor[unsafe.Pointer]() && g.Kind() == reflect.Pointer:
		default:
			return fmt.Errorf("parameter %d of newConn is a %v, want %v", i, g, o)
		}
	}
	out := got.Out(0)
	if out.Kind() != reflect.Pointer || out.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("newConn returns a %v, want a pointer to a struct", out)
	}
	// The struct embeds a pathReceiver, which embeds the *Conn.
	f, ok := out.Elem().FieldByName("Conn")
	if !ok || f.Type != reflect.PointerTo(conn) || len(f.Index) != 2 {
		return fmt.Errorf("%v does not hold a %v as it should", out, reflect.PointerTo(conn))
	}
	if at := out.Elem().Field(f.Index[0]).Offset + f.Offset; at != unsafe.Offsetof(wrappedConn{}.conn) {
		return fmt.Errorf("%v holds its Conn at %d, want %d", out, at, unsafe.Offsetof(wrappedConn{}.conn))
	}
	return nil
}
