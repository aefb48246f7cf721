package quicnet

import (
	"errors"
	"net"
	"syscall"
)

// enlargeBuffers asks for WantedBuffer within the system's limit first, and then
// beyond it, which needs CAP_NET_ADMIN.
func enlargeBuffers(pc *net.UDPConn) {
	b, err := readBuffers(pc)
	if err != nil {
		return
	}
	if b.Receive < WantedBuffer {
		_ = pc.SetReadBuffer(WantedBuffer)
	}
	if b.Send < WantedBuffer {
		_ = pc.SetWriteBuffer(WantedBuffer)
	}
	if b, err = readBuffers(pc); err != nil || b.Check() == nil {
		return
	}
	raw, err := pc.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if b.Receive < WantedBuffer {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, WantedBuffer)
		}
		if b.Send < WantedBuffer {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUFFORCE, WantedBuffer)
		}
	})
}

func readBuffers(pc *net.UDPConn) (b Buffers, err error) {
	raw, err := pc.SyscallConn()
	if err != nil {
		return b, err
	}
	var rerr, serr error
	err = raw.Control(func(fd uintptr) {
		b.Receive, rerr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF)
		b.Send, serr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF)
	})
	return b, errors.Join(err, rerr, serr)
}
