// Package udplink emulates a slow, long, lossy link for UDP on loopback, in real
// time, within the process and without privileges: a relay that clients address
// in place of the server.
//
//	client ──> Addr ──[up:   buffer │ rate │ loss │ delay]──> own socket per client ──> server
//	client <── Addr <─[down: buffer │ rate │ loss │ delay]<── own socket per client <── server
//
// All clients share the one bottleneck of each direction. A packet that finds
// no room in the buffer is dropped (drop-tail); one that has had its turn on the
// wire may be lost at random; the others arrive one delay after their turn.
//
// Times on the wire are computed, not waited for: the kernel stamps arrivals,
// and a packet's turn follows from its arrival and the rate alone. So a busy
// machine does not slow the link down; it makes deliveries late, and the link
// measures that (Interval.Late), so that a disturbed run can be told from a
// good one. Sizes are of IPv4 packets: UDP payload and 28 bytes of headers.
//
// One thread does all the work, as root before the turn of other threads. It
// needs a processor of the Go scheduler when it wakes: a program that keeps all
// of them busy should raise GOMAXPROCS by a few, so that there is one to spare.
// It polls every socket a few thousand times a second: it is for a few clients.
//
// It never reorders, corrupts or fragments packets, and it is no firewall: it
// trusts whoever can reach its loopback port.
package udplink
