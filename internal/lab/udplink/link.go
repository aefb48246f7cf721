package udplink

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Link is a running emulated link.
type Link struct {
	front *net.UDPConn
	began time.Time
	up    *direction
	down  *direction
	done  chan struct{} // closed to end the relay
	end   func()        // closes done, once
	gone  chan struct{} // closed when the relay has ended
}

// Start runs a link to the server, an IPv4 address, until ctx ends or Close is
// called.
func Start(ctx context.Context, server *net.UDPAddr, cfg Config) (*Link, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if server.IP.To4() == nil {
		return nil, fmt.Errorf("udplink: server is %v: must be an IPv4 address", server)
	}
	if cfg.MaxClients == 0 {
		cfg.MaxClients = 64
	}
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("udplink: listening: %w", err)
	}
	prepareSocket(front)
	l := &Link{
		front: front,
		began: time.Now(),
		up:    newDirection(cfg.Up),
		down:  newDirection(cfg.Down),
		done:  make(chan struct{}),
		gone:  make(chan struct{}),
	}
	l.end = sync.OnceFunc(func() { close(l.done) })
	stop := context.AfterFunc(ctx, l.end)
	r := newRelay(l, server, cfg)
	go func() {
		defer close(l.gone)
		defer stop()
		r.run()
	}()
	return l, nil
}

// Addr is where clients send instead of to the server.
func (l *Link) Addr() *net.UDPAddr { return l.front.LocalAddr().(*net.UDPAddr) }

// Snapshot returns the state of the link now.
func (l *Link) Snapshot() Snapshot {
	now := l.now()
	return Snapshot{Up: l.up.snapshot(now), Down: l.down.snapshot(now)}
}

// Close ends the link, drops what is under way and waits for its end.
func (l *Link) Close() error {
	l.end()
	<-l.gone
	return nil
}

// now is the link's clock.
func (l *Link) now() int64 { return int64(time.Since(l.began)) }
