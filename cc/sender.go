package cc

import (
	"sync"
	"sync/atomic"
	"time"
)

// Duties of every sender (RFC 9002).
const (
	initialWindowPackets = 10    // section 7.2
	minWindowPackets     = 2     // section 7.2
	persistentThreshold  = 3     // section 7.6.1
	granularity          = 1e6   // ns, section 6.1.2
	maxAckDelay          = 25e6  // ns, RFC 9000 section 18.2
	initialRTT           = 333e6 // ns, section 6.2.2
)

// law is a window law: what a sender does with what it sees. Methods are called
// after the sender's own bookkeeping.
type law interface {
	name() Law
	state() State
	// onAck is called for each acknowledged packet. sampled says that it brought
	// an RTT sample.
	onAck(s *sender, p *sentPacket, sampled bool)
	// onRound is called when a packet sent after the last round's end is
	// acknowledged: once per round trip.
	onRound(s *sender)
	// onCongestion is called for each lost packet and each ECN mark of packets
	// sent after the last call of sender.cut.
	onCongestion(s *sender)
	// onPersistentCongestion follows when the window was set to its minimum.
	onPersistentCongestion(s *sender)
	// pacing returns the pacing rate in bytes per second, and the burst in
	// packets and the shortest wait in ns that the pacer may use.
	pacing(s *sender) (rate float64, burst, grain int64)
	// report fills in what the law alone knows.
	report(s *sender, to *Snapshot)
}

// sender is the Controller of all our laws. It keeps what any of them needs:
// time, packets in flight, RTT, delivery rate, loss, rounds, pacing, and the
// duties of RFC 9002. The law alone changes the window, by setWindow.
type sender struct {
	law      law
	rtt      RTTSource
	datagram int64

	window   float64 // bytes
	short    float64 // packets; the largest window while baseRTT is below granularity, 0: any
	inFlight int64   // bytes, as of the last event
	origin   int64   // transport time of controller time 0
	now      int64   // controller time of the last event
	running  bool

	packets  sentLog
	delivery deliveryMeter
	base     baseRTT
	loss     lossMeter
	outage   outage
	pacer    pacer
	rate     float64 // bytes/s, if paced
	paced    bool    // rate is up to date

	avgRTT    float64 // ns; FAST's smoothed RTT (weight min(3/w, 1/4), Wei et al.)
	devRTT    float64 // ns; mean deviation
	latestRTT int64   // ns
	sampled   bool    // an RTT sample waits for its packet

	lastSent   int64 // packet number
	roundEnd   int64 // packet number
	roundBegan int64
	cutUntil   int64 // losses of packets up to this number belong to the last cut
	lastAck    int64 // highest acknowledged packet number

	offeredAt  int64 // when the transport was first told that it may send, and has not
	offered    bool
	appLimited bool // found at the last ACK

	packetsSent, packetsLost atomic.Uint64

	mu   sync.Mutex
	snap Snapshot
}

func newSender(l law, baseWindow time.Duration, maxDatagramSize int64, rtt RTTSource) *sender {
	s := &sender{
		law: l, rtt: rtt, datagram: maxDatagramSize,
		window: float64(initialWindowPackets * maxDatagramSize),
		base:   newBaseRTT(baseWindow),
		// No packet number is below 0.
		lastSent: -1, roundEnd: -1, cutUntil: -1, lastAck: -1,
	}
	s.publish()
	return s
}

var _ Controller = (*sender)(nil)

// time turns transport time into controller time, which starts at 1 s so that
// every time is positive and 0 can mean none.
func (s *sender) time(now int64) int64 {
	if !s.running {
		s.origin, s.running = now-int64(time.Second), true
	}
	// Never backwards, whatever order a transport reports in.
	s.now = max(s.now, now-s.origin)
	return s.now
}

func (s *sender) OnPacketSent(now, bytesInFlight, number, size int64, ackEliciting bool) {
	if !ackEliciting {
		return
	}
	now = s.time(now)
	s.settleOutage()
	s.inFlight = bytesInFlight
	s.packetsSent.Add(1)
	s.pacer.charge(now, size, s.pace(), s.datagram)
	p := s.packets.add(number, bytesInFlight/s.datagram)
	p.sentAt, p.inFlight, p.size = now, bytesInFlight, size
	p.appLimited = s.appLimited
	s.delivery.onSent(now, p)
	s.lastSent = max(s.lastSent, number)
	s.offered = false
}

func (s *sender) OnAckBegin() {
	s.settleOutage()
	if latest := int64(s.rtt.LatestRTT()); latest > 0 {
		s.latestRTT, s.sampled = latest, true
	}
}

func (s *sender) OnPacketAcked(now, number, size, priorInFlight int64) {
	now = s.time(now)
	s.inFlight = max(s.inFlight-size, 0)
	s.lastAck = max(s.lastAck, number)
	s.paced = false
	p := s.packets.get(number)
	if p == nil || !p.live {
		return
	}
	p.live = false
	s.outage.acked(p.sentAt)
	sampled := s.sampled
	if sampled {
		s.sampled = false
		s.smooth(s.latestRTT)
	}
	// The transport could have sent for a while, or far more than it has, and did
	// not: it has nothing to send, or the peer's flow control holds it.
	idle := now-s.offeredAt > max(granularity, int64(s.avgRTT)/16)
	s.appLimited = s.offered && (idle || float64(s.inFlight+size) < s.window/2)
	s.delivery.onAcked(now, p, int64(s.avgRTT))
	s.loss.delivered += p.size
	if number > s.roundEnd && now-s.roundBegan >= granularity {
		s.roundEnd, s.roundBegan = s.lastSent, now
		s.loss.endRound(s.datagram)
		s.delivery.endRound()
		s.law.onRound(s)
		s.publish()
	}
	s.law.onAck(s, p, sampled)
	s.paced = false
}

