package cc

import "math"

// This file is the article's arithmetic and nothing else: pure functions of
// the quantities named in doc.go. Windows, backlogs and alpha are in one unit
// (packets or bytes) that the caller chooses; delays are in one unit too.

// Backlog is the part of a flow's window that waits in the bottleneck queue,
//
//	n = w * (RTT - baseRTT) / RTT
//
// (stated in the article as the packets left in the buffer). With w the amount
// in flight when the acknowledged packet was sent, n is what the flow had
// queued when that packet passed the queue. It is 0 when rtt <= baseRTT.
func Backlog(wOld, baseRTT, rtt float64) float64 {
	if rtt <= baseRTT || rtt <= 0 {
		return 0
	}
	return wOld * (rtt - baseRTT) / rtt
}

// NextWindow is the FAST window law (Wei, Jin, Low, Hegde 2006, eq. 5)
//
//	w <- min(2w, (1-gamma)*w + gamma*(baseRTT/RTT * wOld + alpha))
//
// with wOld, the amount in flight when the acknowledged packet was sent, in the
// product with baseRTT/RTT. With today's w there, the loop has roots of modulus
// sqrt(gamma*c*d/(c*d+N*alpha)) and rings.
func NextWindow(w, wOld, baseRTT, rtt, alpha, gamma float64) float64 {
	return min(2*w, (1-gamma)*w+gamma*(baseRTT/rtt*wOld+alpha))
}

// BacklogStep is the window law in terms of the backlog,
//
//	w <- min(2w, w + gamma*(alpha - n))
//
// It equals NextWindow when the window is used in full (wOld == w), since then
// w - n = baseRTT/RTT * w, and differs when ACKs come in bursts and the amount
// in flight sits below w: there NextWindow takes the deficit for a smaller
// alpha, and this form does not (derived).
func BacklogStep(w, backlog, alpha, gamma float64) float64 {
	return min(2*w, w+gamma*(alpha-backlog))
}

// LeavesSlowStart is Algorithm 2's criterion (stated): slow start ends, once
// and for good, when the flow's own backlog reaches a share of alpha, 0.09 to
// 0.1 of it, so that the ratio rho stays there whatever capacity and number of
// flows are.
func LeavesSlowStart(backlog, alpha, share float64) bool {
	return backlog >= share*alpha
}

// Gain is Algorithm 3's gain. Stated: exponential in the normalised distance
// from equilibrium, larger far away and smaller near. Reconstructed:
//
//	e = min(1, |alpha - n| / alpha),  gamma(e) = gammaMin^(1-e)
//
// It runs from gammaMin at equilibrium to 1 at e = 1, inside Theorem 1's stable
// range (0, 1]. gammaMin below 0.25 never settles in the article's Experiment 1.
func Gain(backlog, alpha, gammaMin float64) float64 {
	e := min(1, math.Abs(alpha-backlog)/alpha)
	return math.Pow(gammaMin, 1-e)
}

// SlowStartRatio is eq. (1), the queueing delay at which slow start ends over
// that at equilibrium (reconstructed; it fits every statement of the text):
//
//	rho = theta / q* = theta * c / (N * alpha)
func SlowStartRatio(theta, capacity, flows, alpha float64) float64 {
	return theta * capacity / (flows * alpha)
}

// EquilibriumQueueDelay is q* = N * alpha / c: every flow holds exactly alpha in
// the queue (Wei et al., section IV).
func EquilibriumQueueDelay(flows, alpha, capacity float64) float64 {
	return flows * alpha / capacity
}

// SumConvergenceTime is Theorem 1 (derived): with equal propagation delays the
// sum of the windows approaches equilibrium as (1-gamma)^k, so its distance
// falls from start to eps after
//
//	t = T * ln(eps/start) / ln(1-gamma)
//
// with T the time between updates. gamma = 1 gets there in one update.
func SumConvergenceTime(update, start, eps, gamma float64) float64 {
	if eps >= start {
		return 0
	}
	if gamma >= 1 {
		return update
	}
	return update * math.Log(eps/start) / math.Log(1-gamma)
}

// ShareConvergenceTime is the time after which differences between flows have
// fallen to the share eps (derived). There the queueing delay q is fixed, and
//
//	dw(k+1) = (1 - gamma*q/(d+q)) * dw(k)  =>  t = ln(1/eps) * T*(d+q)/(gamma*q)
//
// Only alpha, equal starting points or shared knowledge shorten it much.
func ShareConvergenceTime(update, propagation, queueDelay, eps, gamma float64) float64 {
	return math.Log(1/eps) * update * (propagation + queueDelay) / (gamma * queueDelay)
}
