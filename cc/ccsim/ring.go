package ccsim

// ring is a queue that grows.
type ring[T any] struct {
	items []T // power of two
	head  int
	n     int
}

func (r *ring[T]) len() int { return r.n }

// at is the item i places behind the head.
func (r *ring[T]) at(i int) *T { return &r.items[(r.head+i)&(len(r.items)-1)] }

func (r *ring[T]) push(v T) {
	if r.n == len(r.items) {
		bigger := make([]T, max(16, 2*r.n))
		for i := range r.n {
			bigger[i] = *r.at(i)
		}
		r.items, r.head = bigger, 0
	}
	r.n++
	*r.at(r.n - 1) = v
}

func (r *ring[T]) pop() T {
	v := *r.at(0)
	r.head = (r.head + 1) & (len(r.items) - 1)
	r.n--
	return v
}
