package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Outcome tells how an exchange ended; doc.go explains each.
type Outcome string

const (
	OutcomeComplete            Outcome = "complete"
	OutcomeRefused             Outcome = "refused"
	OutcomeUpstreamUnreachable Outcome = "upstream_unreachable"
	OutcomeUpstreamTimeout     Outcome = "upstream_timeout"
	OutcomeUpstreamError       Outcome = "upstream_error"
	OutcomeUpstreamTruncated   Outcome = "upstream_truncated"
	OutcomeUpstreamStalled     Outcome = "upstream_stalled"
	OutcomeClientAborted       Outcome = "client_aborted"
	OutcomeClientStalled       Outcome = "client_stalled"
)

// Outcomes are all of them, for those who count.
var Outcomes = [...]Outcome{
	OutcomeComplete, OutcomeRefused,
	OutcomeUpstreamUnreachable, OutcomeUpstreamTimeout, OutcomeUpstreamError, OutcomeUpstreamTruncated, OutcomeUpstreamStalled,
	OutcomeClientAborted, OutcomeClientStalled,
}

// Exchange is what the Handler knows of a finished request.
type Exchange struct {
	Outcome Outcome
	// UpstreamTime is from handing the request to the upstream connection pool
	// until the header of the answer, with connecting and a request body between.
	// 0 if no answer came.
	UpstreamTime time.Duration
	// RequestBytes and ResponseBytes are bytes of body: taken from the client,
	// given to the client.
	RequestBytes, ResponseBytes int64
}

// Observer is told of every exchange when it ends, on the goroutine that served
// it: it must be quick. r is the request as the Handler got it.
type Observer func(r *http.Request, e Exchange)

// exchange is the state of one request while the Handler serves it.
type exchange struct {
	handler *Handler
	request *http.Request // as the client sent it
	client  *clientWriter
	control *http.ResponseController
	cancel  context.CancelFunc // ends the upstream's part

	upstreamStart time.Time
	upstreamTime  time.Duration // 0 until the answer's header is there
	requestBytes  atomic.Int64  // written by the goroutine that sends the body upstream
	requestRead   atomic.Bool   // so is this: the body was read to its end

	readCut, writeCut atomic.Bool // the client stalled, this way or that

	mu      sync.Mutex
	outcome Outcome // the first thing that went wrong, or ""
	cause   error
	ended   bool // the handler is returning: client's connection is no longer ours
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// fail records why the exchange cannot go on. The first reason stands: the
// others follow from it.
func (x *exchange) fail(o Outcome, cause error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.outcome == "" {
		x.outcome, x.cause = o, cause
	}
}

func (x *exchange) failure() (Outcome, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.outcome, x.cause
}

// failUpstream is fail for an error on the upstream leg, unless it only echoes
// that the client has gone.
func (x *exchange) failUpstream(o Outcome, cause error) {
	if x.request.Context().Err() != nil {
		o = OutcomeClientAborted
	}
	x.fail(o, cause)
}

var errClientStalled = errors.New("the client made no progress with a body")

// cutClientRead ends a Read of the request body that waits for a client which
// sends nothing.
func (x *exchange) cutClientRead() {
	x.readCut.Store(true)
	x.cutClient(x.control.SetReadDeadline)
}

// cutClientWrite ends a Write of the response body that waits for a client which
// takes nothing.
func (x *exchange) cutClientWrite() {
	x.writeCut.Store(true)
	x.cutClient(x.control.SetWriteDeadline)
}

func (x *exchange) cutClient(setDeadline func(time.Time) error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return // the connection may already serve another request
	}
	if setDeadline(longAgo) != nil {
		// A front without deadlines: at least let go of the upstream.
		if x.outcome == "" {
			x.outcome, x.cause = OutcomeClientStalled, errClientStalled
		}
		x.cancel()
	}
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// finish ends the exchange, whether the handler returns or panics.
func (x *exchange) finish() {
	x.mu.Lock()
	x.ended = true
	if x.outcome == "" {
		x.outcome = OutcomeComplete
	}
	e := Exchange{
		Outcome:       x.outcome,
		UpstreamTime:  x.upstreamTime,
		RequestBytes:  x.requestBytes.Load(),
		ResponseBytes: x.client.written,
	}
	cause := x.cause
	x.mu.Unlock()
	x.client.leave()
	x.cancel()

	x.log(e, cause)
	for _, o := range x.handler.observers {
		o(x.request, e)
	}
}

// log writes one line for an exchange that an administrator may have to do
// something about. Paths hold study UIDs and queries hold patients: neither is
// logged.
func (x *exchange) log(e Exchange, cause error) {
	level := slog.LevelWarn
	switch e.Outcome {
	case OutcomeComplete:
		return
	case OutcomeRefused, OutcomeClientAborted, OutcomeClientStalled:
		level = slog.LevelDebug
	}
	ctx := x.request.Context()
	if !x.handler.log.Enabled(ctx, level) {
		return
	}
	x.handler.log.LogAttrs(ctx, level, "exchange failed",
		slog.String("outcome", string(e.Outcome)),
		slog.String("upstream", x.handler.base.Host),
		slog.String("method", x.request.Method),
		slog.String("proto", x.request.Proto),
		slog.Int("status", x.client.status),
		slog.Int64("bytes", e.ResponseBytes),
		slog.String("error", withoutQuotation(cause)))
}

// withoutQuotation is an error without what it quotes: the transport quotes the
// bytes that it cannot parse, and they may be anything that an archive holds.
func withoutQuotation(err error) string {
	s, _, quotes := strings.Cut(err.Error(), `"`)
	if quotes {
		s += "[...]"
	}
	return s
}
