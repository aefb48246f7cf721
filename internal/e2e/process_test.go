package e2e

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// process is a child whose memory is watched through /proc.
type process struct{ pid int }

// memory is in bytes.
type memory struct {
	rss  int64 // resident now
	peak int64 // most resident since start or resetPeak
}

func (p process) memory(tb testing.TB) memory {
	tb.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		missing(tb, "/proc", "this on Linux")
	}
	defer f.Close()
	var m memory
	for s := bufio.NewScanner(f); s.Scan(); {
		name, value, _ := strings.Cut(s.Text(), ":")
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case name == "VmRSS" && err == nil:
			m.rss = kib << 10
		case name == "VmHWM" && err == nil:
			m.peak = kib << 10
		}
	}
	if m.rss == 0 || m.peak == 0 {
		tb.Fatalf("no VmRSS or VmHWM of process %d", p.pid)
	}
	return m
}

// resetPeak lets peak begin again at what is resident now (proc(5), clear_refs).
func (p process) resetPeak(tb testing.TB) {
	tb.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0); err != nil {
		tb.Fatal(err)
	}
}
