package lab

import (
	"net"
	"sync"
)

// maxPayload is the largest UDP payload that fits an Ethernet frame.
const maxPayload = 1500 - headerBytes

// datagram is a UDP payload under way.
type datagram struct {
	from net.Addr
	to   *Endpoint
	n    int
	buf  [maxPayload]byte
}

// wireBytes is the datagram's size with its IP and UDP headers.
func (d *datagram) wireBytes() int { return d.n + headerBytes }

// datagramPool recycles datagrams.
type datagramPool struct{ pool sync.Pool }

func (p *datagramPool) get() *datagram {
	if d, ok := p.pool.Get().(*datagram); ok {
		return d
	}
	return new(datagram)
}

func (p *datagramPool) put(d *datagram) {
	d.from, d.to = nil, nil
	p.pool.Put(d)
}
