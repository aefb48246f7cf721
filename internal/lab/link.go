package lab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// headerBytes is what IPv4 and UDP add to a datagram on the wire.
const headerBytes = 28

// LinkConfig is what one direction of a path does to datagrams.
type LinkConfig struct {
	Rate   float64 // bit/s, headers included; 0: infinitely fast, without a queue
	Buffer int     // bytes, headers included, that may wait behind the datagram in service
	Delay  time.Duration

	Jitter      time.Duration // Delay varies by up to this much either way, uniformly; at most Delay
	JitterEpoch time.Duration // one variation holds this long; 0: drawn for every datagram
	Reorder     bool          // a datagram with less delay overtakes; otherwise it waits for those before it

	Loss  float64       // share of datagrams lost at random on the wire, behind the queue; 0 to 1
	Grain time.Duration // deliveries wait for the next multiple of this (aggregation); 0: none
	Down  bool          // refuse every datagram; what is under way still arrives
}

// Validate reports the first field that is out of range.
func (c LinkConfig) Validate() error {
	switch {
	case !(c.Rate >= 0) || math.IsInf(c.Rate, 0):
		return fmt.Errorf("lab: link Rate %v: must be a number of bit/s, 0 or above", c.Rate)
	case c.Buffer < 0:
		return fmt.Errorf("lab: link Buffer %d: must be 0 bytes or more", c.Buffer)
	case c.Delay < 0:
		return fmt.Errorf("lab: link Delay %v: must be 0 or more", c.Delay)
	case c.Jitter < 0 || c.Jitter > c.Delay:
		return fmt.Errorf("lab: link Jitter %v: must be 0 to Delay (%v)", c.Jitter, c.Delay)
	case c.JitterEpoch < 0:
		return fmt.Errorf("lab: link JitterEpoch %v: must be 0 or more", c.JitterEpoch)
	case !(c.Loss >= 0 && c.Loss <= 1):
		return fmt.Errorf("lab: link Loss %v: must be 0 to 1", c.Loss)
	case c.Grain < 0:
		return fmt.Errorf("lab: link Grain %v: must be 0 or more", c.Grain)
	}
	return nil
}

// Link is one direction of a path, shared by any number of end points: a
// drop-tail queue, a transmitter, and a wire with a delay. Departures are
// computed ahead, so that one datagram costs one timer.
type Link struct {
	epoch time.Time // zero of every time.Duration below that means a moment
	pool  *datagramPool
	wake  chan struct{}
	done  chan struct{}
	ended chan struct{}

	mu       sync.Mutex
	cfg      LinkConfig
	rnd      *rand.Rand
	queue    fifo[waiting] // the first is in service
	queued   int           // bytes behind the first
	wire     fifo[flying]  // ascending by arrival
	last     time.Duration // arrival of the last datagram put on the wire
	jitter   time.Duration
	jitterAt time.Duration // when jitter was drawn; negative: never
	wakeAt   time.Duration // what the delivering goroutine sleeps until
	stats    LinkStats
	hist     QueueHistogram
}

// waiting is a datagram that has not left the transmitter.
type waiting struct {
	d        *datagram
	enqueued time.Duration
	start    time.Duration // when its first bit goes out
	depart   time.Duration // when its last bit has gone out
}

// flying is a datagram on the wire.
type flying struct {
	d  *datagram
	at time.Duration
}

// never is later than any run lasts.
const never = time.Duration(math.MaxInt64)

func newLinkRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func newLink(cfg LinkConfig, pool *datagramPool, seed uint64) *Link {
	l := &Link{
		epoch: time.Now(), pool: pool, cfg: cfg, jitterAt: -1, wakeAt: never,
		rnd:  newLinkRand(seed),
		wake: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{}),
	}
	go l.run()
	return l
}

func (l *Link) close() {
	close(l.done)
	<-l.ended
}

func (l *Link) now() time.Duration { return time.Since(l.epoch) }

// Config returns the link's present configuration.
func (l *Link) Config() LinkConfig {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg
}

// Change alters the link while it runs. A new rate serves what is already
// waiting, the rest of the datagram in service included; a new delay, loss or
// jitter meets the datagrams that leave the queue from now on. It panics on a
// configuration that Validate refuses.
func (l *Link) Change(f func(*LinkConfig)) {
	l.mu.Lock()
	now := l.now()
	l.settle(now)
	old := l.cfg
	f(&l.cfg)
	if err := l.cfg.Validate(); err != nil {
		l.mu.Unlock()
		panic(err)
	}
	if l.cfg.Rate != old.Rate {
		l.reschedule(now, old.Rate)
	}
	wake := l.next() < l.wakeAt
	l.mu.Unlock()
	if wake {
		l.signal()
	}
}

// Take returns the counters and clears them.
func (l *Link) Take() LinkStats {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.now())
	s := l.stats
	l.stats = LinkStats{}
	return s
}

