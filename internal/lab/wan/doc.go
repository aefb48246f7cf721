// Package wan joins two network namespaces by an emulated link in real time, so
// that unchanged programs, the kernel's TCP included, can be compared over the
// same slow, long and lossy path. Linux only, and for root.
//
//	client namespace                 this process                   server namespace
//	programs ── wan0 (TUN) ──> buffer │ rate │ loss │ delay ──> (TUN) wan0 ── programs
//	programs ── wan0 (TUN) <── delay │ loss │ rate │ buffer <── (TUN) wan0 ── programs
//
// A namespace has a loopback and the link, no default route and no IPv6: nothing
// leaves it. It has no name and belongs to one thread of this process: it is gone
// when the network is closed, and when this process dies of whatever cause.
// Programs run in a namespace as child processes (Namespace.Start), never as
// goroutines, which would wander out of it; they are killed with this process.
//
// A packet that finds no room in the buffer is dropped (drop-tail); one that has
// had its turn on the wire may be lost at random; the others arrive one delay
// after their turn, in order. Times on the wire are computed from a packet's
// arrival, not waited for: a busy machine makes deliveries late, and Stats.Late
// tells so. Sizes are of whole IP packets.
//
// One thread does all the work. All threads of this process run before the turn
// of all others while a network exists, since one may have to wait for another:
// the program around it should have little to do, raise GOMAXPROCS by a few and
// keep the garbage collector off while it measures. Programs in the namespaces
// run before the turn of normal ones, too. It keeps time up to some 200 Mb/s.
//
// It never reorders, corrupts, fragments or merges packets.
package wan
