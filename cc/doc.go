// Package cc holds the congestion controllers of fastpacs: FAST as its authors
// published it, the improved FAST algorithm of a 2021 article, and the
// production law built on it. It knows nothing of QUIC, of metrics or of clocks:
// time is an argument, and what a transport reports comes in through Controller.
//
// # Symbols
//
//	w        window; cwnd
//	baseRTT  lowest RTT believed to be free of queueing, d in the formulas
//	RTT      d + q
//	q        queueing delay (queueDelay)
//	n        w*q/RTT, what this flow has queued in the bottleneck (backlog)
//	alpha    backlog a flow wants to have
//	gamma    gain of the window law
//	c, N     capacity of the bottleneck and number of flows that share it
//
// # What comes from where
//
// The article (improved FAST TCP for personalised healthcare systems, Wireless
// Communications and Mobile Computing, 2021, article 9947883) survives as prose;
// its formulas, tables and pseudocode do not. So:
//
// Stated: slow start ends, once and for good, when the packets left in the
// buffer reach 0.09 to 0.1 of alpha (Algorithm 2). The gain is exponential in the
// normalised distance from equilibrium, larger far away and smaller near, and
// keeps the loop stable (Algorithm 3). The queueing delay ratio of slow start
// must stay near 0.1 whatever capacity and number of flows are.
//
// Derived: the backlog n = w*q/RTT; equilibrium at n = alpha for every flow and
// q* = N*alpha/c; Theorem 1, that the sum of the windows approaches equilibrium
// as (1-gamma)^k; that differences between flows approach it as
// (1-gamma*q/RTT)^k, far slower; the law in terms of the backlog.
//
// Reconstructed: Algorithm 1's parameters; eq. (1), rho = theta*c/(N*alpha); the
// form of the gain, gamma_min^(1-e) with e = min(1, |alpha-n|/alpha).
//
// The window law itself is published: Wei, Jin, Low, Hegde, "FAST TCP:
// Motivation, Architecture, Algorithms, Performance", IEEE/ACM Transactions on
// Networking 14(6), 2006. law.go holds all of this as pure functions.
//
// # The production law
//
// A paced sender on real paths needs more than the article's. Each addition with
// its reason (the numbers are parameters, see Params):
//
//   - w_old, what was in flight when the acknowledged packet left, stands for w in
//     the backlog: with today's w and a queue of one RTT ago the loop rings.
//   - The queue is taken from the lowest RTT sample of half a round trip: jitter
//     and ACKs held back only add to it.
//   - The law is used in its backlog form, which does not mistake bunched ACKs for
//     a smaller alpha.
//   - Slow start sends packet trains, whose spacing tells the capacity to grow to;
//     growth slows near it, and the exit lands on measured rate * baseRTT + alpha.
//     Pacing removes the bursts that end slow start early in ns-2; without this a
//     paced sender overshoots by 82 to 128 %.
//   - alpha grows with the path's capacity and, less, with the flow's own rate. In
//     proportion to the own rate it would leave every division of a link at rest.
//     Jitter adds to it, at most alpha again: while packets are held back, a window
//     without them would leave the link idle.
//   - The gain is spread over two round trips, as FAST applies its law in alternate
//     ones: at once per round trip flows of 20 and 200 ms drive each other in a
//     cycle.
//   - The queue is drained every 5 s, on multiples of the period, and baseRTT is
//     the lowest sample of 8 s: a latecomer sees the others' queue as its base
//     otherwise, and a longer path would look like a queue for ever.
//   - With little backlog for 4 round trips the window grows by a quarter per round
//     trip until a backlog shows: the law's own alpha per round trip would take
//     minutes to use capacity that became free.
//   - A step of the RTT that stays although less is sent, or that a drain does not
//     change while the RTT's floor stands still, is a longer path: baseRTT follows
//     at once. A queue, ours or others', moves.
//   - When drains in a row leave a queue, others keep it full. The sender then adds a
//     packet per round trip and backs off by loss, as they do, until it has the path
//     alone or the queue empties (after Copa: Arun and Balakrishnan, NSDI 2018).
//   - On paths below 1 ms the window has a fixed limit: RTTs there tell of
//     schedulers, and the buffer that overflows is the receiver's.
//   - Loss below 0.6 % costs nothing. Above, alpha comes down, since the buffer may
//     be smaller than alpha; above 3 % the window is held at rate*baseRTT + alpha;
//     above 9 % it is reduced. ECN marks count as loss of packets.
//
// # Duties
//
// Every law keeps to RFC 9002: initial window of 10 packets, minimum of 2, at
// most one reduction per round trip, no growth while the application or the
// peer's flow control is the limit, the minimum window after persistent
// congestion, pacing.
//
// # What this package never does
//
// It reads no clock, takes no lock but the one that guards a Snapshot, starts no
// goroutine, and allocates nothing per packet.
package cc
