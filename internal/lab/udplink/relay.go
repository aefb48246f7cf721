package udplink

import (
	"net"
	"net/netip"
	"runtime"
	"time"

	"golang.org/x/net/ipv4"
)

const (
	// bufferBytes takes every packet of an Ethernet-sized path; larger ones are
	// refused.
	bufferBytes = 2048
	// batch is how many packets one system call reads or writes at most.
	batch = 64
	// socketBuffer holds what arrives while the relay does not run: at 100 Mb/s
	// half a second and more.
	socketBuffer = 8 << 20
	// quantum is the shortest sleep: packets due within it leave together.
	quantum = 200 * time.Microsecond
	// longestSleep bounds how late the relay sees the first packet after silence.
	longestSleep = 2 * time.Millisecond
)

// relay is what moves the packets of a link, on one thread: under load, what
// waits for a second thread or for the Go scheduler waits for milliseconds. All
// of it is the running goroutine's.
type relay struct {
	*Link
	server     *net.UDPAddr
	maxClients int
	pollEvery  time.Duration // an arrival is seen this soon, well before it is due

	front    *endpoint
	sessions []*session
	byClient map[netip.AddrPort]*session

	in, out []ipv4.Message
	due     []packet
}

// endpoint is a socket of the relay's.
type endpoint struct {
	conn  *net.UDPConn
	batch *ipv4.PacketConn
	drops uint32 // as last told by the kernel
}

func newEndpoint(conn *net.UDPConn) *endpoint {
	return &endpoint{conn: conn, batch: ipv4.NewPacketConn(conn)}
}

// session is a client and the socket that stands for it toward the server.
type session struct {
	client *net.UDPAddr
	back   *endpoint
}

func newRelay(l *Link, server *net.UDPAddr, cfg Config) *relay {
	r := &relay{
		Link:       l,
		server:     server,
		maxClients: cfg.MaxClients,
		pollEvery:  min(max(min(cfg.Up.Delay, cfg.Down.Delay)/4, quantum), longestSleep),
		front:      newEndpoint(l.front),
		byClient:   map[netip.AddrPort]*session{},
		in:         make([]ipv4.Message, batch),
		out:        make([]ipv4.Message, batch),
		due:        make([]packet, batch),
	}
	for i := range batch {
		r.in[i].Buffers = [][]byte{make([]byte, bufferBytes)}
		r.in[i].OOB = make([]byte, oobBytes)
		r.out[i].Buffers = make([][]byte, 1)
	}
	return r
}

// run relays until the link ends.
func (r *relay) run() {
	runtime.LockOSThread() // ends with the goroutine, and the thread with it
	preferThread()
	defer func() {
		_ = r.front.conn.Close()
		for _, s := range r.sessions {
			_ = s.back.conn.Close()
		}
	}()
	for {
		select {
		case <-r.done:
			return
		default:
		}
		r.receive(r.front, r.up, nil)
		for _, s := range r.sessions {
			r.receive(s.back, r.down, s)
		}
		wait := min(r.deliver(r.up), r.deliver(r.down), r.pollEvery)
		sleep(max(wait, quantum))
	}
}

// receive offers what has arrived at a socket to a direction. Packets of a
// session's socket are that session's; those of the front socket are their
// sender's.
func (r *relay) receive(e *endpoint, d *direction, from *session) {
	for {
		n, err := e.batch.ReadBatch(r.in, dontWait)
		if err != nil || n <= 0 {
			return // nothing there, or an ICMP error to something sent before
		}
		read := time.Now()
		for i := range r.in[:n] {
			m := &r.in[i]
			told := parseOOB(m.OOB[:m.NN])
			if told.known && told.dropped != e.drops {
				fresh := told.dropped - e.drops
				e.drops = told.dropped
				d.count(func(n *counts) { n.socketDrops += int64(fresh) })
			}
			s := from
			if s == nil {
				s = r.sessionOf(m.Addr.(*net.UDPAddr))
			}
			// A full buffer means that the packet may have been longer.
			if s == nil || m.N == bufferBytes {
				d.count(func(n *counts) { n.refused++ })
				continue
			}
			m.Buffers[0] = d.offer(r.arrival(told, read), m.Buffers[0], m.N, s)
		}
		if n < len(r.in) {
			return
		}
	}
}

// arrival is when a packet read at that time came in: as stamped by the kernel,
// unless the wall clock was set in between.
func (l *Link) arrival(told oob, read time.Time) int64 {
	at := int64(read.Sub(l.began))
	if age := read.UnixNano() - told.arrived; told.arrived != 0 && age > 0 && age < int64(time.Second) {
		at -= age
	}
	return at
}

// sessionOf returns the session of a client, a new one if need be and possible.
func (r *relay) sessionOf(client *net.UDPAddr) *session {
	key := client.AddrPort()
	if s := r.byClient[key]; s != nil {
		return s
	}
	if len(r.sessions) >= r.maxClients {
		return nil
	}
	conn, err := net.DialUDP("udp4", nil, r.server)
	if err != nil {
		return nil
	}
	prepareSocket(conn)
	s := &session{client: client, back: newEndpoint(conn)}
	r.byClient[key] = s
	r.sessions = append(r.sessions, s)
	return s
}

// deliver hands on all that is due in a direction; it returns how long it is to
// the next.
func (r *relay) deliver(d *direction) time.Duration {
	for {
		now := r.now()
		n, next := d.takeDue(now, r.due)
		if n > 0 {
			r.send(d, r.due[:n])
		}
		if n < len(r.due) {
			return time.Duration(next - now)
		}
	}
}

// send writes packets, with one system call for those that leave by one socket.
func (r *relay) send(d *direction, packets []packet) {
	toClients := d == r.down
	var bytes, failed int64
	for from := 0; from < len(packets); {
		s, to := packets[from].session, from
		for to < len(packets) && (toClients || packets[to].session == s) {
			m := &r.out[to]
			m.Buffers[0], m.Addr = packets[to].payload, nil
			if toClients {
				m.Addr = packets[to].session.client
			}
			to++
		}
		e := s.back
		if toClients {
			e = r.front
		}
		n, err := e.batch.WriteBatch(r.out[from:to], 0)
		if err != nil || n <= 0 {
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
	d.done(packets, bytes, failed)
}
