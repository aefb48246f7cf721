package lab

import "testing"

func TestFifoKeepsOrderWhileItGrows(t *testing.T) {
	var f fifo[int]
	next, want := 0, 0
	for round := range 300 {
		for range round % 7 * 40 {
			f.push(next)
			next++
		}
		for range min(f.len(), round%5*50) {
			if got := *f.at(0); got != want {
				t.Fatalf("at(0) = %d, want %d", got, want)
			}
			if got := f.pop(); got != want {
				t.Fatalf("pop() = %d, want %d", got, want)
			}
			want++
		}
		if f.len() != next-want {
			t.Fatalf("len() = %d, want %d", f.len(), next-want)
		}
	}
	if want == 0 || next == want {
		t.Fatalf("nothing tested: %d pushed, %d popped", next, want)
	}
}
