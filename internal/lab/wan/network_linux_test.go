package wan

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test program is also what runs in the namespaces.
func TestMain(m *testing.M) {
	switch os.Getenv("WAN_TEST_ROLE") {
	case "":
		goleak.VerifyTestMain(m)
	case "serve":
		os.Exit(serveBytes())
	case "fetch":
		os.Exit(fetchBytes())
	}
}

const testPort = 5001

// serveBytes sends as many bytes as each connection asks for, until stdin ends.
func serveBytes() int {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		err2 := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, os.Getenv("WAN_TEST_LAW"))
		})
		return errors.Join(err, err2)
	}}
	l, err := lc.Listen(context.Background(), "tcp4", fmt.Sprintf(":%d", testPort))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var size uint64
				if binary.Read(c, binary.BigEndian, &size) != nil {
					return
				}
				raw, _ := c.(*net.TCPConn).SyscallConn()
				_ = raw.Control(func(fd uintptr) {
					law, _ := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
					fmt.Fprintf(c, "%-16s", law)
				})
				_, _ = c.Write(make([]byte, size))
			}()
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// fetchBytes asks for a number of bytes and prints the server's congestion
// control, how long the answer took and how long a round trip did.
func fetchBytes() int {
	var size uint64
	var server string
	fmt.Sscan(os.Getenv("WAN_TEST_FETCH"), &server, &size)
	began := time.Now()
	c, err := net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", server, testPort), 10*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	rtt := time.Since(began)
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	_ = binary.Write(c, binary.BigEndian, size)
	law := make([]byte, 16)
	_, err = io.ReadFull(c, law)
	n, err2 := io.Copy(io.Discard, c)
	if err != nil || err2 != nil || uint64(n) != size {
		fmt.Fprintln(os.Stderr, n, err, err2)
		return 1
	}
	fmt.Println(strings.TrimSpace(string(law)), time.Since(began).Microseconds(), rtt.Microseconds())
	return 0
}

// needRoot skips a test that cannot run here; REQUIRE_PARTS=1 forbids it.
func needRoot(t *testing.T) {
	t.Helper()
	_, err := os.Stat("/dev/net/tun")
	if os.Geteuid() == 0 && err == nil {
		return
	}
	if os.Getenv("REQUIRE_PARTS") == "1" {
		t.Fatalf("needs root and /dev/net/tun: %v", err)
	}
	t.Skip("needs root and /dev/net/tun")
}

func startNetwork(t *testing.T, link Link) *Network {
	t.Helper()
	needRoot(t)
	n, err := New(link)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// startServer runs the test's server in a namespace; it ends with the test.
func startServer(t *testing.T, n *Namespace, law string) (pid int) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "WAN_TEST_ROLE=serve", "WAN_TEST_LAW="+law)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		up, err := Listening(cmd.Process.Pid, "tcp", testPort)
		if err != nil {
			t.Fatal(err)
		}
		if up {
			return cmd.Process.Pid
		}
		if time.Now().After(end) {
			t.Fatal("the server does not listen")
		}
	}
}

func fetch(t *testing.T, n *Network, size int) (law string, took, rtt time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), "WAN_TEST_ROLE=fetch", fmt.Sprintf("WAN_TEST_FETCH=%s %d", n.Server.Addr(), size))
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := n.Client.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("fetching: %v\n%s", err, &stderr)
	}
	var tookUs, rttUs int64
	if _, err := fmt.Sscan(out.String(), &law, &tookUs, &rttUs); err != nil {
		t.Fatalf("%v in %q", err, &out)
	}
	return law, time.Duration(tookUs) * time.Microsecond, time.Duration(rttUs) * time.Microsecond
}

func testLink(rate float64, delay time.Duration, buffer int, loss float64) Link {
	d := Direction{Rate: rate, Delay: delay, Buffer: buffer, Seed: 1}
	l := Link{Up: d, Down: d}
	l.Down.Loss = loss
	return l
}

