package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// wanEcho sends datagrams back to where they came from, until the socket is closed.
func wanEcho(pc net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, from, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = pc.WriteTo(buf[:n], from)
		}
	}
}

// wanProbeJob: send a small datagram to the echo every Every, and take what a
// round trip lasts above RTT for the queue. It ends when stdin does.
type wanProbeJob struct {
	To         string
	Every, RTT time.Duration
}

// wanProbeResult is what a bystander sees of the queue, in ms.
type wanProbeResult struct {
	Sent, Received       int
	MeanMs, P95Ms, MaxMs float64
	TickLateP99Ms        float64 // how late the probe itself got to run
}

const (
	wanProbeBytes = 64
	wanProbeMax   = 100_000 // probes of a run: more than an hour
)

func wanProbe(ctx context.Context, job wanJob, stdout io.Writer) error {
	var j wanProbeJob
	if err := job.Decode(&j); err != nil {
		return err
	}
	conn, err := net.Dial("udp4", j.To)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, job.rest())
		cancel()
	}()
	var mu sync.Mutex
	var delays []time.Duration
	received := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(received)
		buf := make([]byte, wanProbeBytes+1)
		for {
			n, err := conn.Read(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil && n == wanProbeBytes {
				sent := time.Duration(binary.BigEndian.Uint64(buf))
				mu.Lock()
				delays = append(delays, max(time.Since(began)-sent-j.RTT, 0))
				mu.Unlock()
			}
		}
	}()
	tick := time.NewTicker(j.Every)
	defer tick.Stop()
	sent, late := 0, []time.Duration{}
	probe := make([]byte, wanProbeBytes)
	for ctx.Err() == nil && sent < wanProbeMax {
		binary.BigEndian.PutUint64(probe, uint64(time.Since(began)))
		if _, err := conn.Write(probe); err == nil {
			sent++
		}
		select {
		case due := <-tick.C:
			late = append(late, time.Since(due))
		case <-ctx.Done():
		}
	}
	mu.Lock()
	result := summarize(sent, delays)
	mu.Unlock()
	if len(late) > 0 {
		slices.Sort(late)
		result.TickLateP99Ms = milliseconds(late[len(late)*99/100])
	}
	_ = conn.Close()
	<-received
	return json.NewEncoder(stdout).Encode(result)
}

// summarize leaves out probes that were lost, or under way at the end.
func summarize(sent int, delays []time.Duration) wanProbeResult {
	r := wanProbeResult{Sent: sent, Received: len(delays)}
	if len(delays) == 0 {
		return r
	}
	slices.Sort(delays)
	var sum time.Duration
	for _, d := range delays {
		sum += d
	}
	r.MeanMs = milliseconds(sum) / float64(len(delays))
	r.P95Ms = milliseconds(delays[len(delays)*95/100])
	r.MaxMs = milliseconds(delays[len(delays)-1])
	return r
}
