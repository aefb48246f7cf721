package proxy

import (
	"net"
	"net/netip"
	"sync"
)

// admission counts client connections, TCP and QUIC together, and says whether
// one more may come in.
type admission struct {
	maxTotal, maxPerAddress int

	mu    sync.Mutex
	total int
	per   map[netip.Prefix]int // no entry for 0
}

// refusal is the limit that keeps a connection out.
type refusal string

const (
	admitted         refusal = ""
	refusedByTotal   refusal = "total"
	refusedByAddress refusal = "address"
)

func newAdmission(maxTotal, maxPerAddress int) *admission {
	return &admission{maxTotal: maxTotal, maxPerAddress: maxPerAddress, per: make(map[netip.Prefix]int)}
}

// admit counts a connection from remote in, until release is called; calling
// it again does nothing. A refused connection has no release.
func (a *admission) admit(remote net.Addr) (release func(), r refusal) {
	client := clientPrefix(remote)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.total >= a.maxTotal:
		return nil, refusedByTotal
	case a.per[client] >= a.maxPerAddress:
		return nil, refusedByAddress
	}
	a.total++
	a.per[client]++
	return sync.OnceFunc(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.total--
		if a.per[client]--; a.per[client] == 0 {
			delete(a.per, client)
		}
	}), admitted
}

// clientPrefix is what counts as one client: an IPv4 address, or the /64 that
// IPv6 gives to one site (anything narrower costs an attacker nothing).
// Addresses that are not IP count as one client.
func clientPrefix(a net.Addr) netip.Prefix {
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := ap.Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}

// limitListener closes connections that admission refuses, and hands out the
// others as *clientConn.
type limitListener struct {
	net.Listener
	admission *admission
	metrics   *metrics
}

func (l *limitListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		release, why := l.admission.admit(c.RemoteAddr())
		if why != admitted {
			l.metrics.connectionsRefused.WithLabelValues("tcp", string(why)).Inc()
			_ = c.Close()
			continue
		}
		return &clientConn{Conn: c, release: release, metrics: l.metrics}, nil
	}
}

// clientConn is one admitted TCP connection; closing it gives its place back.
type clientConn struct {
	net.Conn
	release func()
	metrics *metrics

	mu       sync.Mutex
	protocol string // "h1", "h2"; empty until the handshake said which
	closed   bool
}

// speaks notes the protocol that the TLS handshake chose.
func (c *clientConn) speaks(protocol string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.protocol == "" && !c.closed {
		c.protocol = protocol
		c.metrics.connectionOpened(protocol)
	}
}

func (c *clientConn) Close() error {
	err := c.Conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.release()
		if c.protocol != "" {
			c.metrics.connectionClosed(c.protocol)
		}
	}
	return err
}
