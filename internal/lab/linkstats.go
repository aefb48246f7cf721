package lab

import "time"

// LinkStats counts what a link did since the counters were last taken.
type LinkStats struct {
	Packets int64 // datagrams that left the queue
	Bytes   int64 // their bytes, IP and UDP headers included
	Drops   int64 // datagrams refused by the full queue, or by a link that is down
	Lost    int64 // datagrams lost at random after they left the queue

	QueueSum time.Duration // time spent waiting, summed over Packets
	QueueMax time.Duration // longest wait among Packets
}

// Add merges o into s.
func (s *LinkStats) Add(o LinkStats) {
	s.Packets += o.Packets
	s.Bytes += o.Bytes
	s.Drops += o.Drops
	s.Lost += o.Lost
	s.QueueSum += o.QueueSum
	s.QueueMax = max(s.QueueMax, o.QueueMax)
}

// MeanQueue is the mean waiting time of a datagram that left the queue.
func (s *LinkStats) MeanQueue() time.Duration {
	if s.Packets == 0 {
		return 0
	}
	return s.QueueSum / time.Duration(s.Packets)
}

const (
	histogramBin  = 250 * time.Microsecond
	histogramBins = 1 << 14 // up to 4.1 s; longer waits fall in the last bin
)

// QueueHistogram counts waiting times in bins of 0.25 ms.
type QueueHistogram [histogramBins]uint32

func (h *QueueHistogram) add(d time.Duration) {
	h[min(int(d/histogramBin), histogramBins-1)]++
}

// Quantile is the waiting time that a share p of all datagrams did not exceed,
// rounded up to the end of its bin; 0 of an empty histogram.
func (h *QueueHistogram) Quantile(p float64) time.Duration {
	var total, seen float64
	for _, n := range h {
		total += float64(n)
	}
	for i, n := range h {
		seen += float64(n)
		if n > 0 && seen >= p*total {
			return time.Duration(i+1) * histogramBin
		}
	}
	return 0
}
