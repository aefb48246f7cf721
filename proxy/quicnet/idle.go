package quicnet

import (
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// idleTimer closes an HTTP/3 connection on which no handler has run for timeout.
type idleTimer struct {
	mu      sync.Mutex
	timeout time.Duration
	running int // handlers
	timer   *time.Timer
	ended   bool
}

func newIdleTimer(timeout time.Duration, conn *quic.Conn) *idleTimer {
	t := &idleTimer{timeout: timeout}
	t.timer = time.AfterFunc(timeout, func() {
		if t.expired() {
			_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "idle")
		}
	})
	return t
}

func (t *idleTimer) enter() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running++
	t.timer.Stop()
}

func (t *idleTimer) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.rearm()
}

// shorten lowers the timeout, counting from now.
func (t *idleTimer) shorten(timeout time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timeout = min(t.timeout, timeout)
	t.rearm()
}

// expired says whether the timer may act: a handler may have entered while it
// fired.
func (t *idleTimer) expired() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running == 0 && !t.ended
}

func (t *idleTimer) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.timer.Stop()
}

func (t *idleTimer) rearm() {
	if t.running == 0 && !t.ended {
		t.timer.Reset(t.timeout)
	}
}
