package quichook

import (
	"context"
	"crypto/tls"
	"time"
	"unsafe"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/internal/handshake"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
	"github.com/quic-go/quic-go/qlogwriter"
)

// The types of quic-go's two constructors. Unexported types of quic-go cannot be
// named here: any stands for one of its interfaces (sendConn, connRunner) and
// unsafe.Pointer for one of its pointers (*statelessResetter). Such values are
// passed on untouched and never used, so only their size and what the garbage
// collector sees of them matter, and those are the same.
type (
	serverFunc = func(
		ctx context.Context, cancel context.CancelCauseFunc, conn, runner any,
		origDestConnID, retrySrcConnID, clientDestConnID, destConnID, srcConnID protocol.ConnectionID,
		connIDs quic.ConnectionIDGenerator, resetter unsafe.Pointer,
		conf *quic.Config, tlsConf *tls.Config, tokens *handshake.TokenGenerator,
		addressValidated bool, rtt time.Duration,
		trace qlogwriter.Trace, logger utils.Logger, version protocol.Version,
	) *wrappedConn

	clientFunc = func(
		ctx context.Context, conn, runner any,
		destConnID, srcConnID protocol.ConnectionID,
		connIDs quic.ConnectionIDGenerator, resetter unsafe.Pointer,
		conf *quic.Config, tlsConf *tls.Config,
		initialPacketNumber protocol.PacketNumber, enable0RTT, hasNegotiatedVersion bool,
		trace qlogwriter.Trace, logger utils.Logger, version protocol.Version,
	) *wrappedConn
)

// wrappedConn mirrors the first fields of quic-go's struct of that name; values
// of it are made by quic-go only.
type wrappedConn struct {
	_    unsafe.Pointer // testHooks
	conn *quic.Conn
}

//go:linkname newConnection github.com/quic-go/quic-go.newConnection
var newConnection serverFunc

//go:linkname newClientConnection github.com/quic-go/quic-go.newClientConnection
var newClientConnection clientFunc
