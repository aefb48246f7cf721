package udplink

import (
	"fmt"
	"time"
)

// Config describes a link.
type Config struct {
	Up   Direction // client to server
	Down Direction // server to client
	// MaxClients bounds the clients served at a time, each of which takes a
	// socket; packets of more are dropped. 0 means 64.
	MaxClients int
}

// Direction describes one way of a link.
type Direction struct {
	// Rate is the capacity in bits per second of IP packets, 1e4 to 1e10; 0
	// means unlimited.
	Rate float64
	// Delay is the one-way propagation delay, 0 to 10 s.
	Delay time.Duration
	// Buffer bounds the bytes waiting for their turn, the packet in
	// transmission included: at least 1500, up to 1 GiB; 0 means unlimited.
	Buffer int
	// Loss is the probability that a packet is lost on the wire, 0 to below 1.
	Loss float64
	// Seed selects the sequence of losses.
	Seed uint64
}

// Validate reports the first field out of its range.
func (c Config) Validate() error {
	if c.MaxClients < 0 || c.MaxClients > 1000 {
		return fmt.Errorf("udplink: MaxClients is %d: must be 0 to 1000", c.MaxClients)
	}
	if err := c.Up.validate("Up"); err != nil {
		return err
	}
	return c.Down.validate("Down")
}

func (d Direction) validate(name string) error {
	switch {
	case d.Rate != 0 && !(d.Rate >= 1e4 && d.Rate <= 1e10): // false for NaN
		return fmt.Errorf("udplink: %s.Rate is %g bit/s: must be 0 or 1e4 to 1e10", name, d.Rate)
	case d.Delay < 0 || d.Delay > 10*time.Second:
		return fmt.Errorf("udplink: %s.Delay is %v: must be 0 to 10s", name, d.Delay)
	case d.Buffer != 0 && (d.Buffer < 1500 || d.Buffer > 1<<30):
		return fmt.Errorf("udplink: %s.Buffer is %d: must be 0 or 1500 to %d bytes", name, d.Buffer, 1<<30)
	case !(d.Loss >= 0 && d.Loss < 1):
		return fmt.Errorf("udplink: %s.Loss is %g: must be 0 to below 1", name, d.Loss)
	}
	return nil
}
