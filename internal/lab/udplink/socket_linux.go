package udplink

import (
	"encoding/binary"
	"net"
	"syscall"
	"time"
	"unsafe"
)

const (
	soRXQOverflow    = 40 // SO_RXQ_OVFL: a count of packets dropped by the socket
	prSetTimerSlack  = 29 // PR_SET_TIMERSLACK, prctl(2)
	oobBytes         = 128
	timespecBytes    = int(unsafe.Sizeof(syscall.Timespec{}))
	scmTimestampNS   = syscall.SO_TIMESTAMPNS
	receiveBufForced = syscall.SO_RCVBUFFORCE
)

// prepareSocket asks for large buffers, for arrival times and for a count of
// drops. What it cannot get shows in the figures.
func prepareSocket(conn *net.UDPConn) {
	_ = conn.SetReadBuffer(socketBuffer)
	_ = conn.SetWriteBuffer(socketBuffer)
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, receiveBufForced, socketBuffer) // root only
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soRXQOverflow, 1)
	})
}

// oob is what the kernel tells of a packet.
type oob struct {
	arrived int64  // wall clock, ns; 0: not told
	dropped uint32 // packets this socket has dropped so far
	known   bool   // dropped is told
}

func parseOOB(b []byte) (o oob) {
	messages, err := syscall.ParseSocketControlMessage(b)
	if err != nil {
		return o
	}
	for _, m := range messages {
		if m.Header.Level != syscall.SOL_SOCKET {
			continue
		}
		switch {
		case m.Header.Type == scmTimestampNS && len(m.Data) >= timespecBytes:
			ts := (*syscall.Timespec)(unsafe.Pointer(&m.Data[0]))
			o.arrived = ts.Nano()
		case m.Header.Type == soRXQOverflow && len(m.Data) >= 4:
			o.dropped, o.known = binary.NativeEndian.Uint32(m.Data), true
		}
	}
	return o
}

// makeSleepsPrecise lets the sleeps of the calling thread end when they are over
// and not up to 50 us later.
func makeSleepsPrecise() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetTimerSlack, 1, 0)
}

// sleep blocks the calling thread. As a raw system call it keeps its processor
// of the Go scheduler: to get one back on a busy machine can take milliseconds.
func sleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}
