package proxy

import (
	"io"
	"net"
	"time"
)

// tunnelConn is the client's side of a websocket. The relay reads what goes
// upstream from it and writes what comes back to it, so it sees all progress.
type tunnelConn struct {
	net.Conn
	idle  time.Duration
	timer *time.Timer
}

// newTunnelConn calls end once when neither direction moved for idle.
func newTunnelConn(c net.Conn, idle time.Duration, end func()) *tunnelConn {
	return &tunnelConn{c, idle, time.AfterFunc(idle, end)}
}

func (t *tunnelConn) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.timer.Reset(t.idle)
	return n, err
}

func (t *tunnelConn) Write(p []byte) (int, error) {
	t.Conn.SetWriteDeadline(time.Now().Add(t.idle))
	n, err := t.Conn.Write(p)
	t.timer.Reset(t.idle)
	return n, err
}

// CloseWrite passes on that the upstream has finished.
func (t *tunnelConn) CloseWrite() error {
	if c, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return io.ErrClosedPipe
}

func (t *tunnelConn) Close() error {
	t.timer.Stop()
	return t.Conn.Close()
}
