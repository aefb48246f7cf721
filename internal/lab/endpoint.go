package lab

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"
)

// inboxLimit bounds the datagrams an Endpoint holds for its reader, about what
// a socket with a 7 MB receive buffer holds.
const inboxLimit = 4096

// Endpoint is a net.PacketConn on a Network, for one reader at a time.
type Endpoint struct {
	net  *Network
	addr *net.UDPAddr
	out  *Link

	ready  chan struct{} // something for the reader to look at
	closed chan struct{}
	once   sync.Once

	mu         sync.Mutex
	inbox      fifo[*datagram]
	overflows  int64
	deadline   time.Time
	lastAddr   net.Addr // the last destination and where it leads
	lastTarget *Endpoint
}

var _ net.PacketConn = (*Endpoint)(nil)

func newEndpoint(n *Network, addr netip.AddrPort, out *Link) *Endpoint {
	return &Endpoint{
		net: n, addr: net.UDPAddrFromAddrPort(addr), out: out,
		ready: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// deliver hands a datagram to the reader, or drops it if the inbox is full.
func (e *Endpoint) deliver(d *datagram) {
	e.mu.Lock()
	if e.inbox.len() >= inboxLimit {
		e.overflows++
		e.net.pool.put(d)
	} else {
		e.inbox.push(d)
	}
	e.mu.Unlock()
	e.signal()
}

func (e *Endpoint) signal() {
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

// Overflows is the number of datagrams dropped because nobody read them.
func (e *Endpoint) Overflows() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.overflows
}

// ReadFrom returns the next datagram; one longer than p is cut.
func (e *Endpoint) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		e.mu.Lock()
		deadline := e.deadline
		var d *datagram
		if e.inbox.len() > 0 {
			d = e.inbox.pop()
		}
		e.mu.Unlock()
		if d != nil {
			n, from := copy(p, d.buf[:d.n]), d.from
			e.net.pool.put(d)
			return n, from, nil
		}
		if err := e.wait(deadline); err != nil {
			return 0, nil, &net.OpError{Op: "read", Net: "udp", Addr: e.addr, Err: err}
		}
	}
}

// wait returns when there may be something to read, or an error when there will
// not be.
func (e *Endpoint) wait(deadline time.Time) error {
	var expired <-chan time.Time
	if !deadline.IsZero() {
		left := time.Until(deadline)
		if left <= 0 {
			return os.ErrDeadlineExceeded
		}
		t := time.NewTimer(left)
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-e.closed:
		return net.ErrClosed
	case <-e.ready:
		return nil
	case <-expired:
		return os.ErrDeadlineExceeded
	}
}

// WriteTo sends a datagram; one to an unknown address is lost without a word.
func (e *Endpoint) WriteTo(p []byte, to net.Addr) (int, error) {
	select {
	case <-e.closed:
		return 0, e.writeError(net.ErrClosed)
	default:
	}
	if len(p) > maxPayload {
		return 0, e.writeError(fmt.Errorf("%d bytes, at most %d fit: %w", len(p), maxPayload, syscall.EMSGSIZE))
	}
	e.mu.Lock()
	if to != e.lastAddr {
		e.lastAddr, e.lastTarget = to, e.net.find(to)
	}
	target := e.lastTarget
	e.mu.Unlock()
	if target != nil {
		d := e.net.pool.get()
		d.from, d.to = e.addr, target
		d.n = copy(d.buf[:], p)
		e.out.send(d)
	}
	return len(p), nil
}

func (e *Endpoint) writeError(err error) error {
	return &net.OpError{Op: "write", Net: "udp", Addr: e.addr, Err: err}
}

// Close ends the reader's call and frees the address.
func (e *Endpoint) Close() error {
	e.once.Do(func() {
		close(e.closed)
		e.net.remove(e.addr.AddrPort())
	})
	return nil
}

// LocalAddr returns the end point's address, a *net.UDPAddr.
func (e *Endpoint) LocalAddr() net.Addr { return e.addr }

// SetReadDeadline bounds the present and later calls of ReadFrom.
func (e *Endpoint) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	e.deadline = t
	e.mu.Unlock()
	e.signal()
	return nil
}

// SetWriteDeadline does nothing: a write never blocks.
func (e *Endpoint) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is SetReadDeadline.
func (e *Endpoint) SetDeadline(t time.Time) error { return e.SetReadDeadline(t) }

// SetReadBuffer does nothing: the inbox has a fixed bound.
func (e *Endpoint) SetReadBuffer(int) error { return nil }

// SetWriteBuffer does nothing: writes go straight to the link.
func (e *Endpoint) SetWriteBuffer(int) error { return nil }
