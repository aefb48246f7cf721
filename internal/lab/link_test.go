package lab

import (
	"encoding/binary"
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// wire sends datagrams over one link and notes when they arrive.
type wire struct {
	t    *testing.T
	net  *Network
	link *Link
	from *Endpoint
	to   *Endpoint
	t0   time.Time
	sent int
	got  chan arrival
}

type arrival struct {
	number int
	at     time.Duration
}

// onWire runs f in virtual time with a fresh link.
func onWire(t *testing.T, cfg LinkConfig, f func(w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(1)
		l, err := n.NewLink(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w := &wire{t: t, net: n, link: l, t0: time.Now(), got: make(chan arrival, 1<<16)}
		for i, e := range []**Endpoint{&w.from, &w.to} {
			addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1)
			if *e, err = n.Listen(addr, l); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			var buf [maxPayload]byte
			for {
				if _, _, err := w.to.ReadFrom(buf[:]); err != nil {
					return
				}
				w.got <- arrival{int(binary.BigEndian.Uint32(buf[:])), time.Since(w.t0)}
			}
		}()
		f(w)
		_ = w.to.Close()
		<-done
		n.Close()
	})
}

// send sends count datagrams of the given wire size at once.
func (w *wire) send(count, wireBytes int) {
	w.t.Helper()
	buf := make([]byte, wireBytes-headerBytes)
	for range count {
		binary.BigEndian.PutUint32(buf, uint32(w.sent))
		w.sent++
		if _, err := w.from.WriteTo(buf, w.to.LocalAddr()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// arrivals lets d pass and returns what has arrived since the last call.
func (w *wire) arrivals(d time.Duration) []arrival {
	time.Sleep(d)
	synctest.Wait()
	var all []arrival
	for range len(w.got) {
		all = append(all, <-w.got)
	}
	return all
}

func numbers(as []arrival) []int {
	var n []int
	for _, a := range as {
		n = append(n, a.number)
	}
	return n
}

func millis(as []arrival) []float64 {
	var m []float64
	for _, a := range as {
		m = append(m, ms(a.at))
	}
	return m
}

func wantMillis(t *testing.T, as []arrival, want ...float64) {
	t.Helper()
	if got := millis(as); !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-3 }) {
		t.Errorf("arrived after %v ms, want %v", got, want)
	}
}

// At 10 Mb/s a datagram of 1250 bytes takes 1 ms.
const (
	tenMega = 10e6
	oneMs   = 1250
)

func TestLinkServesAtItsRateThenDelays(t *testing.T) {
	onWire(t, LinkConfig{Rate: tenMega, Buffer: 1 << 20, Delay: 20 * time.Millisecond}, func(w *wire) {
		w.send(3, oneMs)
		wantMillis(t, w.arrivals(time.Second), 21, 22, 23)
		s := w.link.Take()
		if s.Packets != 3 || s.Bytes != 3*oneMs || s.QueueSum != 3*time.Millisecond || s.QueueMax != 2*time.Millisecond || s.MeanQueue() != time.Millisecond {
			t.Errorf("counters %+v", s)
		}
		if again := w.link.Take(); again != (LinkStats{}) {
			t.Errorf("counters after they were taken: %+v", again)
		}
		h := w.link.TakeHistogram()
		if q := h.Quantile(0.5); q != 1250*time.Microsecond {
			t.Errorf("median wait %v, want the bin that ends at 1.25 ms", q)
		}
		if q := w.link.TakeHistogram().Quantile(0.5); q != 0 {
			t.Errorf("median wait %v of an empty histogram", q)
		}
	})
}

func TestLinkCountsAtDeparture(t *testing.T) {
	onWire(t, LinkConfig{Rate: tenMega, Buffer: 1 << 20, Delay: time.Hour}, func(w *wire) {
		w.send(10, oneMs)
		w.arrivals(4500 * time.Microsecond)
		if s := w.link.Take(); s.Packets != 4 {
			t.Errorf("%d datagrams left in 4.5 ms, want 4", s.Packets)
		}
	})
}

func TestLinkBufferIsInBytes(t *testing.T) {
	onWire(t, LinkConfig{Rate: tenMega, Buffer: 3*oneMs + 100}, func(w *wire) {
		w.send(10, oneMs) // one in service, three wait
		w.send(10, 100)   // one of them fits in the 100 bytes left
		got := numbers(w.arrivals(2500 * time.Microsecond))
		w.send(3, oneMs) // one in service, 1350 bytes wait
		got = append(got, numbers(w.arrivals(time.Second))...)
		if want := []int{0, 1, 2, 3, 10, 20, 21}; !slices.Equal(got, want) {
			t.Errorf("passed %v, want %v", got, want)
		}
		if s := w.link.Take(); s.Drops != 6+9+1 {
			t.Errorf("%d drops, want 16", s.Drops)
		}
	})
}

func TestLinkWithoutRateHasNoQueue(t *testing.T) {
	onWire(t, LinkConfig{Delay: 5 * time.Millisecond}, func(w *wire) {
		w.send(3, oneMs)
		wantMillis(t, w.arrivals(time.Second), 5, 5, 5)
	})
}

func TestLinkRateChangeServesTheRestAnew(t *testing.T) {
	onWire(t, LinkConfig{Rate: tenMega, Buffer: 1 << 20}, func(w *wire) {
		w.send(5, oneMs)
		wantMillis(t, w.arrivals(2500*time.Microsecond), 1, 2)
		w.link.Change(func(c *LinkConfig) { c.Rate = tenMega / 10 })
		wantMillis(t, w.arrivals(6*time.Millisecond), 7.5) // half of the third was left
		w.link.Change(func(c *LinkConfig) { c.Rate = tenMega })
		wantMillis(t, w.arrivals(time.Second), 9.4, 10.4)
		w.send(3, oneMs)
		w.link.Change(func(c *LinkConfig) { c.Rate = 0 })
		if got := w.arrivals(0); len(got) != 3 {
			t.Errorf("%d of 3 datagrams at once at no rate", len(got))
		}
		if s := w.link.Take(); s.Packets != 8 || s.Drops != 0 {
			t.Errorf("counters %+v", s)
		}
	})
}

func TestLinkDelayChange(t *testing.T) {
	for _, reorder := range []bool{false, true} {
		onWire(t, LinkConfig{Delay: 100 * time.Millisecond, Reorder: reorder}, func(w *wire) {
			w.send(1, oneMs)
			w.arrivals(10 * time.Millisecond)
			w.link.Change(func(c *LinkConfig) { c.Delay = 20 * time.Millisecond })
			w.send(1, oneMs)
			got := w.arrivals(time.Second)
			if reorder {
				wantMillis(t, got, 30, 100)
			} else {
				wantMillis(t, got, 100, 100)
			}
		})
	}
}

func TestLinkJitter(t *testing.T) {
	const delay, jitter, epoch = 20 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond
	for name, cfg := range map[string]LinkConfig{
		"in order":     {Delay: delay, Jitter: jitter, JitterEpoch: epoch},
		"out of order": {Delay: delay, Jitter: jitter, Reorder: true},
	} {
		t.Run(name, func(t *testing.T) {
			onWire(t, cfg, func(w *wire) {
				var sentAt []time.Duration
				for range 2000 {
					sentAt = append(sentAt, time.Since(w.t0))
					w.send(1, oneMs)
					time.Sleep(time.Millisecond)
				}
				got := w.arrivals(time.Second)
				if len(got) != len(sentAt) {
					t.Fatalf("%d of %d arrived", len(got), len(sentAt))
				}
				overtaken, early, late := 0, 0, 0
				for i, a := range got {
					if a.number != i {
						overtaken++
					}
					switch d := a.at - sentAt[a.number]; {
					case d < delay-jitter || d > delay+jitter:
						t.Fatalf("datagram %d took %v", a.number, d)
					case d < delay-jitter/2:
						early++
					case d > delay+jitter/2:
						late++
					}
				}
				if cfg.Reorder != (overtaken > 0) {
					t.Errorf("%d of %d out of order", overtaken, len(got))
				}
				if n := len(got); early < n/10 || late < n/5 {
					t.Errorf("%d early, %d late of %d: not spread", early, late, n)
				}
			})
		})
	}
}

func TestLinkLossIsSeeded(t *testing.T) {
	const n = 20000
	pass := func(seed uint64) (got []int) {
		onWire(t, LinkConfig{Rate: 1e9, Buffer: 1 << 30, Loss: 0.1}, func(w *wire) {
			w.link.rnd = newLinkRand(seed)
			for range n / 1000 {
				w.send(1000, oneMs)
				got = append(got, numbers(w.arrivals(time.Second))...)
			}
			s := w.link.Take()
			if s.Packets != n || int(s.Lost) != n-len(got) || s.Drops != 0 {
				t.Errorf("counters %+v with %d arrivals", s, len(got))
			}
		})
		return got
	}
	first := pass(1)
	if lost := n - len(first); lost < 1800 || lost > 2200 {
		t.Errorf("lost %d of %d, want about 10 %%", lost, n)
	}
	if !slices.Equal(first, pass(1)) {
		t.Error("the same seed lost others")
	}
	if slices.Equal(first, pass(2)) {
		t.Error("another seed lost the same")
	}
}

func TestLinkGrain(t *testing.T) {
	onWire(t, LinkConfig{Delay: 3 * time.Millisecond, Grain: 10 * time.Millisecond}, func(w *wire) {
		for range 4 {
			w.send(1, oneMs)
			time.Sleep(4 * time.Millisecond)
		}
		wantMillis(t, w.arrivals(time.Second), 10, 10, 20, 20)
	})
}

func TestLinkDown(t *testing.T) {
	onWire(t, LinkConfig{Rate: tenMega, Buffer: 1 << 20, Delay: 10 * time.Millisecond}, func(w *wire) {
		w.send(2, oneMs)
		w.link.Change(func(c *LinkConfig) { c.Down = true })
		w.send(2, oneMs)
		w.arrivals(time.Millisecond)
		w.link.Change(func(c *LinkConfig) { c.Down = false })
		w.send(1, oneMs)
		if got, want := numbers(w.arrivals(time.Second)), []int{0, 1, 4}; !slices.Equal(got, want) {
			t.Errorf("passed %v, want %v", got, want)
		}
		if s := w.link.Take(); s.Drops != 2 {
			t.Errorf("%d drops, want 2", s.Drops)
		}
	})
}

func TestLinkConfigValidate(t *testing.T) {
	for field, cfg := range map[string]LinkConfig{
		"Rate":        {Rate: math.NaN()},
		"Buffer":      {Buffer: -1},
		"Delay":       {Delay: -1},
		"Jitter":      {Delay: 1, Jitter: 2},
		"JitterEpoch": {JitterEpoch: -1},
		"Loss":        {Loss: 1.1},
		"Grain":       {Grain: -1},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := NewNetwork(0).NewLink(cfg); err == nil {
			t.Errorf("%s: a link was made", field)
		}
	}
	if err := (LinkConfig{}).Validate(); err != nil {
		t.Error(err)
	}
}

// BenchmarkLink is the laboratory's own cost of a datagram in virtual time.
func BenchmarkLink(b *testing.B) {
	b.ReportAllocs()
	n := NewNetwork(1)
	defer n.Close()
	l, err := n.NewLink(LinkConfig{Rate: 1e12, Buffer: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	var ends [2]*Endpoint
	for i := range ends {
		if ends[i], err = n.Listen(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1), l); err != nil {
			b.Fatal(err)
		}
	}
	buf := make([]byte, maxPayload)
	to := ends[1].LocalAddr()
	for b.Loop() {
		if _, err := ends[0].WriteTo(buf, to); err != nil {
			b.Fatal(err)
		}
		if _, _, err := ends[1].ReadFrom(buf); err != nil {
			b.Fatal(err)
		}
	}
}
