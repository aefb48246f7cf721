package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fastpacs/proxy/quicnet"
)

// TestHostileClients lets clients do what clients should not.
func TestHostileClients(t *testing.T) {
	upstream := httptest.NewServer(memoryArchive())
	t.Cleanup(upstream.Close)
	f := startFastpacs(t, upstream.URL, "FASTPACS_HEADER_TIMEOUT=300ms", "FASTPACS_MAX_HEADER_SIZE=16KiB")
	ctx := within(t, time.Minute)
	noise := make([]byte, 4096)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise) // never fails

	// What a client of TCP sends, and what it gets before the connection ends,
	// which it has to within a few seconds.
	for _, c := range []struct {
		name  string
		tls   bool
		start string
		drip  string // again and again, a byte at a time
		want  string // in the answer
	}{
		{name: "silence"},
		{name: "silence after the handshake", tls: true},
		{name: "garbage", start: string(noise)},
		{name: "garbage like a TLS record", start: "\x16\x03\x01\xff\xff" + string(noise)},
		{name: "plain HTTP", start: "GET / HTTP/1.1\r\nHost: a\r\n\r\n", want: "400 Bad Request"},
		{name: "garbage after the handshake", tls: true, start: string(noise), want: "400 Bad Request"},
		{name: "slow header", tls: true, start: "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ", drip: "a"},
		{name: "oversized header", tls: true, start: "GET / HTTP/1.1\r\nHost: a\r\nX-Large: " + strings.Repeat("a", 64<<10) + "\r\n\r\n", want: "431 "},
		{name: "two lengths", tls: true, start: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", want: "400 Bad Request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := converse(ctx, f, c.tls, c.start, c.drip)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(answer, c.want) {
				t.Errorf("answer %.300q, want %q in it", answer, c.want)
			}
		})
	}
	t.Run("oversized header h3", func(t *testing.T) {
		got, err := fetch(ctx, f.client(t, "h3"), http.MethodGet, f.url("/small"), http.Header{"X-Large": {strings.Repeat("a", 64<<10)}}, nil)
		if err != nil || got.status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d, %v: want 431", got.status, err)
		}
	})
	t.Run("garbage datagrams", func(t *testing.T) {
		c, err := net.Dial("udp4", f.host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range 2000 {
			size := 1 + random.Uint64()%1400
			_, _ = random.Read(noise[:size])
			if i%2 == 0 { // like an Initial of QUIC version 1
				copy(noise, []byte{0xc3, 0, 0, 0, 1, 8})
			}
			if _, err := c.Write(noise[:size]); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, protocol := range protocols {
		if got, err := get(ctx, f.client(t, protocol), f.url("/small")); err != nil || got.status != http.StatusOK {
			t.Errorf("afterwards, %s: status %d, %v", protocol, got.status, err)
		}
	}
}

// converse sends start and then drip, byte by byte, and returns what came back
// until the server ended the connection.
func converse(ctx context.Context, f *fastpacs, overTLS bool, start, drip string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", f.host)
	if err != nil {
		return "", err
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return "", err
	}
	if overTLS {
		c = tls.Client(c, f.tlsConfig("http/1.1"))
	}
	if _, err := io.WriteString(c, start); err != nil && !isReset(err) {
		return "", err
	}
	stop := make(chan struct{})
	var dripping sync.WaitGroup
	if drip != "" {
		dripping.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					if _, err := io.WriteString(c, drip); err != nil {
						return
					}
				case <-stop:
					return
				}
			}
		})
	}
	answer, err := io.ReadAll(c)
	close(stop)
	dripping.Wait()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return "", errors.New("the server keeps the connection open")
	}
	return string(answer), nil
}

// isReset tells whether the server ended the connection while we wrote.
func isReset(err error) bool {
	_, ok := errors.AsType[*net.OpError](err)
	return ok
}

// tlsConfig trusts f and asks for that application protocol.
func (f *fastpacs) tlsConfig(alpn string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(f.leaf)
	return &tls.Config{RootCAs: roots, ServerName: "localhost", NextProtos: []string{alpn}}
}

