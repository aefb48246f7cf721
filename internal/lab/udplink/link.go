package udplink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
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
)

// Link is a running emulated link.
type Link struct {
	cfg    Config
	server *net.UDPAddr
	front  *net.UDPConn
	began  time.Time
	up     *direction
	down   *direction
	wake   chan struct{} // a packet is under way where none was
	done   chan struct{} // closed when the link ends
	end    func()        // closes done and all sockets, once
	wg     sync.WaitGroup

	mu       sync.Mutex
	ended    bool
	sessions map[netip.AddrPort]*session
}

// session is a client and the socket that stands for it toward the server.
type session struct {
	client *net.UDPAddr
	back   *net.UDPConn
}

// Start runs a link to the server, an IPv4 address, until ctx ends or Close is
// called.
func Start(ctx context.Context, server *net.UDPAddr, cfg Config) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if server.IP.To4() == nil {
		return nil, fmt.Errorf("udplink: server is %v: must be an IPv4 address", server)
	}
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("udplink: listening: %w", err)
	}
	prepareSocket(front)
	if cfg.MaxClients == 0 {
		cfg.MaxClients = 256
	}
	l := &Link{
		cfg:      cfg,
		server:   server,
		front:    front,
		began:    time.Now(),
		up:       newDirection(cfg.Up),
		down:     newDirection(cfg.Down),
		wake:     make(chan struct{}, 1),
		done:     make(chan struct{}),
		sessions: map[netip.AddrPort]*session{},
	}
	l.end = sync.OnceFunc(l.closeAll)
	l.wg.Go(l.readClients)
	l.wg.Go(l.deliver)
	stop := context.AfterFunc(ctx, l.end)
	l.wg.Go(func() {
		<-l.done
		stop()
	})
	return l, nil
}

// Addr is where clients send instead of to the server.
func (l *Link) Addr() *net.UDPAddr { return l.front.LocalAddr().(*net.UDPAddr) }

// Snapshot returns the state of the link now.
func (l *Link) Snapshot() Snapshot {
	now := l.now()
	return Snapshot{Up: l.up.snapshot(now), Down: l.down.snapshot(now)}
}

// Close ends the link, drops what is under way and waits for its goroutines.
func (l *Link) Close() error {
	l.end()
	l.wg.Wait()
	return nil
}

func (l *Link) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	close(l.done)
	_ = l.front.Close()
	for _, s := range l.sessions {
		_ = s.back.Close()
	}
}

// now is the link's clock.
func (l *Link) now() int64 { return int64(time.Since(l.began)) }

// readClients carries what clients send into the up direction.
func (l *Link) readClients() {
	l.read(l.front, l.up, func(from net.Addr) *session { return l.session(from.(*net.UDPAddr)) })
}

// session returns the session of a client, a new one if need be and possible.
func (l *Link) session(client *net.UDPAddr) *session {
	key := client.AddrPort()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sessions[key]; s != nil {
		return s
	}
	if l.ended || len(l.sessions) >= l.cfg.MaxClients {
		return nil
	}
	back, err := net.DialUDP("udp4", nil, l.server)
	if err != nil {
		return nil
	}
	prepareSocket(back)
	s := &session{client: client, back: back}
	l.sessions[key] = s
	l.wg.Go(func() { l.read(back, l.down, func(net.Addr) *session { return s }) })
	return s
}

// read offers all that arrives at conn to a direction until conn is closed.
func (l *Link) read(conn *net.UDPConn, d *direction, sessionOf func(net.Addr) *session) {
	pc := ipv4.NewPacketConn(conn)
	messages := make([]ipv4.Message, batch)
	for i := range messages {
		messages[i].Buffers = [][]byte{make([]byte, bufferBytes)}
		messages[i].OOB = make([]byte, oobBytes)
	}
	var socketDrops uint32
	for {
		n, err := pc.ReadBatch(messages, 0)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// An ICMP error to something sent before. Nothing was read.
			continue
		}
		read := time.Now()
		for i := range messages[:n] {
			m := &messages[i]
			oob := parseOOB(m.OOB[:m.NN])
			if fresh := oob.dropped - socketDrops; oob.known && fresh != 0 {
				socketDrops = oob.dropped
				d.count(func(n *counts) { n.socketDrops += int64(fresh) })
			}
			// The whole buffer used means that the packet may have been longer.
			s := sessionOf(m.Addr)
			if s == nil || m.N == bufferBytes {
				d.count(func(n *counts) { n.refused++ })
				continue
			}
			next, first := d.offer(l.arrival(oob, read), m.Buffers[0], m.N, s)
			m.Buffers[0] = next
			if first {
				select {
				case l.wake <- struct{}{}:
				default:
				}
			}
		}
	}
}

// arrival is when a packet read at that time came in: as stamped by the kernel,
// unless the wall clock was set in between.
func (l *Link) arrival(oob oob, read time.Time) int64 {
	at := int64(read.Sub(l.began))
	if age := read.UnixNano() - oob.arrived; oob.arrived != 0 && age > 0 && age < int64(time.Second) {
		at -= age
	}
	return at
}

func (d *direction) count(f func(*counts)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.n)
}
