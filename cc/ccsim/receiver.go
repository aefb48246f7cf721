package ccsim

import "slices"

// Constants of RFC 9000 and 9002, and of quic-go.
const (
	packetsPerAck   = 2     // RFC 9000 section 13.2.2
	maxAckDelay     = 25e6  // ns, RFC 9000 section 18.2
	granularity     = 1e6   // ns, RFC 9002 section 6.1.2
	initialRTT      = 333e6 // ns, RFC 9002 section 6.2.2
	packetThreshold = 3     // RFC 9002 section 6.1.1
	maxPTO          = 60e9  // ns
	maxOutstanding  = 20000 // packets: quic-go sends no new data beyond
)

// receiver takes a flow's packets and acknowledges them.
type receiver struct {
	flow     *flow
	perAck   int   // packets an ACK waits for
	grain    int64 // ACKs arrive at multiples of it, ns
	arriving ring[arrival]
	arrive   timer

	largest   int64 // packet number
	delivered int64 // bytes

	// Packet numbers received, in order of arrival: those that ACKs under way
	// carry, then those that no ACK has carried yet. The sender takes them from
	// here, so that an ACK is only a count.
	numbers   ring[int64]
	unacked   int   // at the tail of numbers
	sinceAck  int   // packets since the last ACK
	largestAt int64 // arrival of the largest number

	delayed timer // sends the ACK at the latest

	acks    ring[ack]
	ackBack timer
	batch   []int64
}

type arrival struct{ at, number, size int64 }

type ack struct {
	at    int64
	count int
	delay int64 // between the arrival of the largest packet and the ACK
}

func newReceiver(f *flow, perAck int, grain int64) *receiver {
	r := &receiver{flow: f, perAck: perAck, grain: grain, largest: -1}
	r.arrive = newTimer(r.arrived)
	r.delayed = newTimer(r.sendAck)
	r.ackBack = newTimer(r.ackArrived)
	return r
}

// arriveAt puts a packet on its way.
func (r *receiver) arriveAt(at, number, size int64, reorder bool) {
	n := r.arriving.len()
	if n > 0 && !reorder {
		at = max(at, r.arriving.at(n-1).at)
	}
	r.arriving.push(arrival{at, number, size})
	for i := n; i > 0 && r.arriving.at(i-1).at > at; i-- {
		*r.arriving.at(i), *r.arriving.at(i - 1) = *r.arriving.at(i - 1), *r.arriving.at(i)
	}
	r.flow.sim.events.set(&r.arrive, r.arriving.at(0).at)
}

func (r *receiver) arrived(now int64) {
	for r.arriving.len() > 0 && r.arriving.at(0).at <= now {
		a := r.arriving.pop()
		r.receive(now, a.number, a.size)
	}
	if r.arriving.len() > 0 {
		r.flow.sim.events.set(&r.arrive, r.arriving.at(0).at)
	}
}

func (r *receiver) receive(now, number, size int64) {
	inOrder := number == r.largest+1
	if number > r.largest {
		r.largest, r.largestAt = number, now
	}
	r.delivered += size
	r.numbers.push(number)
	r.unacked++
	r.sinceAck++
	if r.sinceAck >= r.perAck || !inOrder {
		r.sendAck(now)
	} else if r.sinceAck == 1 {
		r.flow.sim.events.set(&r.delayed, now+maxAckDelay)
	}
}

func (r *receiver) sendAck(now int64) {
	r.sinceAck = 0
	r.flow.sim.events.clear(&r.delayed)
	if r.flow.sim.link.down {
		return // the next ACK will tell
	}
	at := now + r.flow.delay
	if r.grain > 0 {
		at = (at + r.grain - 1) / r.grain * r.grain
	}
	if n := r.acks.len(); n > 0 {
		at = max(at, r.acks.at(n-1).at)
	}
	r.acks.push(ack{at, r.unacked, now - r.largestAt})
	r.unacked = 0
	r.flow.sim.events.set(&r.ackBack, r.acks.at(0).at)
}

func (r *receiver) ackArrived(now int64) {
	for r.acks.len() > 0 && r.acks.at(0).at <= now {
		a := r.acks.pop()
		r.batch = r.batch[:0]
		for range a.count {
			r.batch = append(r.batch, r.numbers.pop())
		}
		if !slices.IsSorted(r.batch) {
			slices.Sort(r.batch)
		}
		r.flow.sender.onAck(now, r.batch, a.delay)
	}
	if r.acks.len() > 0 {
		r.flow.sim.events.set(&r.ackBack, r.acks.at(0).at)
	}
}
