// Package ccsim is a seeded simulator of a shared drop-tail bottleneck, packet by
// packet, in virtual time. It drives controllers of package cc as quic-go would,
// and the article's laws as their ns-2 module would.
//
//	flow 0 ──[access]──┐   buffer   ┌───────┐             ┌── receiver 0 ──┐
//	flow 1 ──[access]──┼─►│││││││──►│ link  │──[delay]────┼── receiver 1   │
//	flow 2 ──[access]──┘            └───────┘             └── receiver 2   │
//	   ▲                                                                   │
//	   └────────────────────── ACKs, [delay] ──────────────────────────────┘
//
// Half of a flow's round trip lies before its receiver and half after it. The
// link drops what its buffer cannot hold, loses packets at random, delays them by
// jitter; ACKs may be held back in bunches.
//
// A flow runs in one of two modes:
//
//   - paced: a cc.Controller behind the loss detection, the RTT estimate and the
//     send loop of quic-go (RFC 9002), with ACKs every second packet or 25 ms;
//   - ns-2: a window of packets that every ACK updates by the rules of the public
//     ns-2 FAST module, which the article's figures come from.
//
// The same configuration gives the same result on every machine: there are no
// goroutines, no maps to walk and no clock. It never simulates a byte stream:
// retransmissions are new packets, and a receiver takes what arrives.
package ccsim