// TestDroppedConnections opens and drops connections, twice: what is left after
// the second time must not be more than after the first.
func TestDroppedConnections(t *testing.T) {
	upstream := httptest.NewServer(memoryArchive())
	t.Cleanup(upstream.Close)
	f := startFastpacs(t, upstream.URL, "FASTPACS_QUIC_IDLE_TIMEOUT=1s")
	ctx := within(t, 2*time.Minute)
	once := flood{tcp: 5000, quic: 150}
	if err := once.run(ctx, f); err != nil {
		t.Fatal(err)
	}
	first := f.settle(t, 40)
	if err := once.run(ctx, f); err != nil {
		t.Fatal(err)
	}
	second := f.settle(t, first.goroutines)
	t.Logf("after the first time %v, after the second %v", first, second)
	// Spans of a heap that is reused, not what connections hold.
	const slack = 12 << 20
	if limit := first.rss + slack; second.rss > limit && !raceEnabled {
		t.Errorf("%d MiB are resident after the second time, %d after the first", second.rss>>20, first.rss>>20)
	}
	for _, protocol := range protocols {
		if got, err := get(ctx, f.client(t, protocol), f.url("/small")); err != nil || got.status != http.StatusOK {
			t.Errorf("afterwards, %s: status %d, %v", protocol, got.status, err)
		}
	}
}

// footprint is what a process holds.
type footprint struct {
	goroutines float64
	rss        int64 // bytes
}

func (p footprint) String() string {
	return fmt.Sprintf("%v goroutines, %.1f MiB", p.goroutines, float64(p.rss)/(1<<20))
}

// settle waits until f has no client and not many more goroutines than that, and
// returns what it holds.
func (f *fastpacs) settle(tb testing.TB, goroutines float64) footprint {
	tb.Helper()
	var now footprint
	eventually(tb, 30*time.Second, func() error {
		if n := f.metric(tb, "fastpacs_connections"); n != 0 {
			return fmt.Errorf("%v connections are open", n)
		}
		now = footprint{f.metric(tb, "go_goroutines"), f.memory(tb).rss}
		if now.goroutines > goroutines+10 {
			return fmt.Errorf("%v goroutines, expected about %v", now.goroutines, goroutines)
		}
		return nil
	})
	return now
}

// flood opens connections and drops them in every way there is.
type flood struct{ tcp, quic int }

func (n flood) run(ctx context.Context, f *fastpacs) error {
	const workers = 32
	errs := make([]error, 2*workers)
	var nextTCP, nextQUIC atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := nextTCP.Add(1); i <= int64(n.tcp) && errs[w] == nil; i = nextTCP.Add(1) {
				errs[w] = f.dropTCP(ctx, i)
			}
		})
		all.Go(func() {
			for i := nextQUIC.Add(1); i <= int64(n.quic) && errs[workers+w] == nil; i = nextQUIC.Add(1) {
				errs[workers+w] = f.dropQUIC(ctx, i)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// dropTCP opens the i-th connection and drops it.
func (f *fastpacs) dropTCP(ctx context.Context, i int64) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", f.host)
	if err != nil {
		return err
	}
	defer c.Close()
	tcp := c.(*net.TCPConn)
	if i%2 == 0 { // a reset; and no port of ours is left in TIME-WAIT
		if err := tcp.SetLinger(0); err != nil {
			return err
		}
	}
	switch i % 32 {
	case 0: // dropped after the handshake
		return tls.Client(c, f.tlsConfig("h2")).HandshakeContext(ctx)
	case 1: // dropped in the middle of a request
		tc := tls.Client(c, f.tlsConfig("http/1.1"))
		_, err := io.WriteString(tc, "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nx")
		return err
	case 2, 3:
		_, err := c.Write(bytes.Repeat([]byte{22, 3, 1}, 100))
		return err
	}
	return nil
}

// dropQUIC opens the i-th connection and drops it.
func (f *fastpacs) dropQUIC(ctx context.Context, i int64) error {
	pc, err := quicnet.ListenUDP("127.0.0.1:0")
	if err != nil {
		return err
	}
	defer pc.Close()
	addr, err := net.ResolveUDPAddr("udp", f.host)
	if err != nil {
		return err
	}
	if i%8 == 0 { // in the middle of the handshake
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
	}
	c, err := quicnet.Dial(ctx, pc, addr, f.tlsConfig("h3"), quicnet.DefaultConfig())
	if err != nil {
		if i%8 == 0 {
			return nil
		}
		return err
	}
	if i%2 == 0 { // without a word: the server has to find out
		_ = pc.Close()
	}
	return c.Close()
}
