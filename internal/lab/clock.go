package lab

import (
	"math/rand/v2"
	"sync"
	"time"

	"fastpacs/cc"
)

// clock gives the controllers of a run one time scale that depends on the seed
// alone. quic-go's begins when the process started, in real time even within a
// synctest bubble; what a controller does at set times, such as drains, would
// fall at other moments of the scenario in every run.
type clock struct {
	t0    time.Time     // start of the run
	begin time.Duration // what the clock shows then

	once  sync.Once
	shift int64 // from quic-go's scale to ours
}

func newClock(t0 time.Time, seed uint64) *clock {
	rnd := rand.New(rand.NewPCG(seed, 60))
	return &clock{t0: t0, begin: time.Minute + time.Duration(rnd.Int64N(int64(time.Minute)))}
}

// fit puts a controller on the clock; nil stays nil.
func (c *clock) fit(ctl cc.Controller) cc.Controller {
	if ctl == nil {
		return nil
	}
	return &clocked{ctl, c}
}

// ours translates a moment of quic-go's present.
func (c *clock) ours(now int64) int64 {
	c.once.Do(func() { c.shift = int64(time.Since(c.t0)+c.begin) - now })
	return now + c.shift
}

// clocked is a controller on a clock of its own.
type clocked struct {
	cc.Controller
	clock *clock
}

func (c *clocked) OnPacketSent(now, bytesInFlight, packetNumber, size int64, ackEliciting bool) {
	c.Controller.OnPacketSent(c.clock.ours(now), bytesInFlight, packetNumber, size, ackEliciting)
}

func (c *clocked) OnPacketAcked(now, packetNumber, size, priorInFlight int64) {
	c.Controller.OnPacketAcked(c.clock.ours(now), packetNumber, size, priorInFlight)
}

func (c *clocked) HasPacingBudget(now int64) bool {
	return c.Controller.HasPacingBudget(c.clock.ours(now))
}

func (c *clocked) NextSend(bytesInFlight int64) int64 {
	t := c.Controller.NextSend(bytesInFlight)
	if t == 0 {
		return 0 // at once
	}
	return t - c.clock.shift
}
