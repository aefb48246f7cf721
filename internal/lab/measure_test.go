package lab

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fastpacs/cc"
)

func small(mbps float64, rtt, buffer, duration time.Duration) Scenario {
	return Scenario{Name: "test", Path: path(mbps, rtt, buffer), Duration: duration}
}

var reno = Options{Law: cc.LawReno, Seed: 1}

func TestRenoFillsACleanLink(t *testing.T) {
	const rtt = 40 * time.Millisecond
	r := Run(t, small(20, rtt, rtt, 20*time.Second), reno)
	if !r.Survived || r.Utilization < 0.99 || r.Utilization > 1.001 {
		t.Errorf("not full: %v", &r)
	}
	// the sawtooth stays within the buffer and the packet in service
	if r.MeanQueueMs < 5 || r.PeakStartupQueueMs > 40.6 || r.P95QueueMs > 40.75 {
		t.Errorf("queue not that of Reno in a buffer of 40 ms: %v", &r)
	}
	// a full packet carries less than 1280 bytes of data and takes 1308 on the wire
	if g := r.Extra["goodput_mbps"]; g < 20*0.95 || g > 20*1280./1308 {
		t.Errorf("goodput %v Mb/s at full rate", g)
	}
	if !(r.TimeTo90S < 1) || r.Jain != 1 || r.Share.Exists() {
		t.Errorf("figures: %v", &r)
	}
}

// AIMD that adds 1 packet a round and cuts to beta has a mean window of
// sqrt((1+beta)/(2*(1-beta)*p)) packets at a loss rate of p (Mathis et al. 1997
// with beta 1/2); quic-go's Reno has beta 0.7.
func TestRenoUnderRandomLossIsNearMathis(t *testing.T) {
	const rtt, beta = 100 * time.Millisecond, 0.7
	s := small(50, rtt, rtt, 2*time.Minute)
	s.Path.Loss = 0.01
	s.From = 20 * time.Second
	r := Run(t, s, reno)
	p := float64(r.Extra["random_loss_pct"]) / 100
	if p < 0.007 || p > 0.013 {
		t.Errorf("random loss %v, want about 0.01", p)
	}
	want := math.Sqrt((1+beta)/(2*(1-beta)*p)) * 1280 * 8 / rtt.Seconds() / 1e6
	if got := float64(r.Extra["goodput_mbps"]); got < 0.8*want || got > 1.2*want {
		t.Errorf("goodput %.2f Mb/s, want %.2f within 20 %%", got, want)
	}
	if r.LossPct != 0 {
		t.Errorf("random loss counted as the queue's: %v", &r)
	}
}

func TestSeedDecides(t *testing.T) {
	s := small(10, 20*time.Millisecond, 20*time.Millisecond, 10*time.Second)
	s.Path.Loss = 0.02
	run := func(seed uint64) Result { return Run(t, s, Options{Law: cc.LawReno, Seed: seed}) }
	first, again, other := run(1), run(1), run(2)
	if d := math.Abs(float64(first.Utilization - again.Utilization)); d > 0.005 {
		t.Errorf("one seed, two results:\n%v\n%v", &first, &again)
	}
	if first.Utilization == other.Utilization {
		t.Errorf("two seeds, one result:\n%v\n%v", &first, &other)
	}
}

func TestFlowsJoinAndLeave(t *testing.T) {
	const at = 4 * time.Second
	s := small(10, 20*time.Millisecond, 20*time.Millisecond, 3*at)
	s.Flows = []Flow{{Stop: 2 * at}, {Start: at}}
	s.From, s.To = at, 2*at
	s.Extra = func(r *Record) map[string]Figure {
		return map[string]Figure{
			"0 alone": Figure(r.Goodput(0, at/2, at)), "0 after": Figure(r.Goodput(0, 2*at+time.Second, 3*at)),
			"1 before": Figure(r.Goodput(1, 0, at)), "1 alone": Figure(r.Goodput(1, 2*at+time.Second, 3*at)),
		}
	}
	r := Run(t, s, reno)
	if !r.Survived || !(r.Extra["0 alone"] > 8e6) || r.Extra["0 after"] != 0 || r.Extra["1 before"] != 0 || !(r.Extra["1 alone"] > 8e6) {
		t.Errorf("%v", &r)
	}
}

func TestObjectsAreTimed(t *testing.T) {
	const rtt, size = 50 * time.Millisecond, 100_000
	s := small(100, rtt, rtt, 10*time.Second)
	s.Flows = []Flow{{Object: size, Pause: time.Second}}
	s.Extra = shortFigures
	r := Run(t, s, reno)
	ideal := Figure(rtt.Seconds() + size*8/100e6)
	if n := r.Extra["objects"]; n < 8 || n > 10 {
		t.Errorf("%v objects in 10 s", n)
	}
	if later := r.Extra["later_object_s"]; later < ideal || later > 1.2*ideal {
		t.Errorf("an object takes %v s, ideally %v s", later, ideal)
	}
	if first := r.Extra["first_object_s"]; first < ideal+Figure(rtt.Seconds()) {
		t.Errorf("the first object takes %v s: less than a slow start", first)
	}
}

func TestDeadConnectionIsTold(t *testing.T) {
	s := small(10, 20*time.Millisecond, 20*time.Millisecond, 12*time.Second)
	s.Events = []Event{{2 * time.Second, "cut", func(p *Path) { p.SetDown(true) }}}
	r := Run(t, s, reno)
	if r.Survived || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], errStalled.Error()) {
		t.Errorf("a link that stays down: %v", &r)
	}
	s.Duration = 45 * time.Second
	r = Run(t, s, reno)
	if r.Survived || len(r.Errors) != 1 || !strings.Contains(r.Errors[0], "timeout") {
		t.Errorf("beyond the idle timeout: %v", &r)
	}
	if v := r.Bars[0]; v.Metric != "survived" || v.Pass || r.Pass() {
		t.Errorf("verdict %v", v)
	}
}

