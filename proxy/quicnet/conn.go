package quicnet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/quic-go/quic-go"
)

// Conn is a QUIC connection that carries streams both ways.
type Conn struct {
	conn *quic.Conn
	live *liveConn
	// own is the transport of a dialled connection, which ends with it.
	own *quic.Transport
}

func newConn(conn *quic.Conn, client bool) (*Conn, error) {
	live, err := opened(conn, client)
	if err != nil {
		_ = conn.CloseWithError(0, "")
		return nil, err
	}
	return &Conn{conn: conn, live: live}, nil
}

// OpenStream opens a stream, waiting until the peer allows another one. The peer
// learns of it with the first byte written.
func (c *Conn) OpenStream(ctx context.Context) (*Stream, error) {
	s, err := c.conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, fmt.Errorf("quicnet: opening a stream to %v: %w", c.RemoteAddr(), err)
	}
	return &Stream{s, c}, nil
}

// AcceptStream waits for the next stream of the peer.
func (c *Conn) AcceptStream(ctx context.Context) (*Stream, error) {
	s, err := c.conn.AcceptStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("quicnet: accepting a stream of %v: %w", c.RemoteAddr(), err)
	}
	return &Stream{s, c}, nil
}

// Path returns the path the connection sends on now.
func (c *Conn) Path() Path { return c.live.path() }

// TLS returns what the handshake agreed on.
func (c *Conn) TLS() tls.ConnectionState { return c.conn.ConnectionState().TLS }

// Context ends with the connection; its cause is why.
func (c *Conn) Context() context.Context { return c.conn.Context() }

func (c *Conn) LocalAddr() net.Addr { return c.conn.LocalAddr() }

// RemoteAddr is where the peer is now: it changes when the peer migrates.
func (c *Conn) RemoteAddr() net.Addr { return c.live.remoteAddr() }

// Close ends the connection at once: data not yet sent is lost.
func (c *Conn) Close() error { return c.CloseWithError(0, "") }

// CloseWithError is Close with an application error code and a reason, which the
// peer is told.
func (c *Conn) CloseWithError(code uint64, reason string) error {
	err := c.conn.CloseWithError(quic.ApplicationErrorCode(code), reason)
	if c.own != nil {
		if cerr := c.own.Close(); err == nil {
			err = cerr
		}
	}
	if err != nil {
		return fmt.Errorf("quicnet: closing the connection to %v: %w", c.RemoteAddr(), err)
	}
	return nil
}
