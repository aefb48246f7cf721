package cc

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance {
		t.Errorf("%s = %v, want %v +- %v", what, got, want, tolerance)
	}
}

// The article's experiments: dumbbell, d = 0.1 s, 1000-byte packets, 3 flows.
var experiments = []struct {
	name                     string
	capacity, alpha          float64 // packets/s, packets
	rho, queue               float64
	shareTime, landingWindow float64
}{
	{"1", 12000, 200, 0.015, 0.05, 2.07, 4000*0.1 + 200},
	{"2", 120000, 200, 0.15, 0.005, 10.15, 40000*0.1 + 200},
	{"3", 120000, 2000, 0.015, 0.05, 2.07, 40000*0.1 + 2000},
}

func TestArticleExperiments(t *testing.T) {
	const d, theta, flows, gamma = 0.1, 0.00075, 3, 0.5
	for _, e := range experiments {
		q := EquilibriumQueueDelay(flows, e.alpha, e.capacity)
		near(t, e.name+": q*", q, e.queue, 1e-12)
		near(t, e.name+": rho", SlowStartRatio(theta, e.capacity, flows, e.alpha), e.rho, 1e-12)
		near(t, e.name+": time of the slow mode", ShareConvergenceTime(d+q, d, q, 0.1, gamma), e.shareTime, 0.01)
		// At equilibrium every flow holds its share of the path and alpha.
		w := e.capacity / flows * (d + q)
		near(t, e.name+": window at equilibrium", w, e.landingWindow, 1e-9)
		near(t, e.name+": backlog at equilibrium", Backlog(w, d, d+q), e.alpha, 1e-9)
		near(t, e.name+": the law rests there", NextWindow(w, w, d, d+q, e.alpha, gamma), w, 1e-9)
		near(t, e.name+": so does the backlog form", BacklogStep(w, e.alpha, e.alpha, gamma), w, 1e-9)
	}
}

func TestBacklog(t *testing.T) {
	for _, c := range []struct{ w, base, rtt, want float64 }{
		{100, 80, 100, 20}, // a fifth of the window waits
		{100, 80, 80, 0},
		{100, 80, 79, 0}, // below the base: none, not a negative one
		{100, 0, 0, 0},
		{0, 80, 100, 0},
	} {
		near(t, "backlog", Backlog(c.w, c.base, c.rtt), c.want, 1e-12)
	}
}

func TestWindowLaw(t *testing.T) {
	for _, c := range []struct{ w, wOld, base, rtt, alpha, gamma, want float64 }{
		{100, 100, 100, 100, 20, 0.5, 110}, // empty queue: up by gamma*alpha
		{100, 100, 80, 100, 20, 0.5, 100},  // n = alpha: rest
		{100, 100, 80, 100, 10, 0.5, 95},   // n = 20 above alpha
		{100, 80, 80, 100, 20, 0.5, 92},    // w_old, not w, in the product
		{10, 10, 100, 100, 1000, 1, 20},    // at most twice
	} {
		near(t, "window", NextWindow(c.w, c.wOld, c.base, c.rtt, c.alpha, c.gamma), c.want, 1e-12)
		if c.w == c.wOld {
			n := Backlog(c.wOld, c.base, c.rtt)
			near(t, "backlog form", BacklogStep(c.w, n, c.alpha, c.gamma), c.want, 1e-12)
		}
	}
}

func TestSlowStartEndsOnBacklog(t *testing.T) {
	// Algorithm 2 with alpha 200 and 0.1: at 20 packets, whatever the link.
	if LeavesSlowStart(19.9, 200, 0.1) || !LeavesSlowStart(20, 200, 0.1) {
		t.Error("slow start must end at a backlog of 20 packets")
	}
}

func TestGainIsExponential(t *testing.T) {
	for _, c := range []struct{ n, want float64 }{
		{200, 0.25}, // at equilibrium
		{100, 0.5},  // half way: the square root
		{300, 0.5},  // on either side
		{0, 1}, {400, 1}, {1e9, 1},
	} {
		near(t, "gain", Gain(c.n, 200, 0.25), c.want, 1e-12)
	}
}

func TestTheorem1(t *testing.T) {
	// Half the distance a step: a tenth is reached after log2(10) = 3.32 steps.
	near(t, "gamma 0.5", SumConvergenceTime(0.1, 1000, 100, 0.5), 0.332, 0.001)
	near(t, "gamma 1", SumConvergenceTime(0.1, 1000, 100, 1), 0.1, 0)
	near(t, "there already", SumConvergenceTime(0.1, 100, 1000, 0.5), 0, 0)
	// The iteration itself, for the sum of equal flows' windows.
	const d, c, n, alpha, gamma = 0.1, 12000.0, 3, 200.0, 0.5
	y, star := 4*(c*d+n*alpha), c*d+n*alpha
	for k := 1; k <= 8; k++ {
		// With a full queue RTT = Y/c, so d/RTT * Y = c*d.
		y = NextWindow(y, y, d, y/c, n*alpha, gamma)
		near(t, "distance", y-star, 3*star*math.Pow(1-gamma, float64(k)), 1e-6)
	}
}

func TestAlpha(t *testing.T) {
	p := DefaultParams()
	mbps := func(x float64) float64 { return x * 1e6 / 8 }
	near(t, "10 Mb/s alone", p.Alpha(mbps(10), mbps(10)), 8, 1e-9)
	near(t, "1 Gb/s alone", p.Alpha(mbps(1000), mbps(1000)), 80, 1e-9)
	near(t, "unknown", p.Alpha(0, 0), p.AlphaMin, 0)
	near(t, "slow", p.Alpha(mbps(0.1), mbps(0.1)), p.AlphaMin, 0)
	// Alpha grows less than the rate, so equal shares are the only equilibrium.
	if a, b := p.Alpha(mbps(10), mbps(100)), p.Alpha(mbps(90), mbps(100)); b/a > 2 {
		t.Errorf("alpha at nine times the rate is %.2f times as large", b/a)
	}
}
