package lab

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestEndpointReadEnds(t *testing.T) {
	onWire(t, LinkConfig{}, func(w *wire) {
		var buf [10]byte
		if err := w.from.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.from.ReadFrom(buf[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		start := time.Now()
		_ = w.from.SetReadDeadline(start.Add(time.Second))
		if _, _, err := w.from.ReadFrom(buf[:]); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		_ = w.from.SetReadDeadline(time.Time{})
		end := make(chan error, 1)
		go func() {
			_, _, err := w.from.ReadFrom(buf[:])
			end <- err
		}()
		synctest.Wait()
		_ = w.from.SetReadDeadline(time.Now()) // also a call that is waiting
		if err := <-end; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("deadline moved: %v", err)
		}
		_ = w.from.SetReadDeadline(time.Time{})
		go func() {
			_, _, err := w.from.ReadFrom(buf[:])
			end <- err
		}()
		synctest.Wait()
		_ = w.from.Close()
		if err := <-end; !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		if _, err := w.from.WriteTo(buf[:], w.to.LocalAddr()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("writing when closed: %v", err)
		}
	})
}

func TestEndpointWrites(t *testing.T) {
	onWire(t, LinkConfig{}, func(w *wire) {
		if _, err := w.from.WriteTo(make([]byte, maxPayload+1), w.to.LocalAddr()); !errors.Is(err, syscall.EMSGSIZE) {
			t.Errorf("more than fits: %v", err)
		}
		nowhere := &net.UDPAddr{IP: net.IPv4(10, 9, 9, 9), Port: 1}
		if n, err := w.from.WriteTo(make([]byte, 10), nowhere); n != 10 || err != nil {
			t.Errorf("to nowhere: %d, %v", n, err)
		}
		same := w.to.LocalAddr().(*net.UDPAddr).AddrPort()
		if _, err := w.net.Listen(same, w.link); err == nil {
			t.Error("one address twice")
		}
		if s := w.link.Take(); s.Packets != 0 {
			t.Errorf("%d datagrams on the link", s.Packets)
		}
	})
}

func TestEndpointInboxIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewNetwork(1)
		defer n.Close()
		l, err := n.NewLink(LinkConfig{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := n.Listen(netip.MustParseAddrPort("10.0.0.1:1"), l)
		if err != nil {
			t.Fatal(err)
		}
		for range inboxLimit + 7 {
			if _, err := e.WriteTo([]byte("x"), e.LocalAddr()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := e.Overflows(); got != 7 {
			t.Errorf("%d datagrams dropped, want 7", got)
		}
	})
}
