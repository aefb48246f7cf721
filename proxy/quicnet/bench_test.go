package quicnet

import (
	"context"
	"io"
	"testing"

	"fastpacs/cc"
)

// BenchmarkLoopback sends 64 MiB by one stream, from the listener to the dialer,
// in one process.
func BenchmarkLoopback(b *testing.B) {
	for _, law := range []cc.Law{cc.LawReno, cc.LawImproved} {
		b.Run(string(law), func(b *testing.B) {
			cfg := DefaultConfig()
			cfg.Law = law
			pair := newTestTLS(b)
			ln, err := Listen(testSocket(b), pair.server, cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer ln.Close()
			c, err := Dial(b.Context(), testSocket(b), ln.Addr(), pair.client, cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			peer, err := ln.Accept(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			const size = 64 << 20
			sent := make(chan error, 1)
			go func() { sent <- sendAll(b.Context(), peer, size, b.N) }()
			b.SetBytes(size)
			b.ReportAllocs()
			b.ResetTimer()
			st, err := c.AcceptStream(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, st, make([]byte, 256<<10))
			if err != nil || n != int64(size*b.N) {
				b.Fatalf("%d bytes, %v", n, err)
			}
			b.StopTimer()
			if err := <-sent; err != nil {
				b.Fatal(err)
			}
			st2 := peer.conn.ConnectionStats()
			b.ReportMetric(float64(st2.PacketsLost)/float64(st2.PacketsSent)*100, "lost%")
		})
	}
}

func sendAll(ctx context.Context, c *Conn, size, times int) error {
	st, err := c.OpenStream(ctx)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for range size / len(block) * times {
		if _, err := st.Write(block); err != nil {
			return err
		}
	}
	return st.CloseWrite()
}
