package cc

// lossMeter smooths the share of bytes lost, per round trip.
type lossMeter struct {
	rate float64 // smoothed share, 0 to 1

	lost, delivered int64 // bytes of this round
}

// lossMemory is how many packets' worth of history the smoothed rate holds: two
// losses in 300 packets must not look like a rate of their own.
const lossMemory = 600

// share is this round's loss so far, counted over at least 100 packets so that a
// single loss at the start of a round does not look like a burst.
func (m *lossMeter) share(datagram int64) float64 {
	if m.lost == 0 {
		return 0
	}
	return float64(m.lost) / float64(max(m.lost+m.delivered, 100*datagram))
}

func (m *lossMeter) endRound(datagram int64) {
	if total := m.lost + m.delivered; total > 0 {
		weight := min(float64(total)/float64(lossMemory*datagram), 0.5)
		m.rate += weight * (float64(m.lost)/float64(total) - m.rate)
	}
	m.lost, m.delivered = 0, 0
}

// outage finds persistent congestion (RFC 9002 section 7.6): all packets sent
// over a stretch of time were lost, and none in between was acknowledged.
// quic-go v0.65.0 never reports retransmission time-outs, so the controller
// looks for itself.
type outage struct {
	first, last int64 // send times of the stretch's first and last lost packet
	ackedAt     int64 // latest send time of an acknowledged packet
	open        bool
}

func (o *outage) lost(sentAt int64) {
	if !o.open || o.ackedAt > o.last {
		o.first, o.last, o.open = sentAt, sentAt, true
		return
	}
	o.first, o.last = min(o.first, sentAt), max(o.last, sentAt)
}

// acked ends a stretch that the packet lies inside of. One sent in the same
// instant as the first or last lost packet, from the same burst, does not.
func (o *outage) acked(sentAt int64) {
	o.ackedAt = max(o.ackedAt, sentAt)
	if sentAt > o.first && sentAt < o.last {
		o.open = false
	}
}

// length is that of the stretch so far, in ns.
func (o *outage) length() int64 {
	if !o.open {
		return 0
	}
	return o.last - o.first
}
