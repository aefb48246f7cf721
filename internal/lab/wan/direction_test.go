package wan

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	good := Direction{Rate: 1e6, Buffer: 1500}
	if err := (Link{good, good}).Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*Direction){
		"Rate":   func(d *Direction) { d.Rate = math.NaN() },
		"Delay":  func(d *Direction) { d.Delay = -1 },
		"Buffer": func(d *Direction) { d.Buffer = 1499 },
		"Loss":   func(d *Direction) { d.Loss = 1 },
	} {
		l := Link{good, good}
		change(&l.Down)
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), "Down."+field+" is") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestTurns holds the law of the link: a packet waits for those before it, takes
// its size over the rate, and arrives one delay later.
func TestTurns(t *testing.T) {
	d := newDirection(Direction{Rate: 8e6, Delay: time.Millisecond, Buffer: 3000}) // 1 us per byte
	for i, c := range []struct {
		at, size, due int64 // us, bytes, us
		dropped       bool
	}{
		{0, 1000, 2000, false},
		{0, 1000, 3000, false},
		{0, 1000, 4000, false},  // fills the buffer
		{0, 1, 0, true},         // no room
		{500, 500, 4500, false}, // just fits
		{500, 1, 0, true},
		{9000, 1000, 11000, false}, // an idle link
	} {
		due, ok := d.admit(c.at*1000, int(c.size))
		if ok == c.dropped || ok && due != c.due*1000 {
			t.Errorf("packet %d: due after %d us, %v", i, due/1000, ok)
		}
	}
	s := d.n.stats()
	if s.Offered != 7 || s.TailDrops != 2 || s.Lost != 0 {
		t.Errorf("%+v", s)
	}
	// 0, 1, 2, 2.5 and 0 ms, weighted by 1000, 1000, 1000, 500 and 1000 bytes.
	if want := 4250 * time.Microsecond * 1000 / 4500; s.Queueing.Mean.Round(time.Microsecond) != want.Round(time.Microsecond) {
		t.Errorf("mean queue %v, want %v", s.Queueing.Mean, want)
	}
	if s.Queueing.Max < 2500*time.Microsecond || s.Queueing.Max > 2600*time.Microsecond {
		t.Errorf("longest queue %v", s.Queueing.Max)
	}
}

func TestDeliverInOrder(t *testing.T) {
	d := newDirection(Direction{Rate: 8e6, Delay: time.Millisecond, Buffer: 1 << 20})
	buf := make([]byte, bufferBytes)
	const packets = 3000 // the ring grows twice
	for i := range packets {
		buf[0], buf[1] = byte(i), byte(i>>8)
		buf = d.offer(0, buf[:bufferBytes], 100)
	}
	if next := d.next(); next != 1100_000 {
		t.Errorf("the first is due after %d ns", next)
	}
	got := 0
	write := func(p []byte) error {
		if n := int(p[0]) | int(p[1])<<8; n != got || len(p) != 100 {
			t.Fatalf("packet %d of %d bytes in place of %d", n, len(p), got)
		}
		if got++; got == 10 {
			return errors.New("no room")
		}
		return nil
	}
	d.deliver(1099_999, write)
	if got != 0 {
		t.Fatalf("%d packets came early", got)
	}
	d.deliver(1e12, write)
	s := d.n.stats()
	if got != packets || s.Delivered != packets-1 || s.WriteErrors != 1 || s.DeliveredBytes != 100*(packets-1) || d.next() != math.MaxInt64 {
		t.Errorf("%d packets came; %+v", got, s)
	}
	if late := s.Late.P99; late < 990*time.Second || late > 1100*time.Second {
		t.Errorf("99 of 100 are less than %v late", late)
	}
}

func TestRandomLoss(t *testing.T) {
	lost := func(seed uint64) (n int64) {
		d := newDirection(Direction{Rate: 1e9, Buffer: 1 << 20, Loss: 0.01, Seed: seed})
		for i := range int64(100_000) {
			d.admit(i*1e6, 100)
		}
		return d.n.lost
	}
	if n := lost(1); n < 850 || n > 1150 || n != lost(1) || n == lost(2) {
		t.Errorf("%d, then %d, with another seed %d of 100000 lost", n, lost(1), lost(2))
	}
}

func TestSpread(t *testing.T) {
	var h histogram
	if h.spread() != (Spread{}) {
		t.Error("something is known of nothing")
	}
	for i := range int64(1000) {
		h.add(i*1e6, 1)
	}
	near := func(got, want time.Duration) bool { return got >= want && got <= want+want/32+time.Microsecond }
	if s := h.spread(); s.Mean != 499500*time.Microsecond || !near(s.P95, 949*time.Millisecond) || !near(s.P99, 989*time.Millisecond) || !near(s.Max, 999*time.Millisecond) {
		t.Errorf("%+v", s)
	}
	h.add(math.MaxInt64, 1) // beyond the last bucket
	if s := h.spread(); s.Max < 30*time.Minute {
		t.Errorf("the longest was %v", s.Max)
	}
}
