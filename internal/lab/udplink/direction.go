package udplink

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// headerBytes is what IPv4 and UDP add to a payload.
const headerBytes = 20 + 8

// direction is one way of the link: the computed bottleneck and the packets
// between it and their delivery. Times are nanoseconds since the link started.
type direction struct {
	cfg Direction

	mu      sync.Mutex
	rng     *rand.Rand
	arrived int64 // latest arrival seen
	free    int64 // when the transmitter has sent all that was admitted
	queue   ring
	spare   [][]byte // buffers of delivered packets
	n       counts
}

// packet is on its way to the far end of its session.
type packet struct {
	due     int64
	payload []byte // a whole buffer, cut to the payload
	session *session
}

func newDirection(cfg Direction) *direction {
	return &direction{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0))}
}

// offer takes a packet that arrived at that time. It returns the buffer for the
// reader's next packet: the same one if the packet was dropped or lost.
func (d *direction) offer(arrival int64, buf []byte, size int, s *session) (next []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	due, ok := d.admit(arrival, size)
	if !ok {
		return buf
	}
	d.queue.push(packet{due: due, payload: buf[:size], session: s})
	k := len(d.spare)
	if k == 0 {
		return make([]byte, bufferBytes)
	}
	next = d.spare[k-1]
	d.spare = d.spare[:k-1]
	return next
}

// admit passes a packet through buffer, transmitter and wire; it returns when
// the packet is due at the far end, or false if it never gets there.
func (d *direction) admit(arrival int64, size int) (due int64, ok bool) {
	// Sockets are read one after the other: across them arrivals may be out of
	// order by a little.
	arrival = max(arrival, d.arrived)
	d.arrived = arrival
	wire := int64(size + headerBytes)
	d.n.offeredPackets++
	start := arrival
	if d.cfg.Rate > 0 {
		start = max(arrival, d.free)
		waiting := float64(start-arrival) * d.cfg.Rate / 8e9
		if d.cfg.Buffer > 0 && waiting+float64(wire) > float64(d.cfg.Buffer) {
			d.n.tailDrops++
			return 0, false
		}
		d.free = start + int64(float64(wire)*8e9/d.cfg.Rate+0.5)
	} else {
		d.free = arrival
	}
	d.n.sentPackets++
	d.n.admittedBytes += wire
	d.n.queueing.add(start-arrival, wire)
	if d.cfg.Loss > 0 && d.rng.Float64() < d.cfg.Loss {
		d.n.lost++
		return 0, false
	}
	return d.free + int64(d.cfg.Delay), true
}

// takeDue moves up to len(out) packets that are due at now to out, in order, and
// returns how many, and when the next one is due, far off if there is none.
func (d *direction) takeDue(now int64, out []packet) (n int, next int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n < len(out) && d.queue.len > 0 {
		p := d.queue.front()
		if p.due > now {
			return n, p.due
		}
		d.n.late.add(now-p.due, 1)
		out[n] = *p
		d.queue.pop()
		n++
	}
	return n, math.MaxInt64
}

// done takes back the buffers of packets that were handed to the kernel, or that
// it would not take.
func (d *direction) done(packets []packet, delivered, failed int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range packets {
		d.spare = append(d.spare, packets[i].payload[:bufferBytes])
		packets[i] = packet{}
	}
	d.n.deliveredBytes += delivered
	d.n.writeErrors += failed
}

// count changes the counters.
func (d *direction) count(change func(*counts)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.n)
}

// snapshot copies the counters as of now.
func (d *direction) snapshot(now int64) DirectionSnapshot {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := DirectionSnapshot{at: time.Duration(now), rate: d.cfg.Rate, n: d.n}
	// What is admitted and still waits has not been on the wire.
	s.wireBytes = float64(d.n.admittedBytes)
	if d.free > now {
		s.wireBytes -= float64(d.free-now) * d.cfg.Rate / 8e9
	}
	return s
}

// ring is a first-in, first-out queue that grows and is never shrunk.
type ring struct {
	packets []packet
	head    int
	len     int
}

func (r *ring) front() *packet { return &r.packets[r.head] }

func (r *ring) pop() {
	r.packets[r.head] = packet{}
	r.head = (r.head + 1) % len(r.packets)
	r.len--
}

func (r *ring) push(p packet) {
	if r.len == len(r.packets) {
		grown := make([]packet, max(1024, 2*r.len))
		n := copy(grown, r.packets[r.head:])
		copy(grown[n:], r.packets[:r.head])
		r.packets, r.head = grown, 0
	}
	r.packets[(r.head+r.len)%len(r.packets)] = p
	r.len++
}
