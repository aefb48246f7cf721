package quicnet

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// gate stands before a listener: it asks clients to prove their address while
// many handshakes are unfinished, and refuses those that must not come in.
type gate struct {
	retryAbove int64
	// admit, if not nil, refuses a client by an error, or says what to call when
	// its connection has ended.
	admit   func(remote net.Addr) (release func(), err error)
	pending atomic.Int64 // unfinished handshakes
}

// guard makes tr, which must not be in use yet, go by g.
func (g *gate) guard(tr *quic.Transport) {
	tr.VerifySourceAddress = g.mustRetry
	tr.ConnContext = g.enter
}

// mustRetry asks for a Retry (RFC 9000 section 8.1.2): quic-go keeps nothing
// then, whatever number of addresses an attacker makes up.
func (g *gate) mustRetry(net.Addr) bool { return g.pending.Load() >= g.retryAbove }

type enteredKey struct{}

// enter is quic.Transport.ConnContext: an error refuses the connection, and the
// client is told CONNECTION_REFUSED.
func (g *gate) enter(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	if g.admit != nil {
		release, err := g.admit(info.RemoteAddr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, release)
	}
	g.pending.Add(1)
	entered := sync.OnceFunc(func() { g.pending.Add(-1) })
	context.AfterFunc(ctx, entered)
	return context.WithValue(ctx, enteredKey{}, entered), nil
}

// entered says that the handshake of the connection with that context is
// complete.
func (g *gate) entered(ctx context.Context) {
	if f, ok := ctx.Value(enteredKey{}).(func()); ok {
		f()
	}
}
