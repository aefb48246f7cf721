package cc

// A path that became longer looks like a queue, and the law would give up the
// window to it until baseRTT expires. A queue grows over round trips and shrinks
// when we send less; a longer path shows as one step that stays whatever we do.

// shift follows a step of the RTT.
type shift struct {
	intervals int     // since the step; 0: none
	level     int64   // ns; lowest RTT after it
	window    float64 // before it, bytes
	spoiled   bool    // it moved: a queue
}

const (
	shiftIntervals = 5   // half round trips that the new RTT must stay
	shiftCut       = 0.6 // of the window must be left at most: less was sent, and nothing changed
)

// rerouted says whether the path has become longer; if so it has set baseRTT and
// begun to grow the window again.
func (l *improved) rerouted(s *sender) bool {
	low := l.pathRTT
	if l.queueDelay < l.foreignQueue(s) {
		l.shift = shift{window: s.window}
		return false
	}
	sh := &l.shift
	sh.intervals++
	// The interval of the step itself holds samples of both paths.
	if sh.intervals <= 2 {
		sh.level = low
		return false
	}
	near := max(s.base.value/32, granularity)
	sh.spoiled = sh.spoiled || low > sh.level+near || low < sh.level-near
	if sh.spoiled || sh.intervals < shiftIntervals || s.window > shiftCut*sh.window {
		return false
	}
	s.base.set(s.now, min(low, sh.level))
	s.setWindow(sh.window)
	l.shift, l.compete.fails = shift{}, 0
	l.probe.rate = 0
	l.enter(s, StateProbe)
	return true
}
