package cc

// trainMeter estimates the bottleneck's rate from packet trains: packets that
// left back to back are spread by the bottleneck, and so are their ACKs. It is
// used in slow start only, as an upper bound on the rate to grow to; cross
// traffic lowers a train's estimate and bunched ACKs raise it, so the highest is
// kept and the queue still decides.
type trainMeter struct {
	capacity float64 // bytes/s; 0 while unknown

	packets  int
	bytes    int64 // acknowledged after the train's first ACK
	firstAck int64
	lastSent int64
}

const (
	trainPackets = 10   // packets sent back to back in slow start
	trainEnough  = 8    // packets acknowledged before a train says anything
	trainGap     = 50e3 // ns; packets further apart are of different trains
	trainSpread  = 50e3 // ns; a shorter train is a bunch of ACKs, read at once
)

func (m *trainMeter) onAcked(now int64, p *sentPacket) {
	if m.packets == 0 || p.sentAt-m.lastSent >= trainGap {
		*m = trainMeter{capacity: m.capacity, packets: 1, firstAck: now, lastSent: p.sentAt}
		return
	}
	m.packets++
	m.lastSent = p.sentAt
	if now > m.firstAck {
		m.bytes += p.size
		if m.packets >= trainEnough {
			m.capacity = max(m.capacity, float64(m.bytes)*1e9/float64(max(now-m.firstAck, trainSpread)))
		}
	}
}
