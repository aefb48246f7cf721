package lab

import (
	"fmt"
	"math/rand/v2"
	"time"

	"fastpacs/cc"
)

const mega = 1e6

// fullPacket is a full packet on the wire, for buffers given in packets.
const fullPacket = 1280 + headerBytes

// path is a clean path with a buffer of the given time at its rate.
func path(mbps float64, rtt, buffer time.Duration) PathConfig {
	return PathConfig{Rate: mbps * mega, RTT: rtt, Buffer: int(mbps * mega * buffer.Seconds() / 8)}
}

// flows returns n flows of the law under test that start some time apart.
func flows(n int, apart time.Duration) []Flow {
	f := make([]Flow, n)
	for i := range f {
		f[i].Start = time.Duration(i) * apart
	}
	return f
}

// Scenarios returns all named scenarios with the bars of the production law.
func Scenarios() []Scenario {
	const ms = time.Millisecond
	minute := time.Minute
	return []Scenario{
		{
			Name: "wan", About: "100 Mb/s, 80 ms, buffer 1 BDP",
			Path: path(100, 80*ms, 80*ms), Duration: minute,
			Bars: []Bar{
				{"utilization", AtLeast, 0.97},
				{"mean_queue_ms", AtMost, 5},
				{"drops", AtMost, 0},
				{"time_to_90_s", AtMost, 1},
				{"peak_startup_queue_ms", AtMost, 10},
			},
		},
		{
			Name: "lan", About: "100 Mb/s, 1 ms, buffer 50 ms",
			Path: path(100, ms, 50*ms), Duration: minute,
			Bars: []Bar{{"utilization", AtLeast, 0.97}, {"mean_queue_ms", AtMost, 5}},
		},
		{
			Name: "article", About: "960 Mb/s, 100 ms, 3 flows together, ample buffer",
			Path: path(960, 100*ms, 200*ms), Flows: flows(3, 0), Duration: 10 * time.Second,
			Bars: []Bar{
				{"convergence_s", AtMost, 2},
				{"jain", AtLeast, 0.99},
				{"peak_startup_queue_ms", AtMost, 30},
				{"utilization", AtLeast, 0.97},
				{"queue_vs_equilibrium", AtLeast, 0.8},
				{"queue_vs_equilibrium", AtMost, 1.2},
			},
		},
		{
			Name: "stagger", About: "96 Mb/s, 100 ms, 3 flows 1 s apart, ample buffer",
			Path: path(96, 100*ms, 400*ms), Flows: flows(3, time.Second), Duration: minute,
			Bars: []Bar{{"jain", AtLeast, 0.95}, {"queue_vs_equilibrium", AtMost, 1.3}, {"utilization", AtLeast, 0.95}},
		},
		{
			Name: "join", About: "96 Mb/s, 100 ms, ample buffer, third flow at 20 s, second leaves at 40 s",
			Path:     path(96, 100*ms, 400*ms),
			Flows:    []Flow{{}, {Stop: 40 * time.Second}, {Start: 20 * time.Second}},
			Duration: minute, From: 5 * time.Second, To: minute,
			Bars:  []Bar{{"third_80_s", AtMost, 4}, {"full_after_leave_s", AtMost, 1}},
			Extra: joinFigures,
		},
		lossy("loss01", 0.001, 0.98),
		lossy("loss1", 0.01, 0.96),
		lossy("loss2", 0.02, 0.94),
		{
			Name: "shallow", About: "100 Mb/s, 50 ms, buffer 20 packets",
			Path: PathConfig{Rate: 100 * mega, RTT: 50 * ms, Buffer: 20 * fullPacket}, Duration: minute,
			Bars: []Bar{{"utilization", AtLeast, 0.94}, {"loss_pct", AtMost, 0.7}},
		},
		{
			Name: "bloat", About: "20 Mb/s, 40 ms, buffer 2 s",
			Path: path(20, 40*ms, 2*time.Second), Duration: minute,
			Bars: []Bar{{"utilization", AtLeast, 0.98}, {"p95_queue_ms", AtMost, 10}},
		},
		reroute("reroute-up", 40*ms, 120*ms),
		reroute("reroute-down", 120*ms, 40*ms),
		{
			Name: "rate-step", About: "100 -> 20 Mb/s at 20 s -> 100 Mb/s at 40 s, 80 ms, buffer 1 BDP of 100 Mb/s",
			Path: path(100, 80*ms, 80*ms),
			Events: []Event{
				{stepDown, "rate 20 Mb/s", func(p *Path) { p.SetRate(20 * mega) }},
				{stepUp, "rate 100 Mb/s", func(p *Path) { p.SetRate(100 * mega) }},
			},
			Duration: minute, From: 5 * time.Second, To: minute,
			Bars:  []Bar{{"down_90_s", AtMost, 1.5}, {"up_90_s", AtMost, 1.5}, {"step_loss_pct", AtMost, 2}},
			Extra: rateStepFigures,
		},
		jittery("jitter", "delay varies by 5 ms, in order, anew every 5 ms", PathConfig{Jitter: 5 * ms, JitterEpoch: 5 * ms}),
		jittery("jitter-reorder", "delay of each packet varies by 5 ms, out of order", PathConfig{Jitter: 5 * ms, Reorder: true}),
		jittery("ack-burst", "ACKs arrive in bursts every 10 ms", PathConfig{AckGrain: 10 * ms}),
		{
			Name: "vs-reno", About: "50 Mb/s, 40 ms, buffer 1 BDP, against a Reno flow until 60 s",
			Path:     path(50, 40*ms, 40*ms),
			Flows:    []Flow{{}, {Law: cc.LawReno, Stop: minute}},
			Duration: 75 * time.Second, From: 20 * time.Second, To: minute, Seeds: 5,
			Bars: []Bar{
				{"share", AtLeast, 0.4}, {"share", AtMost, 0.6}, {"low_queue_after_leave_s", AtMost, 5},
			},
			Extra: vsRenoFigures,
		},
		{
			Name: "rtt-mix", About: "100 Mb/s, flows of 20 and 200 ms, buffer 100 ms",
			Path: path(100, 20*ms, 100*ms), Flows: []Flow{{}, {RTT: 200 * ms}}, Duration: minute,
			Bars: []Bar{{"jain", AtLeast, 0.9}},
		},
		{
			Name: "short", About: "100 Mb/s, 80 ms, buffer 1 BDP, objects of 512 KiB with pauses of 1 s",
			Path: path(100, 80*ms, 80*ms), Flows: []Flow{{Object: 512 << 10, Pause: time.Second}},
			Duration: minute, From: 0, To: minute,
			Bars:  []Bar{{"first_object_s", AtMost, 0.6}, {"later_object_ratio", AtMost, 1.25}, {"drops", AtMost, 0}},
			Extra: shortFigures,
		},
		{
			Name: "blackout", About: "50 Mb/s, 40 ms, buffer 80 ms, dead from 20 s to 23 s",
			Path: path(50, 40*ms, 80*ms),
			Events: []Event{
				{linkDies, "link down", func(p *Path) { p.SetDown(true) }},
				{linkReturns, "link up", func(p *Path) { p.SetDown(false) }},
			},
			Duration: 40 * time.Second, From: 25 * time.Second, To: 40 * time.Second,
			Bars:  []Bar{{"back_s", AtMost, 1}},
			Extra: blackoutFigures,
		},
		many("many", 0),
		many("many-stagger", 500*ms),
		{
			Name: "gaps", About: "960 Mb/s, 100 ms, buffer 500 packets: start-up must not tear more than 1000 holes into a stream",
			Path: PathConfig{Rate: 960 * mega, RTT: 100 * ms, Buffer: 500 * fullPacket}, Duration: 20 * time.Second,
			Bars: []Bar{{"utilization", AtLeast, 0.8}},
		},
		{
			Name: "hour", About: "10 Mb/s, 40 ms, buffer 400 ms; rate, RTT and loss change every 15 s, the first and the last 2 minutes excepted",
			Path: path(10, 40*ms, 400*ms), Events: hourEvents(),
			Duration: time.Hour, From: 10 * time.Second, To: time.Hour,
			Bars:  []Bar{{"queue_drift", AtMost, 1.5}, {"base_rtt_error_ms", AtMost, 2}},
			Extra: hourFigures,
		},
	}
}

