package wan

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	device = "wan0"
	// txQueue is the length of an interface's own queue, in packets: nothing may
	// be dropped before the emulator has seen it.
	txQueue = 20000
	// socketBytes is what a TCP socket's buffers may grow to: several times the
	// largest bandwidth-delay product with its buffer.
	socketBytes = 64 << 20
)

// sysctls are set in each namespace, below /proc/sys.
var sysctls = [][2]string{
	{"net/ipv6/conf/all/disable_ipv6", "1"},
	{"net/ipv4/tcp_no_metrics_save", "1"}, // every connection starts afresh
	{"net/ipv4/tcp_rmem", fmt.Sprint("4096 131072 ", socketBytes)},
	{"net/ipv4/tcp_wmem", fmt.Sprint("4096 65536 ", socketBytes)},
}

// Namespace is a network namespace. A thread of its own holds it, makes its
// interfaces and starts the programs in it.
type Namespace struct {
	addr   netip.Addr
	thread int
	work   chan func()
	gone   chan struct{}
}

// newNamespace makes a namespace with a loopback and a TUN device of that
// address and its peer's, and returns the descriptor of the device's other end.
func newNamespace(addr netip.Prefix) (n *Namespace, tun int, err error) {
	n = &Namespace{addr: addr.Addr(), work: make(chan func()), gone: make(chan struct{})}
	ready := make(chan error, 1)
	go func() {
		defer close(n.gone)
		// Never unlocked: thread and namespace end with the goroutine.
		runtime.LockOSThread()
		n.thread = unix.Gettid()
		_ = unix.SchedSetAttr(0, &endpoint, 0) // for what it starts
		err := unix.Unshare(unix.CLONE_NEWNET)
		ready <- err
		if err != nil {
			return
		}
		for f := range n.work {
			f()
		}
	}()
	if err := <-ready; err != nil {
		return nil, -1, fmt.Errorf("wan: making a network namespace (needs root): %w", err)
	}
	err = n.do(func() (err error) {
		if err := setUp(); err != nil {
			return err
		}
		tun, err = openTUN(addr)
		return err
	})
	if err != nil {
		n.close()
		return nil, -1, err
	}
	return n, tun, nil
}

// do runs f on the namespace's thread.
func (n *Namespace) do(f func() error) error {
	done := make(chan error, 1)
	n.work <- func() { done <- f() }
	return <-done
}

// close lets the namespace go; programs that still run in it keep it.
func (n *Namespace) close() {
	close(n.work)
	<-n.gone
}

// Addr is the address of the namespace's end of the link.
func (n *Namespace) Addr() netip.Addr { return n.addr }

// Start starts cmd in the namespace, in a process group of its own. The kernel
// kills it when this process or the namespace's thread ends.
func (n *Namespace) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return n.do(cmd.Start)
}

// setSysctl sets a variable of the calling thread's namespace and sees that it
// took effect.
func setSysctl(name, value string) error {
	file := filepath.Join("/proc/sys", name)
	if err := os.WriteFile(file, []byte(value), 0o644); err != nil {
		return fmt.Errorf("wan: setting %s to %q: %w", name, value, err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("wan: reading %s: %w", name, err)
	}
	if strings.Join(strings.Fields(string(got)), " ") != value {
		return fmt.Errorf("wan: setting %s to %q: it is %q", name, value, strings.TrimSpace(string(got)))
	}
	return nil
}

// setUp prepares a new namespace; it runs on its thread.
func setUp() error {
	for _, s := range sysctls {
		err := setSysctl(s[0], s[1])
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return err
		}
	}
	return configure("lo", func(c interfaceConfig) error { return c.up() })
}

// openTUN makes the namespace's end of the link; it runs on its thread.
func openTUN(addr netip.Prefix) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("wan: opening /dev/net/tun (is the tun module there?): %w", err)
	}
	err = func() error {
		ifr, err := unix.NewIfreq(device)
		if err != nil {
			return err
		}
		ifr.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
			return fmt.Errorf("wan: making a TUN device: %w", err)
		}
		return configure(device, func(c interfaceConfig) error {
			return errors.Join(
				c.set(unix.SIOCSIFMTU, "MTU", func(r *unix.Ifreq) error { r.SetUint32(1500); return nil }),
				c.set(unix.SIOCSIFTXQLEN, "queue length", func(r *unix.Ifreq) error { r.SetUint32(txQueue); return nil }),
				c.set(unix.SIOCSIFADDR, "address", func(r *unix.Ifreq) error { return r.SetInet4Addr(addr.Addr().AsSlice()) }),
				c.set(unix.SIOCSIFNETMASK, "netmask", func(r *unix.Ifreq) error { return r.SetInet4Addr(netmask(addr)) }),
				c.up(),
			)
		})
	}()
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func netmask(p netip.Prefix) []byte {
	m := ^uint32(0) << (32 - p.Bits())
	return []byte{byte(m >> 24), byte(m >> 16), byte(m >> 8), byte(m)}
}

// interfaceConfig sets properties of a network interface.
type interfaceConfig struct {
	name   string
	socket int // any of the namespace
}

func configure(name string, f func(interfaceConfig) error) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("wan: a socket to configure %s: %w", name, err)
	}
	defer unix.Close(s)
	return f(interfaceConfig{name, s})
}

func (c interfaceConfig) set(request uint, what string, fill func(*unix.Ifreq) error) error {
	ifr, err := unix.NewIfreq(c.name)
	if err == nil {
		err = fill(ifr)
	}
	if err == nil {
		err = unix.IoctlIfreq(c.socket, request, ifr)
	}
	if err != nil {
		return fmt.Errorf("wan: setting the %s of %s: %w", what, c.name, err)
	}
	return nil
}

func (c interfaceConfig) up() error {
	return c.set(unix.SIOCSIFFLAGS, "state", func(r *unix.Ifreq) error { r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING); return nil })
}
