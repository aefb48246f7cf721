package udplink

import (
	"runtime"
	"time"

	"golang.org/x/net/ipv4"
)

const (
	// quantum is the shortest sleep: packets due within it leave together.
	quantum = 200 * time.Microsecond
	// coarse is how long before a due time the coarse timer of the Go scheduler
	// hands over to the precise one.
	coarse = 3 * time.Millisecond
)

// deliver hands packets on when they are due until the link ends. It keeps a
// thread to itself, since the sleeps of the Go scheduler last a millisecond or
// more.
func (l *Link) deliver() {
	runtime.LockOSThread() // ends with the goroutine, and the thread with it
	preferThread()
	front := ipv4.NewPacketConn(l.front)
	up := deliverer{
		packets: make([]packet, batch), messages: newMessages(),
		write: func(ms []ipv4.Message, s *session) (int, error) { return ipv4.NewPacketConn(s.back).WriteBatch(ms, 0) },
	}
	down := deliverer{
		packets: make([]packet, batch), messages: newMessages(), toClient: true,
		write: func(ms []ipv4.Message, _ *session) (int, error) { return front.WriteBatch(ms, 0) },
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		nextUp, moreUp, ok := up.run(l, l.up)
		if !ok {
			return
		}
		nextDown, moreDown, ok := down.run(l, l.down)
		if !ok {
			return
		}
		next := nextUp
		if !moreUp || moreDown && nextDown < nextUp {
			next = nextDown
		}
		wait := time.Duration(next - l.now())
		switch {
		case !moreUp && !moreDown:
			select {
			case <-l.done:
				return
			case <-l.wake:
			}
		case wait > coarse:
			timer.Reset(wait - coarse)
			select {
			case <-l.done:
				return
			case <-l.wake:
			case <-timer.C:
			}
		default:
			sleep(max(wait, quantum))
		}
	}
}

// deliverer writes the due packets of one direction.
type deliverer struct {
	packets  []packet
	messages []ipv4.Message
	toClient bool
	write    func([]ipv4.Message, *session) (int, error)
}

func newMessages() []ipv4.Message {
	ms := make([]ipv4.Message, batch)
	for i := range ms {
		ms[i].Buffers = make([][]byte, 1)
	}
	return ms
}

// run writes all that is due; it returns when the next packet is due, and false
// when the link has ended.
func (w *deliverer) run(l *Link, d *direction) (next int64, more, ok bool) {
	for {
		select {
		case <-l.done:
			return 0, false, false
		default:
		}
		var n int
		n, next, more = d.due(l.now(), w.packets)
		if n > 0 {
			w.send(d, w.packets[:n])
		}
		if n < len(w.packets) {
			return next, more, true
		}
	}
}

func (w *deliverer) send(d *direction, packets []packet) {
	var bytes int64
	var failed int64
	for from := 0; from < len(packets); {
		// One system call for packets that leave by the same socket.
		s, to := packets[from].session, from
		for to < len(packets) && (w.toClient || packets[to].session == s) {
			m := &w.messages[to]
			m.Buffers[0] = packets[to].payload
			m.Addr = nil
			if w.toClient {
				m.Addr = packets[to].session.client
			}
			to++
		}
		n, err := w.write(w.messages[from:to], s)
		if err != nil || n == 0 {
			// The first one is passed over; with a connected socket the error may
			// be an ICMP answer to an earlier one.
			failed++
			n = 1
		} else {
			for _, p := range packets[from : from+n] {
				bytes += int64(len(p.payload) + headerBytes)
			}
		}
		from += n
	}
	d.done(packets, bytes)
	if failed > 0 {
		d.count(func(n *counts) { n.writeErrors += failed })
	}
}
