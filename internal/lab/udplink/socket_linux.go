package udplink

import (
	"encoding/binary"
	"net"
	"syscall"
	"time"
)

const (
	// soRXQOverflow is SO_RXQ_OVFL: a count of the packets the socket dropped.
	soRXQOverflow = 40
	oobBytes      = 128
	dontWait      = syscall.MSG_DONTWAIT
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
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUFFORCE, socketBuffer) // root only
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
		case m.Header.Type == syscall.SO_TIMESTAMPNS && len(m.Data) == 16: // struct timespec
			seconds := binary.NativeEndian.Uint64(m.Data)
			o.arrived = int64(seconds)*1e9 + int64(binary.NativeEndian.Uint64(m.Data[8:]))
		case m.Header.Type == soRXQOverflow && len(m.Data) == 4:
			o.dropped, o.known = binary.NativeEndian.Uint32(m.Data), true
		}
	}
	return o
}

// preferThread has the calling thread run soon after it wants to: its sleeps end
// when they are over and not up to 50 us later and, for root, before the turn of
// other threads.
func preferThread() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, 1, 0)
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, -20) // of this thread alone
}

// sleep blocks the calling thread, to some 50 us exactly.
func sleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal may end it early: no harm
}
