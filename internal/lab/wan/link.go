package wan

import (
	"fmt"
	"time"
)

// Link describes the emulated link.
type Link struct {
	Up   Direction // client to server
	Down Direction // server to client
}

// Direction describes one way of a link.
type Direction struct {
	// Rate is the capacity in bits per second of IP packets, 1e4 to 1e9.
	Rate float64
	// Delay is the one-way propagation delay, 0 to 10 s.
	Delay time.Duration
	// Buffer bounds the bytes waiting for their turn, the packet in
	// transmission included: 1500 to 1 GiB.
	Buffer int
	// Loss is the probability that a packet is lost on the wire, 0 to below 1.
	Loss float64
	// Seed selects the sequence of losses.
	Seed uint64
}

// Validate reports the first field out of its range.
func (l Link) Validate() error {
	if err := l.Up.validate("Up"); err != nil {
		return err
	}
	return l.Down.validate("Down")
}

func (d Direction) validate(name string) error {
	switch {
	case !(d.Rate >= 1e4 && d.Rate <= 1e9): // true for NaN
		return fmt.Errorf("wan: %s.Rate is %g bit/s: must be 1e4 to 1e9", name, d.Rate)
	case d.Delay < 0 || d.Delay > 10*time.Second:
		return fmt.Errorf("wan: %s.Delay is %v: must be 0 to 10s", name, d.Delay)
	case d.Buffer < 1500 || d.Buffer > 1<<30:
		return fmt.Errorf("wan: %s.Buffer is %d: must be 1500 to %d bytes", name, d.Buffer, 1<<30)
	case !(d.Loss >= 0 && d.Loss < 1):
		return fmt.Errorf("wan: %s.Loss is %g: must be 0 to below 1", name, d.Loss)
	}
	return nil
}
