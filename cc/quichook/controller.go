package quichook

import (
	"time"

	"github.com/quic-go/quic-go"
)

// Controller is what a congestion controller has to do for quic-go. It is
// spelled with built-in types only and as an alias, so that the package that
// implements it need not import this one. Times are nanoseconds of quic-go's
// monotonic clock, sizes bytes of UDP payload.
//
// All calls for one connection come from its run loop: one at a time, in order.
type Controller = interface {
	// OnPacketSent reports a packet handed to the network. bytesInFlight includes
	// it if it is ack-eliciting. Path probes are not reported.
	OnPacketSent(now, bytesInFlight, packetNumber, size int64, ackEliciting bool)
	// OnAckBegin is called when an ACK newly acknowledged its largest packet
	// number and something ack-eliciting, after the RTT estimate took the sample
	// and before the ACK's packets are reported.
	OnAckBegin()
	// OnPacketAcked reports one newly acknowledged packet that was in flight, in
	// ascending order within one ACK. priorInFlight is what was in flight before
	// the ACK.
	OnPacketAcked(now, packetNumber, size, priorInFlight int64)
	// OnPacketLost reports a packet declared lost; a size of 0 stands for an ECN
	// congestion mark. Lost path MTU probes are not reported. Losses of an ACK
	// are reported before its acknowledged packets.
	OnPacketLost(packetNumber, size, priorInFlight int64)
	// OnSpuriousLoss reports that a packet declared lost has arrived after all.
	OnSpuriousLoss(packetNumber int64)
	CanSend(bytesInFlight int64) bool
	Window() int64
	HasPacingBudget(now int64) bool
	// NextSend is when the pacer lets the next packet go; 0 means at once.
	NextSend(bytesInFlight int64) int64
	SetMaxDatagramSize(size int64)
	InSlowStart() bool
	InRecovery() bool
}

// RTT is quic-go's own estimate for the current path; safe for concurrent use.
// Before the first sample each value is an assumption (100 ms, or what an
// address validation token remembered).
type RTT = interface {
	MinRTT() time.Duration
	LatestRTT() time.Duration
	SmoothedRTT() time.Duration
}

// Path describes the path a controller is wanted for.
type Path struct {
	Conn            *quic.Conn // not yet running, unless Migrated
	Client          bool
	Migrated        bool  // not the connection's first path
	MaxDatagramSize int64 // bytes
	RTT             RTT
}

// Provider is implemented by the qlogwriter.Trace that quic.Config.Tracer
// returns for a connection which wants a controller of its own.
type Provider interface {
	// NewController returns the controller for a new path. On a connection's
	// first path, nil leaves quic-go's own controller there for good. It is
	// called from the connection's run loop, or before that has started, and must
	// not block; Path.Conn may be kept, and asked for Context and RemoteAddr.
	NewController(Path) Controller
}
