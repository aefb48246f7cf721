package ccsim

import "math/rand/v2"

// packet is a packet under way.
type packet struct {
	flow   *flow
	number int64
	size   int64
	at     int64 // when it joined the queue
}

// link is the bottleneck: a drop-tail queue and a transmitter.
type link struct {
	config Link
	events *events
	random *rand.Rand
	down   bool

	queue  ring[packet]
	queued int64 // bytes waiting
	busy   bool
	onWire packet
	done   timer

	jitter      int64 // of this epoch
	jitterUntil int64

	total  LinkSample // counted so far
	rateAt int64      // up to when total.Capacity is counted
}

func newLink(config Link, e *events, random *rand.Rand) *link {
	l := &link{config: config, events: e, random: random}
	l.done = newTimer(l.transmitted)
	return l
}

// enqueue takes a packet in, or drops it.
func (l *link) enqueue(now int64, p packet) {
	p.at = now
	if !l.busy {
		l.transmit(now, p)
		return
	}
	if l.queued+p.size > l.config.Buffer {
		l.total.Dropped++
		return
	}
	l.queued += p.size
	p.flow.queued += p.size
	l.total.PeakQueue = max(l.total.PeakQueue, l.queued)
	l.queue.push(p)
}

func (l *link) transmit(now int64, p packet) {
	l.total.waits++
	l.total.waited += float64(now - p.at)
	l.busy, l.onWire = true, p
	l.events.set(&l.done, now+int64(float64(p.size)*1e9/l.config.Rate))
}

func (l *link) transmitted(now int64) {
	p := l.onWire
	l.busy = false
	if l.queue.len() > 0 {
		next := l.queue.pop()
		l.queued -= next.size
		next.flow.queued -= next.size
		l.transmit(now, next)
	}
	if l.down || l.config.Loss > 0 && l.random.Float64() < l.config.Loss {
		l.total.Lost++
		return
	}
	l.total.Carried += p.size
	p.flow.receiver.arriveAt(now+p.flow.delay+l.drawJitter(now), p.number, p.size, l.config.Reorder)
}

func (l *link) drawJitter(now int64) int64 {
	if l.config.Jitter == 0 {
		return 0
	}
	if epoch := int64(l.config.JitterEpoch); epoch == 0 {
		l.jitter = l.random.Int64N(int64(l.config.Jitter) + 1)
	} else if now >= l.jitterUntil {
		l.jitter = l.random.Int64N(int64(l.config.Jitter) + 1)
		l.jitterUntil = now - now%epoch + epoch
	}
	return l.jitter
}

// setRate changes the rate from the next packet on.
func (l *link) setRate(now int64, rate float64) {
	l.count(now)
	l.config.Rate = rate
}

// count brings the capacity offered so far up to date.
func (l *link) count(now int64) {
	if !l.down {
		l.total.Capacity += l.config.Rate * float64(now-l.rateAt) / 1e9
	}
	l.rateAt = now
}