// TestTCP sends by the kernel's TCP, with each congestion control that is there.
// The link cannot be faster than it was told, whatever the load of the machine.
func TestTCP(t *testing.T) {
	n := startNetwork(t, testLink(20e6, 20*time.Millisecond, 100_000, 0.001))
	available, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	const size = 2_000_000
	for law := range strings.FieldsSeq(string(available)) {
		t.Run(law, func(t *testing.T) {
			pid := startServer(t, n.Server, law)
			if err := n.Set(testLink(20e6, 20*time.Millisecond, 100_000, 0.001)); err != nil {
				t.Fatal(err)
			}
			before, err := CountersOf(pid)
			if err != nil {
				t.Fatal(err)
			}
			got, took, rtt := fetch(t, n, size)
			n.Quiet(50*time.Millisecond, 5*time.Second)
			_, down := n.Stats()
			after, err := CountersOf(pid)
			if err != nil {
				t.Fatal(err)
			}
			if got != law {
				t.Errorf("the connection was sent by %s", got)
			}
			if least := time.Duration(size*8/20e6*float64(time.Second)) + rtt; took < least || rtt < 40*time.Millisecond {
				t.Errorf("%d bytes in %v with a round trip of %v: the link allows no less than %v", size, took, rtt, least)
			}
			if down.Delivered+down.Lost+down.TailDrops != down.Offered || down.WriteErrors != 0 || down.DeliveredBytes < size {
				t.Errorf("%+v", down)
			}
			if sent := after.TCPRetransmitted - before.TCPRetransmitted; down.Lost+down.TailDrops > 0 && sent == 0 || after.DeviceDrops != before.DeviceDrops {
				t.Errorf("%d lost, %d sent again, %d dropped by the device", down.Lost+down.TailDrops, sent, after.DeviceDrops)
			}
			if limit := 100_000 * 8 / 20e6 * float64(time.Second); float64(down.Queueing.Max) > 1.04*limit {
				t.Errorf("a queue of %v in a buffer of %v", down.Queueing.Max, time.Duration(limit))
			}
		})
	}
}

// TestNoWayOut holds that nothing but the link leads out of a namespace.
func TestNoWayOut(t *testing.T) {
	n := startNetwork(t, testLink(10e6, time.Millisecond, 100_000, 0))
	err := n.Client.do(func() error {
		routes, err := os.ReadFile("/proc/thread-self/net/route")
		if err != nil {
			return err
		}
		for i, line := range strings.Split(strings.TrimSpace(string(routes)), "\n") {
			if fields := strings.Fields(line); i > 0 && (fields[0] != device || fields[1] == "00000000") {
				return fmt.Errorf("a route %q", line)
			}
		}
		devices, err := os.ReadFile("/proc/thread-self/net/dev")
		if err != nil {
			return err
		}
		if got := strings.Count(string(devices), ":"); got != 2 {
			return fmt.Errorf("%d interfaces:\n%s", got, devices)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLeftoversDie holds that a program left running does not outlive the network.
func TestLeftoversDie(t *testing.T) {
	needRoot(t)
	n, err := New(testLink(10e6, time.Millisecond, 100_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	if err := n.Server.Start(cmd); err != nil {
		n.Close()
		t.Fatal(err)
	}
	n.Close()
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	if err := cmd.Wait(); err == nil || !timer.Stop() {
		t.Errorf("the program was not killed: %v", err)
	}
}

func TestSetRefused(t *testing.T) {
	n := startNetwork(t, testLink(10e6, time.Millisecond, 100_000, 0))
	if err := n.Set(Link{}); err == nil {
		t.Error("a link without a rate was taken")
	}
	if err := n.Server.do(func() error { return setSysctl("net/ipv4/tcp_congestion_control", "nonsense") }); err == nil {
		t.Error("a congestion control that does not exist was taken")
	}
}
