package wan

import (
	"bufio"
	"strings"
	"testing"
)

func TestCounters(t *testing.T) {
	const snmp = "Ip: A B\nIp: 1 2\nTcp: InSegs RetransSegs\nTcp: 10 7\n"
	if n, err := snmpValue(snmp, "Tcp:", "RetransSegs"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, text := range []string{"", "Tcp: InSegs\nTcp: 10\n", "Tcp: InSegs RetransSegs\nTcp: 10\n", "Tcp: RetransSegs\nTcp: x\n"} {
		if n, err := snmpValue(text, "Tcp:", "RetransSegs"); err == nil {
			t.Errorf("%d found in %q", n, text)
		}
	}
	const dev = "Inter-| Receive\n face |bytes\n    lo: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n  wan0: 9 9 0 3 0 0 0 0 9 9 0 4 0 0 0 0\n"
	if n, err := deviceDrops(dev); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, text := range []string{"", "wan0: 1 2", "wan0: 9 9 0 x 0 0 0 0 9 9 0 4 0 0 0 0", "wan0: 9 9 0 3 0 0 0 0 9 9 0 x 0 0 0 0"} {
		if n, err := deviceDrops(text); err == nil {
			t.Errorf("%d found in %q", n, text)
		}
	}
}

func TestListeningText(t *testing.T) {
	const sockets = `  sl  local_address rem_address   st tx_queue rx_queue
   0: 00000000:1389 00000000:0000 0A 00000000:00000000
   1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000
`
	for _, c := range []struct {
		transport string
		port      uint16
		want      bool
	}{{"tcp", 0x1389, true}, {"tcp", 0x1f90, false}, {"udp", 0x1f90, true}, {"udp", 0x9c40, false}} {
		if got := hasPort(bufio.NewScanner(strings.NewReader(sockets)), c.transport, c.port); got != c.want {
			t.Errorf("%s port %x: %v", c.transport, c.port, got)
		}
	}
}
