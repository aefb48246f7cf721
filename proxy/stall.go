package proxy

import (
	"math"
	"time"
)

// stallTimer bounds single waits: cut is called when one lasts longer than idle.
// One goroutine at a time may use it. It costs a timer per exchange and about
// 100 ns per wait, and leaves no deadline armed between waits, where HTTP/2 would
// end the stream and HTTP/1 the connection.
type stallTimer struct {
	idle  time.Duration
	cut   func()
	timer *time.Timer
}

func (s *stallTimer) begin() {
	if s.timer == nil {
		s.timer = time.AfterFunc(math.MaxInt64, s.cut) // set before cut may look at it
	}
	s.timer.Reset(s.idle)
}

func (s *stallTimer) end() { s.timer.Stop() }