// TakeHistogram returns the histogram of waiting times and clears it.
func (l *Link) TakeHistogram() *QueueHistogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settle(l.now())
	h := l.hist
	l.hist = QueueHistogram{}
	return &h
}

// send takes a datagram to the end of the queue, or drops it.
func (l *Link) send(d *datagram) {
	l.mu.Lock()
	now := l.now()
	l.settle(now)
	switch {
	case l.cfg.Down:
		l.drop(d)
	case l.cfg.Rate == 0:
		l.leave(waiting{d: d, enqueued: now, start: now, depart: now})
	case l.queue.len() == 0:
		l.queue.push(waiting{d, now, now, now + l.service(d)})
	case l.queued+d.wireBytes() <= l.cfg.Buffer:
		start := l.queue.at(l.queue.len() - 1).depart
		l.queue.push(waiting{d, now, start, start + l.service(d)})
		l.queued += d.wireBytes()
	default:
		l.drop(d)
	}
	wake := l.next() < l.wakeAt
	l.mu.Unlock()
	if wake {
		l.signal()
	}
}

func (l *Link) drop(d *datagram) {
	l.stats.Drops++
	l.pool.put(d)
}

func (l *Link) service(d *datagram) time.Duration {
	return time.Duration(float64(d.wireBytes()) * 8e9 / l.cfg.Rate)
}

// settle moves every datagram that has left the transmitter by now to the wire.
func (l *Link) settle(now time.Duration) {
	for l.queue.len() > 0 && l.queue.at(0).depart <= now {
		l.leave(l.queue.pop())
		if l.queue.len() > 0 {
			l.queued -= l.queue.at(0).d.wireBytes()
		}
	}
}

// leave counts a datagram and puts it on the wire, unless it is lost there.
func (l *Link) leave(w waiting) {
	wait := w.start - w.enqueued
	l.stats.Packets++
	l.stats.Bytes += int64(w.d.wireBytes())
	l.stats.QueueSum += wait
	l.stats.QueueMax = max(l.stats.QueueMax, wait)
	l.hist.add(wait)
	if l.cfg.Loss > 0 && l.rnd.Float64() < l.cfg.Loss {
		l.stats.Lost++
		l.pool.put(w.d)
		return
	}
	at := w.depart + l.cfg.Delay
	if j := l.cfg.Jitter; j > 0 {
		if l.jitterAt < 0 || w.depart-l.jitterAt >= l.cfg.JitterEpoch {
			l.jitter = time.Duration((2*l.rnd.Float64() - 1) * float64(j))
			l.jitterAt = w.depart
		}
		at += l.jitter
	}
	if g := l.cfg.Grain; g > 0 {
		at = (at + g - 1) / g * g
	}
	if !l.cfg.Reorder {
		at = max(at, l.last)
	}
	l.last = at
	l.wire.push(flying{w.d, at})
	for i := l.wire.len() - 1; i > 0 && l.wire.at(i-1).at > at; i-- {
		*l.wire.at(i), *l.wire.at(i - 1) = *l.wire.at(i - 1), *l.wire.at(i)
	}
}

// reschedule gives what is waiting new departures after the rate changed.
func (l *Link) reschedule(now time.Duration, oldRate float64) {
	if l.cfg.Rate == 0 {
		for l.queue.len() > 0 {
			w := l.queue.pop()
			w.start, w.depart = min(w.start, now), now
			l.leave(w)
		}
		l.queued = 0
		return
	}
	for i := range l.queue.len() {
		w := l.queue.at(i)
		if i == 0 {
			w.depart = now + time.Duration(float64(w.depart-now)*oldRate/l.cfg.Rate)
			continue
		}
		w.start = l.queue.at(i - 1).depart
		w.depart = w.start + l.service(w.d)
	}
}

// next is the next moment at which a datagram may arrive.
func (l *Link) next() time.Duration {
	t := never
	if l.wire.len() > 0 {
		t = l.wire.at(0).at
	}
	if l.queue.len() > 0 {
		t = min(t, l.queue.at(0).depart+l.cfg.Delay-l.cfg.Jitter)
	}
	return t
}

func (l *Link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run delivers datagrams when they arrive.
func (l *Link) run() {
	defer close(l.ended)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		l.mu.Lock()
		now := l.now()
		l.settle(now)
		for l.wire.len() > 0 && l.wire.at(0).at <= now {
			f := l.wire.pop()
			f.d.to.deliver(f.d)
		}
		l.wakeAt = l.next()
		sleep := l.wakeAt - now
		l.mu.Unlock()
		if sleep+now == never {
			timer.Stop() // a timer that never fires would hide a deadlock from synctest
		} else {
			timer.Reset(sleep)
		}
		select {
		case <-timer.C:
		case <-l.wake:
		case <-l.done:
			return
		}
	}
}
