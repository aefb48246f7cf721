package wan

import (
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Network is two namespaces and the link between them.
type Network struct {
	Client, Server *Namespace

	emulator *emulator
}

// Addresses of the two ends; nobody else sees them.
var (
	clientPrefix = netip.MustParsePrefix("10.77.0.1/30")
	serverPrefix = netip.MustParsePrefix("10.77.0.2/30")
)

// New makes a network. It needs root, and /dev/net/tun. There is one network at a
// time in a process, whose threads have real-time priority until Close.
func New(link Link) (*Network, error) {
	if err := link.Validate(); err != nil {
		return nil, err
	}
	client, clientEnd, err := newNamespace(clientPrefix)
	if err != nil {
		return nil, err
	}
	server, serverEnd, err := newNamespace(serverPrefix)
	if err != nil {
		_ = unix.Close(clientEnd)
		client.close()
		return nil, err
	}
	e, err := startEmulator(clientEnd, serverEnd, link)
	if err != nil {
		_ = unix.Close(clientEnd)
		_ = unix.Close(serverEnd)
		client.close()
		server.close()
		return nil, err
	}
	scheduleProcess(realTime, client.thread, server.thread)
	return &Network{Client: client, Server: server, emulator: e}, nil
}

// Set replaces the link by a new one, with nothing in it and its counters at
// zero.
func (n *Network) Set(link Link) error {
	if err := link.Validate(); err != nil {
		return err
	}
	n.emulator.set(link)
	return nil
}

// Stats are the counters of the two directions since the link was set.
func (n *Network) Stats() (up, down Stats) { return n.emulator.stats() }

// Quiet waits until no packet was sent for a moment, or the limit has passed.
func (n *Network) Quiet(moment, limit time.Duration) { n.emulator.quiet(moment, limit) }

// Close ends the link and lets the namespaces go. The programs in them should
// have ended: the kernel kills those that have not.
func (n *Network) Close() {
	n.emulator.close()
	scheduleProcess(normal, n.Client.thread, n.Server.thread)
	n.Client.close()
	n.Server.close()
}
