package cc

// deliveryMeter estimates the rate at which the path delivers, from the bytes
// delivered over each packet's flight (draft-cheng-iccrg-delivery-rate-estimation).
type deliveryMeter struct {
	delivered   int64 // bytes acknowledged so far
	deliveredAt int64 // when delivered last changed
	firstSentAt int64 // send time of the packet that began the current sample

	cur, prev float64 // highest samples of this round and of the one before, bytes/s
	peak      float64 // slowly falling maximum: what the path could carry

	recent [64]deliveryMark // delivered over time, for short-term rates
	marks  int
}

type deliveryMark struct{ at, delivered int64 }

// peakDecay is the share of the peak kept per round: 63 % after 1000 rounds.
const peakDecay = 0.999

func (m *deliveryMeter) onSent(now int64, p *sentPacket) {
	if p.inFlight == p.size { // nothing else in flight: the idle time is not the path's
		m.firstSentAt, m.deliveredAt = now, now
	}
	p.delivered, p.deliveredAt, p.firstSentAt = m.delivered, m.deliveredAt, m.firstSentAt
}

func (m *deliveryMeter) onAcked(now int64, p *sentPacket, srtt int64) {
	m.delivered += p.size
	m.deliveredAt = now
	m.firstSentAt = max(m.firstSentAt, p.sentAt)
	m.mark(now, srtt)
	// The slower of the sending and the acknowledging side, so that ACKs that
	// arrive in a bunch do not look like a fast path. On paths so short that a
	// flight is below what timers and wake-ups resolve, take a longer stretch.
	var sample float64
	if span := max(now-p.deliveredAt, p.sentAt-p.firstSentAt); span >= granularity {
		sample = float64(m.delivered-p.delivered) * 1e9 / float64(span)
	} else {
		sample = m.over(granularity)
	}
	if !p.appLimited || sample > m.rate() {
		m.cur = max(m.cur, sample)
	}
}

// rate is the highest sample of the last two rounds, bytes/s; 0 if none.
func (m *deliveryMeter) rate() float64 { return max(m.cur, m.prev) }

func (m *deliveryMeter) endRound() {
	m.peak = max(m.peak*peakDecay, m.cur)
	m.prev, m.cur = m.cur, 0
}

// restart forgets all samples but the given rate.
func (m *deliveryMeter) restart(rate float64) { m.prev, m.cur = 0, rate }

func (m *deliveryMeter) mark(now, srtt int64) {
	if m.marks > 0 {
		last := &m.recent[(m.marks-1)%len(m.recent)]
		if now-last.at < max(srtt, 4*granularity)/128 {
			if now == last.at {
				last.delivered = m.delivered
			}
			return
		}
	}
	m.recent[m.marks%len(m.recent)] = deliveryMark{now, m.delivered}
	m.marks++
}

// over is the rate of the last span ns, bytes/s, or 0 if it is not known.
func (m *deliveryMeter) over(span int64) float64 {
	n := min(m.marks, len(m.recent))
	if n < 2 {
		return 0
	}
	last := m.recent[(m.marks-1)%len(m.recent)]
	for i := 2; i <= n; i++ {
		if o := m.recent[(m.marks-i)%len(m.recent)]; last.at-o.at >= span {
			return float64(last.delivered-o.delivered) * 1e9 / float64(last.at-o.at)
		}
	}
	return 0
}
