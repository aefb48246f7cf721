package quicnet

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"

	"github.com/quic-go/quic-go"
)

// Listener accepts raw QUIC connections.
type Listener struct {
	tr   *quic.Transport
	ln   *quic.Listener
	gate *gate
}

// Listen accepts connections on pc, which the caller closes after Close.
// tlsConf names the certificates and, in NextProtos, the application protocols.
func Listen(pc net.PacketConn, tlsConf *tls.Config, cfg Config) (*Listener, error) {
	qc, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	g := &gate{retryAbove: int64(cfg.RetryAbove)}
	tr := &quic.Transport{Conn: pc}
	g.guard(tr)
	ln, err := tr.Listen(tlsConf, qc)
	if err != nil {
		_ = tr.Close()
		return nil, fmt.Errorf("quicnet: listening on %v: %w", pc.LocalAddr(), err)
	}
	return &Listener{tr, ln, g}, nil
}

// Accept waits for the next connection whose handshake is complete.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	c, err := l.ln.Accept(ctx)
	if err != nil {
		return nil, fmt.Errorf("quicnet: accepting on %v: %w", l.Addr(), err)
	}
	l.gate.entered(c.Context())
	return newConn(c, false)
}

func (l *Listener) Addr() net.Addr { return l.ln.Addr() }

// Close stops listening and drops the connections that were accepted and not
// closed. It leaves the socket open.
func (l *Listener) Close() error {
	err := l.ln.Close()
	if cerr := l.tr.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("quicnet: closing the listener on %v: %w", l.Addr(), err)
	}
	return nil
}

// Dial connects to addr through pc, which serves this connection alone and is
// closed by the caller after the Conn.
func Dial(ctx context.Context, pc net.PacketConn, addr net.Addr, tlsConf *tls.Config, cfg Config) (*Conn, error) {
	qc, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	tr := &quic.Transport{Conn: pc}
	c, err := tr.Dial(ctx, addr, tlsConf, qc)
	if err != nil {
		_ = tr.Close()
		return nil, fmt.Errorf("quicnet: dialling %v: %w", addr, err)
	}
	conn, err := newConn(c, true)
	if err != nil {
		_ = tr.Close()
		return nil, err
	}
	conn.own = tr
	return conn, nil
}
