package quichook

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quic-go/quic-go/internal/utils"
)

// recorder is a Controller that writes down what it is told.
type recorder struct {
	calls  []string
	window int64
}

func (r *recorder) note(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func (r *recorder) OnPacketSent(now, inFlight, pn, size int64, ackEliciting bool) {
	r.note("sent %d %d %d %d %v", now, inFlight, pn, size, ackEliciting)
}
func (r *recorder) OnAckBegin() { r.note("ack") }
func (r *recorder) OnPacketAcked(now, pn, size, prior int64) {
	r.note("acked %d %d %d %d", now, pn, size, prior)
	r.window += size
}

func (r *recorder) OnPacketLost(pn, size, prior int64) {
	r.note("lost %d %d %d", pn, size, prior)
	r.window -= size
}
func (r *recorder) OnSpuriousLoss(pn int64)        { r.note("spurious %d", pn); r.window++ }
func (r *recorder) CanSend(inFlight int64) bool    { return inFlight < r.window }
func (r *recorder) Window() int64                  { return r.window }
func (r *recorder) HasPacingBudget(now int64) bool { return now >= 7 }
func (r *recorder) NextSend(inFlight int64) int64  { return inFlight + 1 }
func (r *recorder) SetMaxDatagramSize(size int64)  { r.note("size %d", size); r.window = 10 * size }
func (r *recorder) InSlowStart() bool              { return r.window < 5000 }
func (r *recorder) InRecovery() bool               { return r.window > 5000 }

func TestAdapterPassesEverythingOn(t *testing.T) {
	r := &recorder{window: 4000}
	var stats utils.ConnectionStats
	a := newAdapter(r, &stats)
	window := func(want uint64) {
		t.Helper()
		if got := stats.CongestionWindow.Load(); got != want || uint64(a.GetCongestionWindow()) != want {
			t.Errorf("window %d (%d), want %d", got, a.GetCongestionWindow(), want)
		}
	}
	window(4000)
	a.OnPacketSent(1, 2, 3, 4, true)
	a.OnPacketSent(5, 6, 7, 8, false)
	a.MaybeExitSlowStart()
	a.OnPacketAcked(3, 1000, 5000, 9)
	window(5000)
	a.OnCongestionEvent(4, 200, 5000)
	window(4800)
	a.OnCongestionEvent(5, 0, 5000) // an ECN mark
	a.OnSpuriousLoss(4)
	window(4801)
	a.OnRetransmissionTimeout(true)
	want := []string{
		"sent 1 2 3 4 true", "sent 5 6 7 8 false", "ack", "acked 9 3 1000 5000",
		"lost 4 200 5000", "lost 5 0 5000", "spurious 4",
	}
	if !slices.Equal(r.calls, want) {
		t.Errorf("got %q\nwant %q", r.calls, want)
	}
	// As quic-go's own controller counts.
	if p, b := stats.PacketsLost.Load(), stats.BytesLost.Load(); p != 2 || b != 200 {
		t.Errorf("%d packets and %d bytes lost, want 2 and 200", p, b)
	}
	if !a.InSlowStart() || a.InRecovery() || !a.CanSend(4800) || a.CanSend(4801) {
		t.Error("state is not passed on")
	}
	if a.HasPacingBudget(6) || !a.HasPacingBudget(7) || a.TimeUntilSend(41) != 42 {
		t.Error("pacing is not passed on")
	}
	a.SetMaxDatagramSize(1400)
	window(14000)
	if a.InSlowStart() || !a.InRecovery() {
		t.Error("state is not passed on")
	}
}

// silent is a recorder without a memory.
type silent struct{ recorder }

func (*silent) OnPacketSent(_, _, _, _ int64, _ bool) {}
func (*silent) OnPacketAcked(_, _, _, _ int64)        {}
func (*silent) OnPacketLost(_, _, _ int64)            {}
func (*silent) OnAckBegin()                           {}
func (*silent) OnSpuriousLoss(int64)                  {}

func TestAdapterDoesNotAllocate(t *testing.T) {
	a := newAdapter(&silent{}, &utils.ConnectionStats{})
	if n := testing.AllocsPerRun(100, func() {
		a.OnPacketSent(1, 2, 3, 4, true)
		a.MaybeExitSlowStart()
		a.OnPacketAcked(3, 1000, 5000, 9)
		a.OnCongestionEvent(4, 200, 5000)
		a.OnSpuriousLoss(4)
		_ = a.CanSend(1)
		_ = a.HasPacingBudget(1)
		_ = a.TimeUntilSend(1)
	}); n != 0 {
		t.Errorf("%v allocations for a packet", n)
	}
}
