package lab

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"fastpacs/cc"
	"fastpacs/proxy/quicnet"
)

// flow is one connection of a running scenario: a server that answers each
// stream's 8-byte request, the number of bytes wanted (0: without end), and a
// client that asks.
type flow struct {
	Flow
	tie    time.Duration // added to Start, so that flows that start together do so in one order
	t0     time.Time
	cfg    quicnet.Config
	server *Endpoint
	client *Endpoint

	received atomic.Int64 // bytes the client has read

	mu      sync.Mutex
	conn    *quicnet.Conn   // the server's end, nil before the handshake
	objects []time.Duration // request to last byte
	err     error           // the first that the scenario did not ask for
}

// alpn is the application protocol of the laboratory.
const alpn = "fastpacs-lab"

// flowAddrs returns the addresses of flow i's server and client.
func flowAddrs(i int) (server, client netip.AddrPort) {
	addr := func(host byte) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), host}), 443)
	}
	return addr(1), addr(2)
}

// run serves and fetches from the flow's start to its stop, or until ctx ends.
func (f *flow) run(ctx context.Context, serverTLS, clientTLS *tls.Config) {
	defer f.server.Close()
	defer f.client.Close()
	if !sleep(ctx, f.Start+f.tie) {
		return
	}
	ctx, cancel := context.WithDeadline(ctx, f.t0.Add(f.Stop))
	defer cancel()
	ln, err := quicnet.Listen(f.server, serverTLS, f.cfg)
	if err != nil {
		f.fail(ctx, err)
		return
	}
	var served sync.WaitGroup
	served.Go(func() { f.serve(ctx, ln) })
	f.fetch(ctx, clientTLS)
	cancel()
	served.Wait()
	f.close(ln)
}

// close ends the server once the client's farewell has had time to arrive.
func (f *flow) close(ln *quicnet.Listener) {
	time.Sleep(f.RTT + time.Second)
	_ = ln.Close() // the run is over: there is nobody to tell
}

// fail keeps an error, unless the scenario ended the flow.
func (f *flow) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = fmt.Errorf("after %.3f s: %w", time.Since(f.t0).Seconds(), err)
	}
}

func (f *flow) serve(ctx context.Context, ln *quicnet.Listener) {
	conn, err := ln.Accept(ctx)
	if err != nil {
		f.fail(ctx, err)
		return
	}
	f.mu.Lock()
	f.conn = conn
	f.mu.Unlock()
	var streams sync.WaitGroup
	for {
		s, err := conn.AcceptStream(ctx)
		if err != nil {
			f.fail(ctx, err)
			break
		}
		streams.Go(func() {
			if err := answer(s); err != nil {
				f.fail(ctx, err)
			}
		})
	}
	_ = conn.Close()
	streams.Wait()
}

// answer reads one request and writes what it asks for.
func answer(s *quicnet.Stream) error {
	var req [8]byte
	if _, err := io.ReadFull(s, req[:]); err != nil {
		return fmt.Errorf("reading a request: %w", err)
	}
	left := int64(binary.BigEndian.Uint64(req[:]))
	endless := left == 0
	buf := make([]byte, 64<<10)
	for endless || left > 0 {
		n := int64(len(buf))
		if !endless {
			n = min(n, left)
			left -= n
		}
		if _, err := s.Write(buf[:n]); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return s.CloseWrite()
}

func (f *flow) fetch(ctx context.Context, tlsConf *tls.Config) {
	conn, err := quicnet.Dial(ctx, f.client, f.server.LocalAddr(), tlsConf, f.cfg)
	if err != nil {
		f.fail(ctx, err)
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // ends a read
	defer stop()
	for {
		start := time.Now()
		if err := f.get(ctx, conn); err != nil {
			f.fail(ctx, err)
			return
		}
		f.mu.Lock()
		f.objects = append(f.objects, time.Since(start))
		f.mu.Unlock()
		if !sleep(ctx, f.Pause) {
			return
		}
	}
}

// get makes one request and reads its answer.
func (f *flow) get(ctx context.Context, conn *quicnet.Conn) error {
	s, err := conn.OpenStream(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Write(binary.BigEndian.AppendUint64(nil, uint64(f.Object))); err != nil {
		return fmt.Errorf("writing a request: %w", err)
	}
	if err := s.CloseWrite(); err != nil {
		return fmt.Errorf("ending a request: %w", err)
	}
	buf := make([]byte, 256<<10)
	for got := int64(0); ; {
		n, err := s.Read(buf)
		got += int64(n)
		f.received.Add(int64(n))
		if err == io.EOF && got == f.Object {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading an answer, %d bytes in: %w", got, err)
		}
	}
}

// snapshot returns the state of the server's controller.
func (f *flow) snapshot() (cc.Snapshot, bool) {
	f.mu.Lock()
	conn := f.conn
	f.mu.Unlock()
	if conn == nil || time.Since(f.t0) > f.Stop {
		return cc.Snapshot{}, false
	}
	return conn.Path().Snapshot, true
}

// sleep waits for d; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
