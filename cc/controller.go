package cc

import (
	"fmt"
	"time"
)

// Controller decides how much one connection may have in flight, and when its
// next packet may leave. It is driven by the sender of that connection.
//
// All methods are called from one goroutine, except Snapshot, which any
// goroutine may call at any time. Times are nanoseconds on a monotonic scale
// whose zero means nothing (values may be negative); sizes are bytes of UDP
// payload. A Controller never reads a clock and never blocks.
//
// The methods other than Snapshot use built-in types only, so that the seam to
// the transport (package quichook) can state the same set without importing
// this package.
type Controller interface {
	// OnPacketSent reports a packet handed to the network. bytesInFlight
	// includes it if it is ack-eliciting; packets that are not are never
	// charged to the window or to the pacer (RFC 9002 section 7).
	OnPacketSent(now, bytesInFlight, packetNumber, size int64, ackEliciting bool)
	// OnAckBegin is called once for an ACK that brought a new RTT sample, after
	// RTTSource was updated and before its packets are reported.
	OnAckBegin()
	// OnPacketAcked reports one newly acknowledged packet. priorInFlight is what
	// was in flight before the ACK was processed.
	OnPacketAcked(now, packetNumber, size, priorInFlight int64)
	// OnPacketLost reports a packet declared lost; a size of 0 stands for an ECN
	// congestion mark (RFC 9002 section 7.1).
	OnPacketLost(packetNumber, size, priorInFlight int64)
	// OnSpuriousLoss reports that a packet declared lost has arrived after all.
	OnSpuriousLoss(packetNumber int64)
	// CanSend says whether the window has room.
	CanSend(bytesInFlight int64) bool
	// Window is the congestion window in bytes.
	Window() int64
	// HasPacingBudget says whether the pacer lets a full packet go now.
	HasPacingBudget(now int64) bool
	// NextSend is the time at which the pacer lets the next packet go; 0 means
	// at once.
	NextSend(bytesInFlight int64) int64
	// SetMaxDatagramSize reports that path MTU discovery changed the size of a
	// full packet.
	SetMaxDatagramSize(size int64)
	InSlowStart() bool
	InRecovery() bool

	// Snapshot copies the controller's state as of its last update.
	Snapshot() Snapshot
}

// RTTSource is the transport's own RTT estimate (RFC 9002 section 5). Its
// MinRTT never expires on one path; it is not our baseRTT.
type RTTSource interface {
	MinRTT() time.Duration
	LatestRTT() time.Duration
	SmoothedRTT() time.Duration
}

// Law names a control law.
type Law string

const (
	// LawImproved is the production law: the improved FAST algorithm with what a
	// paced QUIC sender on real paths needs.
	LawImproved Law = "improved"
	// LawStatic is Algorithm 1, the original FAST with a fixed alpha and gamma.
	LawStatic Law = "static"
	// LawReno leaves the transport's own controller (NewReno) in place; New does
	// not make it.
	LawReno Law = "reno"
)

// Laws lists every law by name, the default first.
func Laws() []Law { return []Law{LawImproved, LawStatic, LawReno} }

// ParseLaw returns the law of that name, or an error that lists the names.
func ParseLaw(name string) (Law, error) {
	for _, l := range Laws() {
		if string(l) == name {
			return l, nil
		}
	}
	return "", fmt.Errorf("cc: unknown law %q: must be one of %v", name, Laws())
}

// New returns a controller running law for one path of one connection. It
// returns nil for LawReno, which stands for the transport's own controller, and
// panics on a law that ParseLaw would refuse.
func New(law Law, maxDatagramSize int64, rtt RTTSource) Controller {
	switch law {
	case LawImproved:
		return NewImproved(DefaultParams(), maxDatagramSize, rtt)
	case LawStatic:
		return NewStatic(DefaultStaticParams(), maxDatagramSize, rtt)
	case LawReno:
		return nil
	}
	panic(fmt.Sprintf("cc: unknown law %q", law))
}
