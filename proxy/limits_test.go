package proxy

import (
	"net"
	"net/netip"
	"testing"
)

func TestAdmission(t *testing.T) {
	addr := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	a := newAdmission(3, 2)

	one, why := a.admit(addr("192.0.2.1:1"))
	if why != admitted {
		t.Fatalf("first connection refused: %s", why)
	}
	if _, why := a.admit(addr("192.0.2.1:2")); why != admitted {
		t.Fatalf("second connection refused: %s", why)
	}
	if _, why := a.admit(addr("[::ffff:192.0.2.1]:3")); why != refusedByAddress {
		t.Errorf("third connection of one address: %q, want %q", why, refusedByAddress)
	}
	if _, why := a.admit(addr("192.0.2.2:1")); why != admitted {
		t.Fatalf("another address refused: %s", why)
	}
	if _, why := a.admit(addr("192.0.2.3:1")); why != refusedByTotal {
		t.Errorf("fourth connection: %q, want %q", why, refusedByTotal)
	}
	one()
	one() // counts once
	if _, why := a.admit(addr("192.0.2.1:4")); why != admitted {
		t.Errorf("connection after a release refused: %s", why)
	}
	if _, why := a.admit(addr("192.0.2.1:5")); why == admitted {
		t.Error("a second call of release made room for another connection")
	}
}

// Counts must be gone with the connections, or addresses would pile up.
func TestAdmissionForgetsAddresses(t *testing.T) {
	a := newAdmission(1000, 1)
	for i := range 300 {
		release, why := a.admit(&net.UDPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i)), Port: 1})
		if why != admitted {
			t.Fatalf("connection %d refused: %s", i, why)
		}
		release()
	}
	if len(a.per) != 0 || a.total != 0 {
		t.Errorf("after the last release: %d addresses, %d connections; want none", len(a.per), a.total)
	}
}

func TestClientPrefix(t *testing.T) {
	for _, tt := range []struct{ a, b string }{
		{"192.0.2.1:1", "[::ffff:192.0.2.1]:2"},
		{"[2001:db8:1:2:3::4]:1", "[2001:db8:1:2:5::6]:2"},
		{"[fe80::1%eth0]:1", "[fe80::2%eth1]:2"},
	} {
		a, b := netip.MustParseAddrPort(tt.a), netip.MustParseAddrPort(tt.b)
		pa, pb := clientPrefix(net.TCPAddrFromAddrPort(a)), clientPrefix(net.UDPAddrFromAddrPort(b))
		if pa != pb || !pa.IsValid() {
			t.Errorf("%s is of client %v, %s of %v; want the same", a, pa, b, pb)
		}
	}
	a := clientPrefix(&net.TCPAddr{IP: net.ParseIP("2001:db8:1:2::1")})
	b := clientPrefix(&net.TCPAddr{IP: net.ParseIP("2001:db8:1:3::1")})
	if a == b {
		t.Errorf("two /64 networks are one client: %v", a)
	}
	if p := clientPrefix(&net.UnixAddr{Name: "/run/x", Net: "unix"}); p.IsValid() {
		t.Errorf("a Unix socket is of client %v, want none", p)
	}
}
