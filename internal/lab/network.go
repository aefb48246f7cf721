package lab

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// Network joins end points by links. Close it after everything that uses it.
type Network struct {
	pool datagramPool
	seed uint64

	mu    sync.RWMutex
	links []*Link
	ends  map[netip.AddrPort]*Endpoint
}

// NewNetwork returns an empty network; seed fixes every random draw of its links.
func NewNetwork(seed uint64) *Network {
	return &Network{seed: seed, ends: make(map[netip.AddrPort]*Endpoint)}
}

// NewLink starts a link. Links draw from streams of their own, so that what one
// carries does not change the luck of another.
func (n *Network) NewLink(cfg LinkConfig) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := newLink(cfg, &n.pool, n.seed<<16+uint64(len(n.links)))
	n.links = append(n.links, l)
	return l, nil
}

// Listen returns an end point with the given address, whose datagrams leave
// over out.
func (n *Network) Listen(addr netip.AddrPort, out *Link) (*Endpoint, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, taken := n.ends[addr]; taken {
		return nil, fmt.Errorf("lab: listening on %v: address in use", addr)
	}
	e := newEndpoint(n, addr, out)
	n.ends[addr] = e
	return e, nil
}

// Close stops the links; datagrams under way are gone.
func (n *Network) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		l.close()
	}
	n.links = nil
}

func (n *Network) find(addr net.Addr) *Endpoint {
	u, ok := addr.(*net.UDPAddr)
	if !ok {
		return nil
	}
	ap := u.AddrPort()
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.ends[netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())]
}

func (n *Network) remove(addr netip.AddrPort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ends, addr)
}
