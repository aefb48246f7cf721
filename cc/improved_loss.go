package cc

// onCongestion answers loss. FAST needs no loss, and random loss on radio or VPN
// links must not cost rate; but a buffer below N*alpha leaves loss as the only
// signal, and loss of several percent is congestion whatever the delay says.
func (l *improved) onCongestion(s *sender) {
	burst := s.loss.share(s.datagram)
	switch {
	case l.st == StateCompetitive:
		s.cut()
		l.compete.ramp = false
		s.setWindow(competeBackoff * s.window)
	case l.st == StateSlowStart || l.st == StateProbe:
		// Growth has overflowed a buffer before it showed a backlog.
		if burst > 0.02 && s.loss.lost > 3*s.datagram {
			if l.backlog > 0.3*l.alpha(s) {
				l.lowerAlpha(0.7)
			}
			rate := l.landingRate(s)
			l.land(s, rate)
			l.reduce(s, l.p.WindowBackoff*rate*float64(s.base.value)/1e9)
		}
	case burst > l.p.LossBurst:
		l.reduce(s, l.p.WindowBackoff*min(l.window(s), l.bdp(s)))
	case s.loss.rate > l.p.LossCut:
		l.reduce(s, l.p.WindowBackoff*l.window(s))
	case s.loss.rate > l.p.LossCap:
		s.cut()
		l.set(s, min(l.window(s), l.bdp(s)+l.alpha(s)))
	case s.loss.rate > l.p.LossAlpha:
		s.cut()
		if l.backlog < 0.25*l.alpha(s) {
			// No queue of ours to speak of: the loss is not our doing.
			l.alphaScale = min(1, l.alphaScale/0.9)
			return
		}
		l.lowerAlpha(l.p.AlphaBackoff)
		l.calm(s)
	}
}

func (l *improved) lowerAlpha(factor float64) {
	l.alphaScale = max(l.alphaScale*factor, l.p.AlphaScaleMin)
}

func (l *improved) reduce(s *sender, window float64) {
	s.cut()
	l.set(s, window)
	l.calm(s)
}

// calm holds probing back for eight round trips.
func (l *improved) calm(s *sender) { l.calmUntil = s.now + int64(8*s.roundTrip()) }

// window is the one the law works on; a drain has put it aside.
func (l *improved) window(s *sender) float64 {
	if l.st == StateDrain {
		return l.drain.window
	}
	return s.window
}

func (l *improved) set(s *sender, window float64) {
	if l.st == StateDrain {
		l.drain.window = max(window, float64(minWindowPackets*s.datagram))
		return
	}
	s.setWindow(window)
}

// bdp is what the path delivers in a base RTT, bytes.
func (l *improved) bdp(s *sender) float64 {
	return s.delivery.rate() * float64(s.base.value) / 1e9
}

// onPersistentCongestion starts over, up to the capacity known from before.
func (l *improved) onPersistentCongestion(s *sender) {
	l.train = trainMeter{capacity: l.capacity(s)}
	l.atCap = 0
	l.compete, l.shift = compete{}, shift{}
	s.base.frozen = false
	l.enter(s, StateSlowStart)
}
