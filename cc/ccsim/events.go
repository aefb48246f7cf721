package ccsim

// never is the due time of a timer that is not set.
const never = int64(-1)

// timer fires once at a time. It may be set again at any time; moving it later
// costs nothing, since the queue learns of it only when the old entry comes up.
type timer struct {
	fire   func(now int64)
	due    int64 // never if not set
	queued int64 // time of the entry in the queue that counts, or never
}

func newTimer(fire func(int64)) timer { return timer{fire: fire, due: never, queued: never} }

// events is a priority queue of timers, ordered by time and then by the order in
// which they were set.
type events struct {
	heap  []event
	count uint64
	now   int64 // ns since the start
}

type event struct {
	at    int64
	order uint64
	t     *timer
}

func (e *events) set(t *timer, due int64) {
	due = max(due, e.now)
	t.due = due
	if t.queued == never || due < t.queued {
		t.queued = due
		e.push(event{due, e.count, t})
		e.count++
	}
}

func (e *events) clear(t *timer) { t.due = never }

// run fires timers up to and including time end.
func (e *events) run(end int64) {
	for len(e.heap) > 0 && e.heap[0].at <= end {
		next := e.heap[0]
		e.pop()
		t := next.t
		if t.queued != next.at { // set to an earlier time since
			continue
		}
		t.queued = never
		e.now = next.at
		switch due := t.due; {
		case due == never:
		case due > e.now:
			e.set(t, due)
		default:
			t.due = never
			t.fire(e.now)
		}
	}
	e.now = end
}

func (a *event) before(b *event) bool {
	return a.at < b.at || a.at == b.at && a.order < b.order
}

func (e *events) push(v event) {
	e.heap = append(e.heap, v)
	h := e.heap
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !v.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = v
}

func (e *events) pop() {
	h := e.heap
	last := len(h) - 1
	v := h[last]
	h[last] = event{}
	h = h[:last]
	e.heap = h
	if last == 0 {
		return
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&v) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = v
}
