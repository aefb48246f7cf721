package wan

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The emulator must run when a packet is due, whatever else the machine does. A
// thread of a Go program may have to wait for another one of the same program, so
// while a network exists all threads of this process run before all others; they
// have next to nothing to do. Programs in the namespaces come next, in turns, so
// that other load does not decide how fast they are. Who may not set priorities
// sees it in the lateness.
var (
	realTime = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 2}
	endpoint = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1}
	normal   = unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
)

// scheduleProcess sets the scheduling of this process's threads, but for some.
// Threads that start later are like the one that starts them.
func scheduleProcess(attr unix.SchedAttr, except ...int) {
	done := map[int]bool{}
	for _, thread := range except {
		done[thread] = true
	}
	for range 10 { // in case some started meanwhile
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		fresh := false
		for _, t := range tasks {
			thread, err := strconv.Atoi(t.Name())
			if err != nil || done[thread] {
				continue
			}
			done[thread], fresh = true, true
			_ = unix.SchedSetAttr(thread, &attr, 0) // it may be gone
		}
		if !fresh {
			return
		}
	}
}
