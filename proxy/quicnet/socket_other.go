//go:build !linux

package quicnet

import (
	"errors"
	"net"
)

func enlargeBuffers(pc *net.UDPConn) {
	_ = pc.SetReadBuffer(WantedBuffer)
	_ = pc.SetWriteBuffer(WantedBuffer)
}

func readBuffers(*net.UDPConn) (Buffers, error) {
	return Buffers{}, errors.New("not known on this system")
}
