package quicnet

import (
	"errors"
	"fmt"
	"net"
)

// WantedBuffer is the size of each socket buffer QUIC wants at high rates, in
// bytes: room for what arrives while the process does not run.
const WantedBuffer = 7 << 20

// ListenUDP opens a UDP socket on addr ("host:port") and enlarges its buffers to
// WantedBuffer, as far as the kernel lets it: see BuffersOf.
func ListenUDP(addr string) (*net.UDPConn, error) {
	a, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("quicnet: resolving %s: %w", addr, err)
	}
	pc, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, fmt.Errorf("quicnet: listening on %s: %w", addr, err)
	}
	// What was got is for BuffersOf to tell; a small buffer is slow, not wrong.
	enlargeBuffers(pc)
	return pc, nil
}

// Buffers are the sizes of a socket's buffers in bytes, as the kernel counts
// them: on Linux twice what can be used.
type Buffers struct {
	Receive, Send int
}

// BuffersOf returns what pc has got.
func BuffersOf(pc *net.UDPConn) (Buffers, error) {
	b, err := readBuffers(pc)
	if err != nil {
		return Buffers{}, fmt.Errorf("quicnet: reading the buffer sizes of %v: %w", pc.LocalAddr(), err)
	}
	return b, nil
}

// Check names the buffers that are below WantedBuffer and the setting of the
// system that has to be raised.
func (b Buffers) Check() error {
	check := func(name string, size int, sysctl string) error {
		if size >= WantedBuffer {
			return nil
		}
		return fmt.Errorf("quicnet: the UDP %s buffer has %d KiB of %d KiB: set sysctl %s=%d",
			name, size>>10, WantedBuffer>>10, sysctl, WantedBuffer)
	}
	return errors.Join(
		check("receive", b.Receive, "net.core.rmem_max"),
		check("send", b.Send, "net.core.wmem_max"),
	)
}
