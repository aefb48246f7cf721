package quichook

import (
	"context"
	"crypto/tls"
	"reflect"
	"runtime/debug"
	"time"
	"unsafe"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/internal/ackhandler"
	"github.com/quic-go/quic-go/internal/congestion"
	"github.com/quic-go/quic-go/internal/handshake"
	"github.com/quic-go/quic-go/internal/monotime"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
	"github.com/quic-go/quic-go/qlogwriter"
)

var (
	errHook error  // why the hook is not in place
	places  layout // valid if errHook is nil
)

// Err says why the hook is not in place; nil means that it is.
func Err() error { return errHook }

func init() {
	if errHook = checkLinked(); errHook == nil {
		wrapConstructors()
	}
}

func checkLinked() (err error) {
	info, _ := debug.ReadBuildInfo() // nil if not built by the go command
	if err = checkVersion(info); err != nil {
		return err
	}
	if err = checkOrigin("newConnection", newConnection); err != nil {
		return err
	}
	if err = checkOrigin("newClientConnection", newClientConnection); err != nil {
		return err
	}
	places, err = linkedShape().check()
	return err
}

func wrapConstructors() {
	server, client := newConnection, newClientConnection
	newConnection = func(
		ctx context.Context, cancel context.CancelCauseFunc, conn, runner any,
		origDest, retrySrc, clientDest, dest, src protocol.ConnectionID,
		connIDs quic.ConnectionIDGenerator, resetter unsafe.Pointer,
		conf *quic.Config, tlsConf *tls.Config, tokens *handshake.TokenGenerator,
		validated bool, rtt time.Duration,
		trace qlogwriter.Trace, logger utils.Logger, version protocol.Version,
	) *wrappedConn {
		w := server(ctx, cancel, conn, runner, origDest, retrySrc, clientDest, dest, src,
			connIDs, resetter, conf, tlsConf, tokens, validated, rtt, trace, logger, version)
		install(w.conn, trace, false, conf)
		return w
	}
	newClientConnection = func(
		ctx context.Context, conn, runner any, dest, src protocol.ConnectionID,
		connIDs quic.ConnectionIDGenerator, resetter unsafe.Pointer,
		conf *quic.Config, tlsConf *tls.Config,
		firstPN protocol.PacketNumber, zeroRTT, negotiated bool,
		trace qlogwriter.Trace, logger utils.Logger, version protocol.Version,
	) *wrappedConn {
		w := client(ctx, conn, runner, dest, src,
			connIDs, resetter, conf, tlsConf, firstPN, zeroRTT, negotiated, trace, logger, version)
		install(w.conn, trace, true, conf)
		return w
	}
}

// install fits c, whose run loop has not started, with the controller that trace
// provides, if it does.
func install(c *quic.Conn, trace qlogwriter.Trace, client bool, conf *quic.Config) {
	provider, ok := trace.(Provider)
	if !ok {
		return
	}
	at := func(offset uintptr) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(c), offset) }
	slot := (*ackhandler.SentPacketHandler)(at(places.sentPacketHandler))
	if reflect.TypeOf(*slot) != places.handler {
		return // not what check saw: quic-go would have to choose between several
	}
	size := protocol.ByteCount(conf.InitialPacketSize)
	if size == 0 {
		size = protocol.InitialPacketSize
	}
	h := &pathHandler{
		SentPacketHandler: *slot,
		provider:          provider,
		path:              Path{Conn: c, Client: client, RTT: *(**utils.RTTStats)(at(places.rttStats))},
		stats:             (*utils.ConnectionStats)(at(places.connStats)),
	}
	if h.fit(size) {
		*slot = h
	}
}

// pathHandler passes everything on to quic-go's handler, and asks for a new
// controller when the path has changed: quic-go starts there afresh with its
// own.
type pathHandler struct {
	ackhandler.SentPacketHandler
	provider Provider
	path     Path
	stats    *utils.ConnectionStats
}

// fit puts the provider's controller in the place of quic-go's.
func (h *pathHandler) fit(size protocol.ByteCount) bool {
	h.path.MaxDatagramSize = int64(size)
	c := h.provider.NewController(h.path)
	if c == nil {
		return false
	}
	// The second word of an interface that holds a pointer is that pointer.
	handler := (*[2]unsafe.Pointer)(unsafe.Pointer(&h.SentPacketHandler))[1]
	*(*congestion.SendAlgorithmWithDebugInfos)(unsafe.Add(handler, places.congestion)) = newAdapter(c, h.stats)
	return true
}

func (h *pathHandler) MigratedPath(now monotime.Time, size protocol.ByteCount) {
	h.SentPacketHandler.MigratedPath(now, size)
	h.path.Migrated = true
	h.fit(size)
}
