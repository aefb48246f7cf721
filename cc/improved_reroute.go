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
	near := l.still(s)
	sh.spoiled = sh.spoiled || low > sh.level+near || low < sh.level-near
	if sh.spoiled || sh.intervals < shiftIntervals || s.window > shiftCut*sh.window {
		return false
	}
	l.moved(s, min(low, sh.level), sh.window)
	return true
}

// movedInDrain says the same when a drain has changed nothing, and the RTT's floor
// has stood still for seconds: others' queues move.
func (l *improved) movedInDrain(s *sender) bool {
	floor, still := s.base.floor(l.still(s))
	if !still || l.pathRTT < floor-l.still(s) {
		return false
	}
	l.moved(s, min(floor, l.pathRTT), s.window)
	return true
}

// still is how far an RTT may wander and count as standing still, in ns: not less
// than two packets' time on the path.
func (l *improved) still(s *sender) int64 {
	near := max(s.base.value/32, granularity)
	if c := l.capacity(s); c > 0 {
		near = max(near, int64(2*float64(s.datagram)*1e9/c))
	}
	return near
}

// moved starts over on a longer path, from a window that was right before.
func (l *improved) moved(s *sender, base int64, window float64) {
	s.base.set(s.now, base)
	s.base.frozen = false
	s.setWindow(window)
	l.shift, l.compete = shift{}, compete{}
	l.probe.rate = 0
	l.enter(s, StateProbe)
}
