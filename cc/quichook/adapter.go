package quichook

import (
	"github.com/quic-go/quic-go/internal/congestion"
	"github.com/quic-go/quic-go/internal/monotime"
	"github.com/quic-go/quic-go/internal/protocol"
	"github.com/quic-go/quic-go/internal/utils"
)

// adapter gives a Controller the shape quic-go wants, and keeps the figures of
// quic.ConnectionStats that quic-go leaves to its controller.
type adapter struct {
	c     Controller
	stats *utils.ConnectionStats
}

var _ congestion.SendAlgorithmWithDebugInfos = (*adapter)(nil)

func newAdapter(c Controller, stats *utils.ConnectionStats) *adapter {
	a := &adapter{c: c, stats: stats}
	a.publishWindow()
	return a
}

func (a *adapter) publishWindow() { a.stats.CongestionWindow.Store(uint64(a.c.Window())) }

func (a *adapter) OnPacketSent(now monotime.Time, inFlight protocol.ByteCount, pn protocol.PacketNumber, size protocol.ByteCount, ackEliciting bool) {
	a.c.OnPacketSent(int64(now), int64(inFlight), int64(pn), int64(size), ackEliciting)
}

// MaybeExitSlowStart is called by quic-go once for an ACK, right after the RTT
// sample.
func (a *adapter) MaybeExitSlowStart() { a.c.OnAckBegin() }

func (a *adapter) OnPacketAcked(pn protocol.PacketNumber, size, priorInFlight protocol.ByteCount, now monotime.Time) {
	a.c.OnPacketAcked(int64(now), int64(pn), int64(size), int64(priorInFlight))
	a.publishWindow()
}

// OnCongestionEvent is called by quic-go for each lost packet, and with a size
// of 0 for an ECN mark. Like quic-go's own controller it counts both as lost.
func (a *adapter) OnCongestionEvent(pn protocol.PacketNumber, size, priorInFlight protocol.ByteCount) {
	a.stats.PacketsLost.Add(1)
	a.stats.BytesLost.Add(uint64(size))
	a.c.OnPacketLost(int64(pn), int64(size), int64(priorInFlight))
	a.publishWindow()
}

func (a *adapter) OnSpuriousLoss(pn protocol.PacketNumber) {
	a.c.OnSpuriousLoss(int64(pn))
	a.publishWindow()
}

// OnRetransmissionTimeout is never called by quic-go v0.65.0: a controller has
// to detect persistent congestion itself.
func (a *adapter) OnRetransmissionTimeout(bool) {}

func (a *adapter) SetMaxDatagramSize(size protocol.ByteCount) {
	a.c.SetMaxDatagramSize(int64(size))
	a.publishWindow()
}

func (a *adapter) CanSend(inFlight protocol.ByteCount) bool { return a.c.CanSend(int64(inFlight)) }

func (a *adapter) HasPacingBudget(now monotime.Time) bool { return a.c.HasPacingBudget(int64(now)) }

func (a *adapter) TimeUntilSend(inFlight protocol.ByteCount) monotime.Time {
	return monotime.Time(a.c.NextSend(int64(inFlight)))
}

func (a *adapter) GetCongestionWindow() protocol.ByteCount { return protocol.ByteCount(a.c.Window()) }

func (a *adapter) InSlowStart() bool { return a.c.InSlowStart() }

func (a *adapter) InRecovery() bool { return a.c.InRecovery() }
