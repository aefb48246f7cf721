package lab

import (
	"fmt"
	"io"
	"time"

	"fastpacs/cc"
)

// tracedFlows is how many flows' controllers a trace shows.
const tracedFlows = 3

// tracer prints what happens, for tuning. Each line covers the time since the
// line before:
//
//	time  q mean/max ms  drop drops+random  u utilization | goodput of each flow, Mb/s |
//	i: state w window(packets) a alpha n backlog(packets) base/rtt/queue ms pace,rate Mb/s loss %
type tracer struct {
	w     io.Writer
	every time.Duration
	last  time.Duration
}

func (tr *tracer) tick(now time.Duration, s *Series, snaps map[int]cc.Snapshot, packetSize int) {
	if tr.w == nil || now-tr.last < tr.every {
		return
	}
	from := tr.last
	tr.last = now
	l := s.Link(from, now)
	fmt.Fprintf(tr.w, "%8.2f q %6.2f/%6.2f drop %d+%d u %.3f |", now.Seconds(), ms(l.MeanQueue()), ms(l.QueueMax),
		l.Drops, l.Lost, s.Utilization(from, now))
	for i := range s.flows {
		fmt.Fprintf(tr.w, " %.2f", s.Goodput(i, from, now)/1e6)
	}
	for i := range min(s.flows, tracedFlows) {
		x, ok := snaps[i]
		if !ok {
			continue
		}
		size := float64(packetSize)
		fmt.Fprintf(tr.w, " | %d: %s w %.1f a %.1f n %.1f g %.2f %.2f/%.2f/%.2f ms pace %.2f dr %.2f loss %.2f",
			i, x.State, float64(x.Window)/size, x.Alpha, x.Backlog, x.Gamma, ms(x.BaseRTT), ms(x.RTT), ms(x.QueueDelay),
			x.PacingRate*8/1e6, x.DeliveryRate*8/1e6, 100*x.LossRate)
	}
	fmt.Fprintln(tr.w)
}

func (tr *tracer) event(now time.Duration, name string) {
	if tr.w != nil {
		fmt.Fprintf(tr.w, "%8.2f -- %s\n", now.Seconds(), name)
	}
}
