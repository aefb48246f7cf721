package cc

// pacer is a token bucket in bytes (RFC 9002 section 7.7). Only ack-eliciting
// packets are charged to it: at high rates a receiver's pure ACKs would
// otherwise use up its budget and hold its flow control updates back.
type pacer struct {
	budget  float64 // bytes that could leave at last
	last    int64   // time of the last charge
	started bool

	burst int64 // packets the bucket holds at least
	grain int64 // ns; the shortest wait asked of the transport's timer
}

// timerSlack is how late the transport's timer may fire, in ns, before the
// bucket overflows and rate is lost.
const timerSlack = 1e6

func (p *pacer) depth(rate float64, datagram int64) float64 {
	return max(rate*float64(p.grain+timerSlack)/1e9, float64(p.burst*datagram))
}

// at is the budget at time now, for a rate in bytes per second.
func (p *pacer) at(now int64, rate float64, datagram int64) float64 {
	d := p.depth(rate, datagram)
	if !p.started {
		return d
	}
	return min(p.budget+rate*float64(max(now-p.last, 0))/1e9, d)
}

func (p *pacer) charge(now, size int64, rate float64, datagram int64) {
	p.budget = max(p.at(now, rate, datagram)-float64(size), 0)
	p.last, p.started = now, true
}

// next is when a full packet may leave; ok is false if that is at once.
func (p *pacer) next(rate float64, datagram int64) (at int64, ok bool) {
	short := float64(datagram) - p.budget
	if !p.started || short <= 0 {
		return 0, false
	}
	return p.last + max(int64(short*1e9/rate)+1, p.grain), true
}
