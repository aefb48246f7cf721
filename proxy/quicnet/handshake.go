package quicnet

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// handshakeGate counts unfinished handshakes, and asks clients to prove their
// address while there are many.
type handshakeGate struct {
	retryAbove int64
	pending    atomic.Int64
}

type leaveKey struct{}

// enter counts a handshake until leave is called with the context it returns, or
// that ends.
func (g *handshakeGate) enter(ctx context.Context) context.Context {
	g.pending.Add(1)
	leave := sync.OnceFunc(func() { g.pending.Add(-1) })
	context.AfterFunc(ctx, leave)
	return context.WithValue(ctx, leaveKey{}, leave)
}

// leave takes the context of a connection.
func (g *handshakeGate) leave(ctx context.Context) {
	if leave, ok := ctx.Value(leaveKey{}).(func()); ok {
		leave()
	}
}

// mustRetry is quic.Transport.VerifySourceAddress.
func (g *handshakeGate) mustRetry(net.Addr) bool { return g.pending.Load() >= g.retryAbove }
