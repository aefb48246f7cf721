package lab

// fifo is a queue in a ring that grows as needed. The zero value is empty.
type fifo[T any] struct {
	ring []T // length is a power of two
	head int
	n    int
}

func (f *fifo[T]) len() int { return f.n }

// at returns the i-th oldest element, 0 <= i < len.
func (f *fifo[T]) at(i int) *T { return &f.ring[(f.head+i)&(len(f.ring)-1)] }

func (f *fifo[T]) push(v T) {
	if f.n == len(f.ring) {
		ring := make([]T, max(64, 2*f.n))
		for i := range f.n {
			ring[i] = *f.at(i)
		}
		f.ring, f.head = ring, 0
	}
	f.n++
	*f.at(f.n - 1) = v
}

// pop takes the oldest element; there must be one.
func (f *fifo[T]) pop() T {
	p := f.at(0)
	v := *p
	var zero T
	*p = zero // let go of what it points to
	f.head = (f.head + 1) & (len(f.ring) - 1)
	f.n--
	return v
}
