package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"fastpacs/proxy/quicnet"
)

// portTries bounds the search for a port that is free for both TCP and UDP.
const portTries = 16

// sockets are the two ends of one address: TCP for HTTP/1.1 and 2, UDP for
// HTTP/3.
type sockets struct {
	tcp net.Listener
	udp *net.UDPConn // nil without HTTP/3
}

// listen opens addr for TCP and, if wanted, the same address and port for UDP.
// With port 0 the kernel picks a free TCP port; the UDP port of that number may
// be taken, and then another is tried.
func listen(ctx context.Context, addr string, udp bool) (sockets, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return sockets{}, fmt.Errorf("proxy: listening on %s: %w", addr, err)
	}
	for try := 1; ; try++ {
		tcp, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return sockets{}, fmt.Errorf("proxy: listening on %s: %w", addr, err)
		}
		if !udp {
			return sockets{tcp: tcp}, nil
		}
		got := net.JoinHostPort(host, strconv.Itoa(portOf(tcp.Addr())))
		pc, err := quicnet.ListenUDP(got)
		if err == nil {
			return sockets{tcp, pc}, nil
		}
		_ = tcp.Close()
		if port != "0" || try == portTries || !errors.Is(err, syscall.EADDRINUSE) {
			return sockets{}, fmt.Errorf("proxy: listening for HTTP/3: %w", err)
		}
	}
}

func (s sockets) close() {
	_ = s.tcp.Close()
	if s.udp != nil {
		_ = s.udp.Close()
	}
}

func portOf(a net.Addr) int {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.Port
	}
	return 0
}
