package wan

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Counters are what the kernel counts in the namespace of a process.
type Counters struct {
	TCPRetransmitted int64 // segments sent again since the namespace was made
	DeviceDrops      int64 // packets that the link's interface dropped by itself
}

// CountersOf reads the counters of the namespace in which process pid runs.
func CountersOf(pid int) (Counters, error) {
	snmp, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/snmp", pid))
	if err != nil {
		return Counters{}, fmt.Errorf("wan: reading TCP counters: %w", err)
	}
	dev, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/dev", pid))
	if err != nil {
		return Counters{}, fmt.Errorf("wan: reading interface counters: %w", err)
	}
	c := Counters{}
	if c.TCPRetransmitted, err = snmpValue(string(snmp), "Tcp:", "RetransSegs"); err != nil {
		return c, err
	}
	c.DeviceDrops, err = deviceDrops(string(dev))
	return c, err
}

// snmpValue finds a value in /proc/net/snmp: a line of names and one of values.
func snmpValue(text, protocol, name string) (int64, error) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != protocol {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n == name && i < len(fields) {
				return strconv.ParseInt(fields[i], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("wan: /proc/net/snmp has no %s %s", protocol, name)
}

// deviceDrops adds the drops of both ways of the link's interface, in
// /proc/net/dev: NAME: 8 numbers of receiving, 8 of sending, each bytes,
// packets, errors, drops, ...
func deviceDrops(text string) (int64, error) {
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || name != device {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) < 12 {
			break
		}
		in, err := strconv.ParseInt(fields[3], 10, 64)
		if err != nil {
			return 0, err
		}
		out, err := strconv.ParseInt(fields[11], 10, 64)
		return in + out, err
	}
	return 0, fmt.Errorf("wan: /proc/net/dev has no %s", device)
}

// Listening reports whether somebody has that port of a transport, "tcp" or
// "udp", in the namespace in which process pid runs.
func Listening(pid int, transport string, port uint16) (bool, error) {
	for _, suffix := range []string{"", "6"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/net/%s%s", pid, transport, suffix))
		if os.IsNotExist(err) && suffix == "6" {
			continue // a kernel without IPv6
		}
		if err != nil {
			return false, fmt.Errorf("wan: looking for %s port %d: %w", transport, port, err)
		}
		found := hasPort(bufio.NewScanner(file), transport, port)
		_ = file.Close()
		if found {
			return true, nil
		}
	}
	return false, nil
}

// hasPort looks for a socket that is bound to the port and, for TCP, listens
// (state 0A): "sl local_address rem_address st ...", in hexadecimal.
func hasPort(lines *bufio.Scanner, transport string, port uint16) bool {
	want := fmt.Sprintf(":%04X", port)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 3 && strings.HasSuffix(fields[1], want) && (transport != "tcp" || fields[3] == "0A") {
			return true
		}
	}
	return false
}
