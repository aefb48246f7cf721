package quicnet

import (
	"fmt"
	"net"
)

// Socket buffer sizes to ask for, in bytes. quic-go wants 7 MiB.
const wantedBuffer = 7 << 20

// ListenUDP opens a UDP socket on addr ("host:port") with buffers large enough
// for QUIC at high rates.
func ListenUDP(addr string) (*net.UDPConn, error) {
	a, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		return nil, fmt.Errorf("quicnet: resolving %s: %w", addr, err)
	}
	pc, err := net.ListenUDP("udp", a)
	if err != nil {
		return nil, fmt.Errorf("quicnet: listening on %s: %w", addr, err)
	}
	return pc, nil
}
