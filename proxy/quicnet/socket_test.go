package quicnet

import (
	"runtime"
	"strings"
	"testing"
)

func TestListenUDPEnlargesBuffers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("sizes are known on Linux only")
	}
	got, err := BuffersOf(testSocket(t))
	if err != nil {
		t.Fatal(err)
	}
	// What the kernel allows depends on the machine, but never nothing; root gets
	// it all.
	if got.Receive <= 0 || got.Send <= 0 {
		t.Errorf("buffers %+v", got)
	}
	if err := (Buffers{Receive: WantedBuffer, Send: WantedBuffer}).Check(); err != nil {
		t.Error(err)
	}
	err = Buffers{Receive: 425984, Send: WantedBuffer}.Check()
	if err == nil || !strings.Contains(err.Error(), "receive buffer has 416 KiB of 7168 KiB: set sysctl net.core.rmem_max=7340032") || strings.Contains(err.Error(), "wmem") {
		t.Errorf("a small buffer: %v", err)
	}
	if err := (Buffers{}).Check(); err == nil || !strings.Contains(err.Error(), "net.core.wmem_max") {
		t.Errorf("no buffers: %v", err)
	}
}

func TestListenUDPSaysWhatFailed(t *testing.T) {
	for _, addr := range []string{"127.0.0.1", "127.0.0.1:70000", "256.0.0.1:0"} {
		if pc, err := ListenUDP(addr); err == nil {
			_ = pc.Close()
			t.Errorf("ListenUDP(%q) succeeds", addr)
		} else if !strings.Contains(err.Error(), addr) {
			t.Errorf("ListenUDP(%q): %v", addr, err)
		}
	}
	pc := testSocket(t)
	if _, err := ListenUDP(pc.LocalAddr().String()); err == nil {
		t.Error("a socket in use is opened again")
	}
	_ = pc.Close()
	if _, err := BuffersOf(pc); err == nil {
		t.Error("a closed socket has buffers")
	}
}
