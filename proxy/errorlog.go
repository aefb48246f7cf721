package proxy

import (
	"bytes"
	"log"
	"log/slog"
	"sync"
	"time"
)

// linesPerSecond bounds what net/http's own log can add to ours: hostile peers
// choose how often it writes.
const linesPerSecond = 10

// errorLog passes lines of net/http's log to slog at level Debug: each is about
// one peer's misbehaviour.
type errorLog struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	second  time.Time
	written int // in that second
	dropped int
}

// newErrorLog returns what http.Server.ErrorLog takes.
func newErrorLog(l *slog.Logger) *log.Logger {
	return log.New(&errorLog{log: l, now: time.Now}, "", 0)
}

func (e *errorLog) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := e.now(); now.Sub(e.second) >= time.Second {
		if e.dropped > 0 {
			e.log.Debug("lines of the HTTP server's log were dropped", "lines", e.dropped)
		}
		e.second, e.written, e.dropped = now, 0, 0
	}
	if e.written >= linesPerSecond {
		e.dropped++
		return len(line), nil
	}
	e.written++
	e.log.Debug(string(bytes.TrimSpace(line)))
	return len(line), nil
}
