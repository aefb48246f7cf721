package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// progress reports what a command is doing: on a terminal one line that is
// overwritten, elsewhere a line now and then.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	began    time.Time
	last     time.Time // when an update was shown
	open     bool      // the cursor is at the end of an update
}

const (
	terminalEvery = 200 * time.Millisecond
	plainEvery    = 5 * time.Second
)

func newProgress(w io.Writer) *progress {
	p := &progress{w: w, began: time.Now()}
	if f, ok := w.(*os.File); ok {
		st, err := f.Stat()
		p.terminal = err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	return p
}

// say prints a line that stays.
func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.w, "%s %s\n", p.clock(), fmt.Sprintf(format, args...))
	p.last = time.Now()
}

// update shows how far something is, if the last update was long enough ago.
func (p *progress) update(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := plainEvery
	if p.terminal {
		every = terminalEvery
	}
	if time.Since(p.last) < every {
		return
	}
	p.last = time.Now()
	text := fmt.Sprintf(format, args...)
	if p.terminal {
		p.clear()
		fmt.Fprintf(p.w, "%s %s", p.clock(), text)
		p.open = true
		return
	}
	fmt.Fprintf(p.w, "%s %s\n", p.clock(), text)
}

// done leaves the cursor at the start of an empty line.
func (p *progress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}

func (p *progress) clock() string {
	return fmt.Sprintf("[%3.0fs]", time.Since(p.began).Seconds())
}