// Find returns the scenario of that name.
func Find(name string) (Scenario, error) {
	var names []string
	for _, s := range Scenarios() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Scenario{}, fmt.Errorf("lab: unknown scenario %q: must be one of %v", name, names)
}

// bars returns what the scenario is held to, with what every scenario is held to.
func (s *Scenario) bars() []Bar {
	bars := []Bar{{"survived", AtLeast, 1}}
	cross := false
	for _, f := range s.Flows {
		cross = cross || f.Law != ""
	}
	if !cross { // nobody is there to compete with
		bars = append(bars, Bar{stateMetric(cc.StateCompetitive), AtMost, 0})
	}
	return append(bars, s.Bars...)
}

func lossy(name string, loss, utilization float64) Scenario {
	p := path(50, 100*time.Millisecond, 100*time.Millisecond)
	p.Loss = loss
	return Scenario{
		Name: name, About: fmt.Sprintf("50 Mb/s, 100 ms, buffer 1 BDP, %g %% random loss", 100*loss),
		Path: p, Duration: time.Minute,
		Bars: []Bar{{"utilization", AtLeast, utilization}},
	}
}

func jittery(name, about string, how PathConfig) Scenario {
	p := path(50, 40*time.Millisecond, 80*time.Millisecond)
	p.Jitter, p.JitterEpoch, p.Reorder, p.AckGrain = how.Jitter, how.JitterEpoch, how.Reorder, how.AckGrain
	return Scenario{
		Name: name, About: "50 Mb/s, 40 ms, buffer 80 ms, " + about,
		Path: p, Duration: time.Minute,
		Bars: []Bar{{"utilization", AtLeast, 0.95}},
	}
}

