package lab

import (
	"time"

	"fastpacs/cc"
)

// Tick is how often a run is sampled.
const Tick = 20 * time.Millisecond

// Series is what a run looked like over time. Intervals are rounded to Ticks
// and cut to what was sampled.
type Series struct {
	flows int

	// running sums, one entry a tick, the first before the start
	capacity []float64   // bytes the bottleneck could have sent
	link     []LinkStats // QueueMax: of the tick
	returned []int64     // datagrams on flow 0's return link
	received [][]int64   // by flow: bytes the client has read

	// samples, as above
	alpha     []float64 // packets, summed over flows; 0 without controllers
	draining  []bool    // a controller is in cc.StateDrain
	snapshots int       // number of snapshots taken
	states    map[cc.State]int
	last      []cc.Snapshot // by flow: the latest
}

func newSeries(flows int) *Series {
	return &Series{
		flows: flows, capacity: make([]float64, 1), link: make([]LinkStats, 1), returned: make([]int64, 1),
		received: [][]int64{make([]int64, flows)}, alpha: make([]float64, 1), draining: make([]bool, 1),
		states: make(map[cc.State]int), last: make([]cc.Snapshot, flows),
	}
}

// sample is what one tick adds.
type sample struct {
	rate      float64 // bit/s
	link      LinkStats
	returned  int64
	received  []int64 // by flow, since the start
	snapshots map[int]cc.Snapshot
}

func (s *Series) add(x sample) {
	k := len(s.link) - 1
	s.capacity = append(s.capacity, s.capacity[k]+x.rate/8*Tick.Seconds())
	sum := s.link[k]
	sum.QueueMax = 0
	sum.Add(x.link)
	s.link = append(s.link, sum)
	s.returned = append(s.returned, s.returned[k]+x.returned)
	s.received = append(s.received, x.received)
	alpha, draining := 0.0, false
	for i, snap := range x.snapshots {
		alpha += snap.Alpha
		draining = draining || snap.State == cc.StateDrain
		s.states[snap.State]++
		s.snapshots++
		s.last[i] = snap
	}
	s.alpha = append(s.alpha, alpha)
	s.draining = append(s.draining, draining)
}

// End is the time of the last sample.
func (s *Series) End() time.Duration { return time.Duration(len(s.link)-1) * Tick }

func (s *Series) index(t time.Duration) int {
	return min(max(int(t/Tick), 0), len(s.link)-1)
}

func (s *Series) seconds(from, to time.Duration) float64 {
	return (time.Duration(s.index(to)-s.index(from)) * Tick).Seconds()
}

// Link returns the bottleneck's counters.
func (s *Series) Link(from, to time.Duration) LinkStats {
	a, b := s.index(from), s.index(to)
	d := s.link[b]
	d.Packets -= s.link[a].Packets
	d.Bytes -= s.link[a].Bytes
	d.Drops -= s.link[a].Drops
	d.Lost -= s.link[a].Lost
	d.QueueSum -= s.link[a].QueueSum
	d.QueueMax = 0
	for k := a + 1; k <= b; k++ {
		d.QueueMax = max(d.QueueMax, s.link[k].QueueMax)
	}
	return d
}

// Utilization is what the bottleneck sent of what it could have sent.
func (s *Series) Utilization(from, to time.Duration) float64 {
	a, b := s.index(from), s.index(to)
	return float64(s.link[b].Bytes-s.link[a].Bytes) / (s.capacity[b] - s.capacity[a])
}

// MeanQueueMs is the mean wait in milliseconds.
func (s *Series) MeanQueueMs(from, to time.Duration) float64 {
	l := s.Link(from, to)
	return ms(l.MeanQueue())
}

// LossPct is the share of offered datagrams that the queue dropped, in percent.
func (s *Series) LossPct(from, to time.Duration) float64 {
	l := s.Link(from, to)
	return 100 * float64(l.Drops) / float64(max(l.Packets+l.Drops, 1))
}

// Goodput is what a flow's client read, in bit/s.
func (s *Series) Goodput(flow int, from, to time.Duration) float64 {
	a, b := s.index(from), s.index(to)
	return 8 * float64(s.received[b][flow]-s.received[a][flow]) / s.seconds(from, to)
}

// TotalGoodput is the sum of all flows' Goodput.
func (s *Series) TotalGoodput(from, to time.Duration) float64 {
	sum := 0.0
	for i := range s.flows {
		sum += s.Goodput(i, from, to)
	}
	return sum
}

// Alpha is the mean of the flows' summed alpha, in packets.
func (s *Series) Alpha(from, to time.Duration) float64 {
	a, b := s.index(from), s.index(to)
	sum := 0.0
	for k := a + 1; k <= b; k++ {
		sum += s.alpha[k]
	}
	return sum / float64(max(b-a, 1))
}

// Drained reports whether a controller drained the queue.
func (s *Series) Drained(from, to time.Duration) bool {
	for k := s.index(from); k <= s.index(to); k++ {
		if s.draining[k] {
			return true
		}
	}
	return false
}

// FirstReturn is when the first datagram entered flow 0's return link.
func (s *Series) FirstReturn(after time.Duration) (time.Duration, bool) {
	a := s.index(after)
	for k := a + 1; k < len(s.returned); k++ {
		if s.returned[k] > s.returned[a] {
			return time.Duration(k) * Tick, true
		}
	}
	return 0, false
}

// Until is the time in seconds from start until the first interval of the given
// length, within start and end, that ok accepts; None if there is none.
func (s *Series) Until(start, end, length time.Duration, ok func(from, to time.Duration) bool) Figure {
	for t := start; t+length <= min(end, s.End()); t += Tick {
		if ok(t, t+length) {
			return Figure((t - start).Seconds())
		}
	}
	return None()
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
