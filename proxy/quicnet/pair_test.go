package quicnet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// echoServer accepts connections and sends back every stream, until the test
// ends.
type echoServer struct {
	addr  net.Addr
	tls   testTLSPair
	conns chan *Conn
}

func startEcho(t testing.TB, cfg Config) *echoServer {
	t.Helper()
	pair := newTestTLS(t)
	ln, err := Listen(testSocket(t), pair.server, cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &echoServer{addr: ln.Addr(), tls: pair, conns: make(chan *Conn, 16)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept(ctx)
			if err != nil {
				return
			}
			s.conns <- c
			wg.Go(func() {
				for {
					st, err := c.AcceptStream(ctx)
					if err != nil {
						return
					}
					wg.Go(func() {
						if _, err := io.Copy(st, st); err == nil {
							_ = st.CloseWrite()
						}
					})
				}
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
	return s
}

// dial connects to the server by way of addr.
func (s *echoServer) dial(t testing.TB, addr net.Addr, cfg Config) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	c, err := Dial(ctx, testSocket(t), addr, s.tls.client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// accepted returns the server's end of the connection dialled first.
func (s *echoServer) accepted(t testing.TB) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	select {
	case c := <-s.conns:
		return c
	case <-ctx.Done():
		t.Fatal("no connection came")
		return nil
	}
}

// payload returns n bytes that depend on seed.
func payload(n int, seed byte) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(b)
	return b
}

// echo sends body by a new stream, calls halfway once half of it has come back,
// and fails the test unless all comes back as it was.
func echo(t testing.TB, c *Conn, body []byte, halfway func()) {
	t.Helper()
	if err := tryEcho(t.Context(), c, body, halfway); err != nil {
		t.Fatal(err)
	}
}

func tryEcho(ctx context.Context, c *Conn, body []byte, halfway func()) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	st, err := c.OpenStream(ctx)
	if err != nil {
		return err
	}
	defer st.Close()
	end, _ := ctx.Deadline()
	if err := st.SetDeadline(end); err != nil {
		return err
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := st.Write(body)
		if err == nil {
			err = st.CloseWrite()
		}
		wrote <- err
	}()
	got := make([]byte, len(body))
	_, err = io.ReadFull(st, got[:len(got)/2])
	if err == nil {
		halfway()
		_, err = io.ReadFull(st, got[len(got)/2:])
	}
	if err != nil {
		return err
	}
	if n, err := st.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return fmt.Errorf("after the echo: %d bytes, %v", n, err)
	}
	if !bytes.Equal(got, body) {
		return fmt.Errorf("echo has hash %x, want %x", sha256.Sum256(got), sha256.Sum256(body))
	}
	return <-wrote
}

func nothing() {}