func reroute(name string, from, to time.Duration) Scenario {
	return Scenario{
		Name: name, About: fmt.Sprintf("100 Mb/s, buffer 120 ms, %v -> %v at 10 s", from, to),
		Path:     path(100, from, 120*time.Millisecond),
		Events:   []Event{{rerouted, fmt.Sprintf("RTT %v", to), func(p *Path) { p.SetRTT(to) }}},
		Duration: time.Minute, From: rerouted + 10*time.Second, To: time.Minute,
		Bars:  []Bar{{"utilization", AtLeast, 0.95}, {"queue_vs_before", AtMost, 2}},
		Extra: rerouteFigures,
	}
}

func many(name string, apart time.Duration) Scenario {
	return Scenario{
		Name: name, About: fmt.Sprintf("100 Mb/s, 40 ms, buffer 200 ms, 20 flows %v apart", apart),
		Path: path(100, 40*time.Millisecond, 200*time.Millisecond), Flows: flows(20, apart), Duration: time.Minute,
		Bars: []Bar{{"utilization", AtLeast, 0.97}, {"jain", AtLeast, 0.95}, {"mean_queue_ms", AtMost, 40}},
	}
}

// hourEvents changes the path every 15 s, the same way in every run, and puts it
// back as it was for the last two minutes.
func hourEvents() []Event {
	rnd := rand.New(rand.NewPCG(1, 3600))
	var events []Event
	for at := hourCalm; at < time.Hour-hourCalm; at += 15 * time.Second {
		rate := (4 + 8*rnd.Float64()) * mega
		rtt := time.Duration(20+rnd.IntN(100)) * time.Millisecond
		loss := 0.005 * float64(rnd.IntN(2))
		events = append(events, hourEvent(at, rate, rtt, loss))
	}
	return append(events, hourEvent(time.Hour-hourCalm, 10*mega, hourRTT, 0))
}

func hourEvent(at time.Duration, rate float64, rtt time.Duration, loss float64) Event {
	name := fmt.Sprintf("%.1f Mb/s, %v, loss %g %%", rate/mega, rtt, 100*loss)
	return Event{at, name, func(p *Path) {
		p.SetRate(rate)
		p.SetRTT(rtt)
		p.Bottleneck.Change(func(c *LinkConfig) { c.Loss = loss })
	}}
}
