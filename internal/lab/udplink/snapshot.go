package udplink

import "time"

// counts are a direction's counters since the link started.
type counts struct {
	offeredPackets int64
	sentPackets    int64 // had their turn on the wire
	admittedBytes  int64 // of packets that have had it or wait for it
	deliveredBytes int64
	tailDrops      int64
	lost           int64
	refused        int64
	writeErrors    int64
	socketDrops    int64
	queueing       histogram // weighted by bytes
	late           histogram // weighted by packets
}

// Snapshot is the state of a link at one instant.
type Snapshot struct{ Up, Down DirectionSnapshot }

// DirectionSnapshot is the state of one way of a link at one instant; two of
// them make an Interval.
type DirectionSnapshot struct {
	at        time.Duration
	rate      float64
	wireBytes float64
	n         counts
}

// Interval is what one way of a link did between two instants. Bytes are of IP
// packets.
type Interval struct {
	Duration time.Duration
	// WireBytes were put on the wire in that time, to a fraction of a packet;
	// those of packets lost there are included.
	WireBytes float64
	// Utilization is WireBytes as a share of what the rate allows; 0 if the rate
	// is unlimited.
	Utilization float64
	// OfferedPackets arrived, SentPackets of them found room in the buffer.
	OfferedPackets, SentPackets int64
	// DeliveredBytes were handed to the far end.
	DeliveredBytes int64
	// TailDrops found the buffer full; Lost were lost at random on the wire.
	TailDrops, Lost int64
	// Queueing is how long packets waited for their turn, weighted by bytes.
	Queueing Spread
	// Late is how long after their due time packets were delivered: what the
	// emulation itself added. Milliseconds of it mean a disturbed run.
	Late Spread
	// SocketDrops were lost by the relay's own receive buffers: any of them
	// means a disturbed run. (Known on Linux only.)
	SocketDrops int64
	// Refused came from more clients than MaxClients, or were larger than the
	// link takes; WriteErrors could not be handed on, as when nobody listens.
	Refused, WriteErrors int64
}

// Since returns what happened after an earlier snapshot of the same direction.
func (s DirectionSnapshot) Since(earlier DirectionSnapshot) Interval {
	n := s.n
	n.queueing.sub(&earlier.n.queueing)
	n.late.sub(&earlier.n.late)
	i := Interval{
		Duration:       s.at - earlier.at,
		WireBytes:      s.wireBytes - earlier.wireBytes,
		OfferedPackets: n.offeredPackets - earlier.n.offeredPackets,
		SentPackets:    n.sentPackets - earlier.n.sentPackets,
		DeliveredBytes: n.deliveredBytes - earlier.n.deliveredBytes,
		TailDrops:      n.tailDrops - earlier.n.tailDrops,
		Lost:           n.lost - earlier.n.lost,
		Queueing:       n.queueing.spread(),
		Late:           n.late.spread(),
		SocketDrops:    n.socketDrops - earlier.n.socketDrops,
		Refused:        n.refused - earlier.n.refused,
		WriteErrors:    n.writeErrors - earlier.n.writeErrors,
	}
	if s.rate > 0 && i.Duration > 0 {
		i.Utilization = i.WireBytes * 8 / (s.rate * i.Duration.Seconds())
	}
	return i
}

// LossShare is the share of offered packets that did not get through, by either
// cause.
func (i Interval) LossShare() float64 {
	if i.OfferedPackets == 0 {
		return 0
	}
	return float64(i.TailDrops+i.Lost) / float64(i.OfferedPackets)
}
