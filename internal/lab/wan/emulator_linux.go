package wan

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// batch bounds how many packets are read from one side before those that are due
// get their turn.
const batch = 64

// emulator moves packets between two TUN devices. It owns them.
type emulator struct {
	client, server int // their descriptors, which do not block
	wake           int // eventfd that ends run
	gone           chan struct{}

	mu       sync.Mutex
	up, down *direction
	buf      []byte
}

func startEmulator(client, server int, link Link) (*emulator, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("wan: making an event descriptor: %w", err)
	}
	e := &emulator{
		client: client, server: server, wake: wake, gone: make(chan struct{}),
		up: newDirection(link.Up), down: newDirection(link.Down), buf: make([]byte, bufferBytes),
	}
	go func() {
		defer close(e.gone)
		e.run()
	}()
	return e, nil
}

// set starts a new link with no packets in it and all counters at zero.
func (e *emulator) set(link Link) {
	e.mu.Lock()
	defer e.mu.Unlock()
	spareUp, spareDown := e.up.spare, e.down.spare
	e.up, e.down = newDirection(link.Up), newDirection(link.Down)
	e.up.spare, e.down.spare = spareUp, spareDown
}

func (e *emulator) stats() (up, down Stats) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.up.n.stats(), e.down.n.stats()
}

// close ends the thread, then the devices.
func (e *emulator) close() {
	_, _ = unix.Write(e.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot block: written once
	<-e.gone
	_ = unix.Close(e.wake)
	_ = unix.Close(e.client)
	_ = unix.Close(e.server)
}

func (e *emulator) run() {
	runtime.LockOSThread()                             // ends with the goroutine, and the thread with it
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // sleeps end when they are over
	fds := []unix.PollFd{
		{Fd: int32(e.client), Events: unix.POLLIN}, {Fd: int32(e.server), Events: unix.POLLIN}, {Fd: int32(e.wake), Events: unix.POLLIN},
	}
	for {
		next := e.turn()
		var timeout *unix.Timespec // nil: until a packet comes
		if next != math.MaxInt64 {
			ts := unix.NsecToTimespec(max(next-now(), 0))
			timeout = &ts
		}
		if _, err := unix.Ppoll(fds, timeout, nil); err != nil && err != unix.EINTR {
			return // not with descriptors of our own
		}
		if fds[2].Revents != 0 {
			return
		}
	}
}

// turn moves all that can be moved; it returns when there is more to do.
func (e *emulator) turn() (next int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	toClient := func(p []byte) error { _, err := unix.Write(e.client, p); return err }
	toServer := func(p []byte) error { _, err := unix.Write(e.server, p); return err }
	for {
		e.down.deliver(now(), toClient)
		e.up.deliver(now(), toServer)
		up, down := e.take(e.client, e.up), e.take(e.server, e.down)
		if next := min(e.up.next(), e.down.next()); !up && !down && next > now() {
			return next
		}
	}
}

// take reads a batch; it reports whether there may be more.
func (e *emulator) take(from int, d *direction) bool {
	for range batch {
		n, err := unix.Read(from, e.buf)
		if err != nil || n <= 0 {
			return false
		}
		e.buf = d.offer(now(), e.buf[:bufferBytes], n)
	}
	return true
}

// now is the monotonic clock of the machine, in ns.
func now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("wan: the monotonic clock: %v", err)) // it exists on every Linux
	}
	return ts.Nano()
}

// quiet waits until no packet was sent for a moment, or the limit has passed.
func (e *emulator) quiet(moment, limit time.Duration) {
	var last int64 = -1
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(moment) {
		up, down := e.stats()
		n := up.Offered + down.Offered
		if n == last {
			return
		}
		last = n
	}
}
