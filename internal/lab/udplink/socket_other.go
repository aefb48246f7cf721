//go:build unix && !linux

package udplink

import (
	"net"
	"syscall"
	"time"
)

const (
	oobBytes = 0
	dontWait = syscall.MSG_DONTWAIT
)

func prepareSocket(conn *net.UDPConn) {
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
}

type oob struct {
	arrived int64
	dropped uint32
	known   bool
}

func parseOOB([]byte) oob { return oob{} }

func preferThread() {}

func sleep(d time.Duration) { time.Sleep(d) }
