package e2e

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// udpRelay passes the datagrams of clients to a server and back, and stands for
// the firewall on the way: it can drop all of them, or be gone.
type udpRelay struct {
	front    *net.UDPConn // to clients
	server   *net.UDPAddr
	dropping atomic.Bool
	dropped  atomic.Int64

	mu    sync.Mutex
	backs map[string]*net.UDPConn // by client address; to the server
	done  sync.WaitGroup
	once  sync.Once
}

// startUDPRelay relays to server ("host:port") until the test ends.
func startUDPRelay(tb testing.TB, server string) *udpRelay {
	tb.Helper()
	to, err := net.ResolveUDPAddr("udp4", server)
	if err != nil {
		tb.Fatal(err)
	}
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	r := &udpRelay{front: front, server: to, backs: make(map[string]*net.UDPConn)}
	r.done.Go(r.forward)
	tb.Cleanup(r.close)
	return r
}

func (r *udpRelay) port() int { return r.front.LocalAddr().(*net.UDPAddr).Port }

// close is what a closed port is like: the kernel answers that nobody listens.
func (r *udpRelay) close() {
	r.once.Do(func() {
		_ = r.front.Close()
		r.mu.Lock()
		for _, back := range r.backs {
			_ = back.Close()
		}
		r.mu.Unlock()
		r.done.Wait()
	})
}

const maxDatagram = 2048

func (r *udpRelay) forward() {
	buf := make([]byte, maxDatagram)
	for {
		n, client, err := r.front.ReadFromUDP(buf)
		if err != nil {
			return // closed
		}
		if r.dropping.Load() {
			r.dropped.Add(1)
			continue
		}
		if back := r.backOf(client); back != nil {
			_, _ = back.Write(buf[:n]) // as UDP is: lost if it does not go
		}
	}
}

func (r *udpRelay) backOf(client *net.UDPAddr) *net.UDPConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.String()
	back, ok := r.backs[key]
	if !ok {
		var err error
		if back, err = net.DialUDP("udp4", nil, r.server); err != nil {
			return nil
		}
		r.backs[key] = back
		r.done.Go(func() { r.backward(back, client) })
	}
	return back
}

func (r *udpRelay) backward(back *net.UDPConn, client *net.UDPAddr) {
	buf := make([]byte, maxDatagram)
	for {
		n, err := back.Read(buf)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue // the server's port is closed for now, says the kernel, once a datagram
		}
		if r.dropping.Load() {
			r.dropped.Add(1)
			continue
		}
		_, _ = r.front.WriteToUDP(buf[:n], client)
	}
}