// smooth updates the averages with an RTT sample.
func (s *sender) smooth(rtt int64) {
	x := float64(rtt)
	if s.avgRTT == 0 {
		s.avgRTT, s.devRTT = x, x/2
		return
	}
	weight := min(3*float64(s.datagram)/s.window, 0.25)
	dev := x - s.avgRTT
	s.avgRTT += weight * dev
	s.devRTT += weight * (max(dev, -dev) - s.devRTT)
}

func (s *sender) OnPacketLost(number, size, _ int64) {
	if size > 0 {
		s.packetsLost.Add(1)
		s.loss.lost += size
		s.inFlight = max(s.inFlight-size, 0)
		if p := s.packets.get(number); p != nil && p.live {
			p.live = false
			// Packets sent before the first RTT sample do not count (RFC 9002 7.6.2).
			if s.avgRTT > 0 {
				s.outage.lost(p.sentAt)
			}
		}
	}
	if number > s.cutUntil {
		s.law.onCongestion(s)
		s.paced = false
	}
}

// cut begins a recovery period: losses of packets sent up to now are answered
// (RFC 9002 section 7.3.2: one reduction per round trip).
func (s *sender) cut() { s.cutUntil = s.lastSent }

func (s *sender) OnSpuriousLoss(int64) {
	// The counter never runs below zero: a loss was counted before.
	s.packetsLost.Add(^uint64(0))
}

// settleOutage answers persistent congestion. It runs when an ACK has been
// processed in full, for the ACK may hold a packet out of the stretch.
func (s *sender) settleOutage() {
	if !s.outage.open {
		return
	}
	limit := persistentThreshold * (s.avgRTT + max(4*s.devRTT, granularity) + maxAckDelay)
	if float64(s.outage.length()) > limit {
		s.outage.open = false
		s.cut()
		s.setWindow(0)
		s.law.onPersistentCongestion(s)
		s.paced = false
		s.publish()
	}
}

// setWindow sets the window in bytes, not below the minimum, and on a short path
// not above its limit.
func (s *sender) setWindow(bytes float64) {
	if s.short > 0 && s.base.value > 0 && s.base.value < granularity {
		bytes = min(bytes, s.short*float64(s.datagram))
	}
	s.window = max(bytes, float64(minWindowPackets*s.datagram))
}

func (s *sender) CanSend(bytesInFlight int64) bool { return bytesInFlight < int64(s.window) }
func (s *sender) Window() int64                    { return int64(s.window) }

func (s *sender) HasPacingBudget(now int64) bool {
	now = s.time(now)
	if s.pacer.at(now, s.pace(), s.datagram) < float64(s.datagram) {
		return false
	}
	if !s.offered {
		s.offered, s.offeredAt = true, now
	}
	return true
}

func (s *sender) NextSend(int64) int64 {
	at, wait := s.pacer.next(s.pace(), s.datagram)
	if !wait {
		return 0
	}
	if at += s.origin; at != 0 {
		return at
	}
	return 1 // 0 means at once
}

func (s *sender) SetMaxDatagramSize(size int64) {
	s.datagram = size
	s.setWindow(s.window)
	s.paced = false
}

func (s *sender) InSlowStart() bool { return s.law.state() == StateSlowStart }
func (s *sender) InRecovery() bool  { return s.cutUntil >= 0 && s.lastAck <= s.cutUntil }

// pathRTT is the RTT to pace by before and after the first sample, ns.
func (s *sender) pathRTT() float64 {
	if s.avgRTT > 0 {
		return s.avgRTT
	}
	return initialRTT
}

// roundTrip is the time in which the law may act once, ns: the smoothed RTT, but
// not less than timers and wake-ups resolve, or on a path of some microseconds a
// window would run away before loss or queue are told.
func (s *sender) roundTrip() float64 { return max(s.avgRTT, granularity) }

// pace returns the pacing rate in bytes per second. The law is asked once after
// each event that can change it, not for every packet.
func (s *sender) pace() float64 {
	if !s.paced {
		s.paced = true
		s.rate, s.pacer.burst, s.pacer.grain = s.law.pacing(s)
	}
	return s.rate
}

// publish copies the state for Snapshot.
func (s *sender) publish() {
	c := Snapshot{
		Law: s.law.name(), State: s.law.state(),
		RTT: time.Duration(s.avgRTT), BaseRTT: time.Duration(s.base.value),
		Window: int64(s.window), InFlight: s.inFlight,
		DeliveryRate: s.delivery.rate(), LossRate: s.loss.rate, AppLimited: s.appLimited,
	}
	if s.avgRTT > 0 {
		c.PacingRate = s.pace()
	}
	s.law.report(s, &c)
	s.mu.Lock()
	s.snap = c
	s.mu.Unlock()
}

func (s *sender) Snapshot() Snapshot {
	s.mu.Lock()
	c := s.snap
	s.mu.Unlock()
	c.PacketsSent, c.PacketsLost = s.packetsSent.Load(), s.packetsLost.Load()
	return c
}