func TestEventsChangeThePath(t *testing.T) {
	const at = 5 * time.Second
	s := small(20, 20*time.Millisecond, 20*time.Millisecond, 2*at)
	s.Events = []Event{
		{at, "slower", func(p *Path) { p.SetRate(5e6) }},
		{at, "farther", func(p *Path) { p.SetRTT(60 * time.Millisecond) }},
	}
	var trace strings.Builder
	o := reno
	o.Trace, o.TraceEvery = &trace, time.Second
	s.Extra = func(r *Record) map[string]Figure {
		return map[string]Figure{
			"fast": Figure(r.TotalGoodput(2*time.Second, at)), "slow": Figure(r.TotalGoodput(at+2*time.Second, 2*at)),
			"rtt": Figure(r.last[0].RTT.Seconds()), "queue": Figure(r.MeanQueueMs(2*at-time.Second, 2*at) / 1e3),
		}
	}
	r := Run(t, s, o)
	if x := r.Extra; !(x["fast"] > 18e6 && x["slow"] > 4e6 && x["slow"] < 5e6 && math.Abs(float64(x["rtt"]-x["queue"]-0.06)) < 0.02) {
		t.Errorf("%v", &r)
	}
	lines := strings.Split(strings.TrimSpace(trace.String()), "\n")
	if len(lines) != 12 || !strings.Contains(lines[5], "-- slower") || !strings.Contains(lines[6], "-- farther") || !strings.Contains(lines[11], "10.00 q") {
		t.Errorf("trace:\n%s", trace.String())
	}
}

// fixedWindow keeps its window, sends what it allows at once, and notes times.
type fixedWindow struct {
	window int64

	mu    sync.Mutex
	times []int64
}

func (f *fixedWindow) OnPacketSent(now, _, _, _ int64, _ bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.times = append(f.times, now)
}
func (f *fixedWindow) OnAckBegin()                    {}
func (f *fixedWindow) OnPacketAcked(_, _, _, _ int64) {}
func (f *fixedWindow) OnPacketLost(_, _, _ int64)     {}
func (f *fixedWindow) OnSpuriousLoss(int64)           {}
func (f *fixedWindow) CanSend(inFlight int64) bool    { return inFlight < f.window }
func (f *fixedWindow) Window() int64                  { return f.window }
func (f *fixedWindow) HasPacingBudget(int64) bool     { return true }
func (f *fixedWindow) NextSend(int64) int64           { return 0 }
func (f *fixedWindow) SetMaxDatagramSize(int64)       {}
func (f *fixedWindow) InSlowStart() bool              { return false }
func (f *fixedWindow) InRecovery() bool               { return false }
func (f *fixedWindow) Snapshot() cc.Snapshot          { return cc.Snapshot{Window: f.window, Alpha: 7} }

func TestOwnControllers(t *testing.T) {
	const rtt, packets = 100 * time.Millisecond, 50
	s := small(100, rtt, rtt, 10*time.Second)
	s.Flows = make([]Flow, 2)
	made := make(map[int][]*fixedWindow)
	var mu sync.Mutex
	r := Run(t, s, Options{Label: "fixed", New: func(flow int, size int64, _ cc.RTTSource) cc.Controller {
		mu.Lock()
		defer mu.Unlock()
		f := &fixedWindow{window: packets * size}
		made[flow] = append(made[flow], f)
		return f
	}})
	if len(made) != 2 || len(made[0]) != 2 || len(made[1]) != 2 {
		t.Fatalf("controllers made: %v", made)
	}
	// a window a RTT, less the frames' overhead, and no queue
	want := 2 * packets * 1280 * 8 / rtt.Seconds() / 1e6
	if got := float64(r.Extra["goodput_mbps"]); got < 0.95*want || got > want {
		t.Errorf("goodput %.2f Mb/s, want %.2f", got, want)
	}
	if r.CC != "fixed" || r.Extra["alpha_packets"] != 14 {
		t.Errorf("%v", &r)
	}
	// the controllers' clock begins between 1 and 2 minutes
	times := made[0][1].times
	if first, last := times[0], times[len(times)-1]; first < int64(time.Minute) || first > int64(2*time.Minute) || last-first < int64(9*time.Second) {
		t.Errorf("controllers saw times from %v to %v", time.Duration(first), time.Duration(last))
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Second, func() { cancel(why) })
		start := time.Now()
		_, err := Measure(ctx, small(10, 20*time.Millisecond, 20*time.Millisecond, time.Hour), reno)
		if !errors.Is(err, why) || time.Since(start) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestMeasureRefuses(t *testing.T) {
	for field, change := range map[string]func(*Scenario){
		"Path.Rate":      func(s *Scenario) { s.Path.Rate = 0 },
		"Duration":       func(s *Scenario) { s.Duration = 0 },
		"From, To":       func(s *Scenario) { s.To = 2 * s.Duration },
		"Flows[0].Start": func(s *Scenario) { s.Flows = []Flow{{Start: time.Hour}} },
		"Flows[0].Stop":  func(s *Scenario) { s.Flows = []Flow{{Start: 2, Stop: 1}} },
		"Flows[0].RTT":   func(s *Scenario) { s.Flows = []Flow{{RTT: 1}} },
		"Events":         func(s *Scenario) { s.Events = []Event{{At: 2}, {At: 1}} },
		"Jitter":         func(s *Scenario) { s.Path.Jitter = time.Hour },
	} {
		s := small(10, time.Second, time.Second, time.Minute)
		change(&s)
		if _, err := Measure(t.Context(), s, reno); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, s := range Scenarios() {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
}
