package wan

import (
	"math"
	"math/rand/v2"
)

// bufferBytes takes every packet of an interface with an MTU of 1500.
const bufferBytes = 2048

// direction is one way of the link: the computed bottleneck and the packets
// between it and their delivery. Times are nanoseconds of one monotonic clock.
type direction struct {
	cfg   Direction
	rng   *rand.Rand
	free  int64 // when the transmitter has sent all that was admitted
	queue ring
	spare [][]byte // buffers of delivered packets
	n     counts
}

// counts is what happened to packets since the link was set.
type counts struct {
	offered, tailDrops, lost, delivered, writeErrors int64 // packets
	deliveredBytes                                   int64
	queueing                                         histogram // of admitted packets, by their bytes
	late                                             histogram // of delivered packets
}

// packet is on its way to the far end.
type packet struct {
	due  int64
	data []byte // a whole buffer, cut to the packet
}

func newDirection(cfg Direction) *direction {
	return &direction{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0))}
}

// offer takes a packet that arrived at that time; it keeps buf and returns
// another one, or buf again if the packet was dropped or lost.
func (d *direction) offer(now int64, buf []byte, size int) (next []byte) {
	due, ok := d.admit(now, size)
	if !ok {
		return buf
	}
	d.queue.push(packet{due: due, data: buf[:size]})
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
func (d *direction) admit(now int64, size int) (due int64, ok bool) {
	d.n.offered++
	start := max(now, d.free)
	waiting := float64(start-now) * d.cfg.Rate / 8e9
	if waiting+float64(size) > float64(d.cfg.Buffer) {
		d.n.tailDrops++
		return 0, false
	}
	d.free = start + int64(float64(size)*8e9/d.cfg.Rate+0.5)
	d.n.queueing.add(start-now, int64(size))
	if d.cfg.Loss > 0 && d.rng.Float64() < d.cfg.Loss {
		d.n.lost++
		return 0, false
	}
	return d.free + int64(d.cfg.Delay), true
}

// next is when the next packet is due, far off if there is none.
func (d *direction) next() int64 {
	if d.queue.len == 0 {
		return math.MaxInt64
	}
	return d.queue.front().due
}

// deliver hands all that is due to write, in order.
func (d *direction) deliver(now int64, write func([]byte) error) {
	for d.queue.len > 0 && d.queue.front().due <= now {
		p := d.queue.pop()
		d.n.late.add(now-p.due, 1)
		if err := write(p.data); err != nil {
			d.n.writeErrors++
		} else {
			d.n.delivered++
			d.n.deliveredBytes += int64(len(p.data))
		}
		d.spare = append(d.spare, p.data[:bufferBytes])
	}
}

// ring is a first-in, first-out queue that grows and is never shrunk.
type ring struct {
	packets []packet
	head    int
	len     int
}

func (r *ring) front() *packet { return &r.packets[r.head] }

func (r *ring) pop() packet {
	p := r.packets[r.head]
	r.packets[r.head] = packet{}
	r.head = (r.head + 1) % len(r.packets)
	r.len--
	return p
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
