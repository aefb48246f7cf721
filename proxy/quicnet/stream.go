package quicnet

import (
	"net"

	"github.com/quic-go/quic-go"
)

// Stream is one stream of a Conn as a net.Conn that can be closed by halves.
// Read and Write honour their deadlines; Read returns io.EOF after the peer's
// CloseWrite.
type Stream struct {
	*quic.Stream
	conn *Conn
}

var _ net.Conn = (*Stream)(nil)

// errCodeClosed tells the peer that nobody reads any more.
const errCodeClosed quic.StreamErrorCode = 0

// CloseWrite ends our direction; what was written is still delivered.
func (s *Stream) CloseWrite() error { return s.Stream.Close() }

// CloseRead says that nothing more will be read; the peer's writes fail.
func (s *Stream) CloseRead() error {
	s.CancelRead(errCodeClosed)
	return nil
}

// Close is CloseRead and CloseWrite.
func (s *Stream) Close() error {
	s.CancelRead(errCodeClosed)
	return s.Stream.Close()
}

func (s *Stream) LocalAddr() net.Addr { return s.conn.LocalAddr() }

// RemoteAddr is where the peer is now.
func (s *Stream) RemoteAddr() net.Addr { return s.conn.RemoteAddr() }
