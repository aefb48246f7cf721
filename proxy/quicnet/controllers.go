package quicnet

import (
	"context"
	"net"
	"sync"

	"github.com/quic-go/quic-go"

	"fastpacs/cc"
)

// Path is the path a connection sends on at the moment.
type Path struct {
	Remote   net.Addr
	Client   bool        // we dialled
	Snapshot cc.Snapshot // with cc.LawReno only what quic-go tells: RTTs, window, packets
}

// Totals are sums over all connections there have been. None ever decreases.
type Totals struct {
	Connections uint64 // that began a handshake
	Migrations  uint64 // to another path
	PacketsSent uint64 // ack-eliciting; with cc.LawReno all
	PacketsLost uint64 // declared lost
}

func (t *Totals) add(u Totals) {
	t.Connections += u.Connections
	t.Migrations += u.Migrations
	t.PacketsSent += u.PacketsSent
	t.PacketsLost += u.PacketsLost
}

// Controllers knows the live connections of one or more Configs, and sums up
// those that have ended. It holds one entry a connection, from its first packet
// to its end. The zero value is ready; all methods are safe for concurrent use.
type Controllers struct {
	mu      sync.Mutex
	live    map[*liveConn]struct{}
	ended   Totals
	told    Totals // the largest values Totals has returned
	onClose func(Path)
}

// Each calls f for the path of every live connection, in no order. f may call
// back into c.
func (c *Controllers) Each(f func(Path)) {
	c.mu.Lock()
	live := make([]*liveConn, 0, len(c.live))
	for l := range c.live {
		live = append(live, l)
	}
	c.mu.Unlock()
	for _, l := range live {
		f(l.path())
	}
}

// Len is the number of live connections.
func (c *Controllers) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.live)
}

// Totals sums up all connections, live ones as of now.
func (c *Controllers) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := c.ended
	for l := range c.live {
		sum.add(l.totals())
	}
	// A controller takes spurious losses back; a counter must not go down.
	c.told = Totals{
		Connections: max(c.told.Connections, sum.Connections),
		Migrations:  max(c.told.Migrations, sum.Migrations),
		PacketsSent: max(c.told.PacketsSent, sum.PacketsSent),
		PacketsLost: max(c.told.PacketsLost, sum.PacketsLost),
	}
	return c.told
}

// OnClose sets a function to be called with the last path of each connection
// that ends, from a goroutine of its own. It replaces an earlier one.
func (c *Controllers) OnClose(f func(Path)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onClose = f
}

func (c *Controllers) add(l *liveConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.live = make(map[*liveConn]struct{})
	}
	c.live[l] = struct{}{}
}

func (c *Controllers) remove(l *liveConn) {
	c.mu.Lock()
	delete(c.live, l)
	c.ended.add(l.totals())
	f := c.onClose
	c.mu.Unlock()
	if f != nil {
		f(l.path())
	}
}

// liveConn is one connection and the controller of its current path.
type liveConn struct {
	registry *Controllers // may be nil

	mu     sync.Mutex
	conn   *quic.Conn // nil until the first path is known
	client bool
	remote net.Addr      // of the first path
	ctl    cc.Controller // nil: quic-go's own
	past   Totals        // of paths left behind

	http *httpConn // set by HTTPServer before the connection is served
}

// onPath is told of the connection's first path and of every later one.
func (l *liveConn) onPath(conn *quic.Conn, client bool, ctl cc.Controller) {
	l.mu.Lock()
	first := l.conn == nil
	if first {
		l.conn, l.client, l.remote = conn, client, conn.RemoteAddr()
		l.past.Connections = 1
	} else {
		if l.ctl != nil {
			s := l.ctl.Snapshot()
			l.past.PacketsSent += s.PacketsSent
			l.past.PacketsLost += s.PacketsLost
		}
		l.past.Migrations++
	}
	l.ctl = ctl
	l.mu.Unlock()
	if first && l.registry != nil {
		l.registry.add(l)
		context.AfterFunc(conn.Context(), func() { l.registry.remove(l) })
	}
}

func (l *liveConn) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn != nil
}

func (l *liveConn) path() Path {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Path{Remote: l.remoteLocked(), Client: l.client, Snapshot: l.snapshotLocked()}
}

func (l *liveConn) remoteAddr() net.Addr {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remoteLocked()
}

// remoteLocked is where the peer is now. Only clients migrate, so a client's
// peer stays; and quic-go lets RemoteAddr race with a client's own migration.
func (l *liveConn) remoteLocked() net.Addr {
	if l.client {
		return l.remote
	}
	return l.conn.RemoteAddr()
}

func (l *liveConn) snapshotLocked() cc.Snapshot {
	if l.ctl != nil {
		return l.ctl.Snapshot()
	}
	s := l.conn.ConnectionStats()
	return cc.Snapshot{
		Law:         cc.LawReno,
		RTT:         s.SmoothedRTT,
		BaseRTT:     s.MinRTT,
		Window:      int64(s.CongestionWindow),
		PacketsSent: s.PacketsSent,
		PacketsLost: s.PacketsLost,
	}
}

func (l *liveConn) totals() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.past
	s := l.snapshotLocked()
	t.PacketsSent += s.PacketsSent
	t.PacketsLost += s.PacketsLost
	return t
}
