package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// outcomeFailed is the outcome of a request that the Handler did not finish: a
// programming error.
const outcomeFailed Outcome = "failed"

// record is one request as metrics and access log show it.
type record struct {
	protocol string // h1, h2, h3
	method   string // see methodClass
	status   int    // final one; statusNone if the client got none
	duration time.Duration
	exchange Exchange // as the Handler told; Outcome outcomeFailed if it did not
}

// statusNone is logged when the client was gone before a status was sent. There
// is no standard number; nginx uses this one.
const statusNone = 499

type recordKey struct{}

// tellRecord is the Handler's Observer: it completes the record of the request.
func tellRecord(r *http.Request, e Exchange) {
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok {
		rec.exchange = e
	}
}

// telemetry serves requests by next, puts Alt-Svc into the responses, and tells
// metrics and access log of each.
type telemetry struct {
	next    http.Handler
	altSvc  altSvc
	metrics *metrics
	access  *accessLog
	log     *slog.Logger
	running *atomic.Int64 // requests in next
}

func (t *telemetry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	t.running.Add(1)
	defer t.running.Add(-1)
	rec := &record{
		protocol: protocolName(r),
		method:   methodClass(r.Method),
		exchange: Exchange{Outcome: outcomeFailed},
	}
	inFlight := t.metrics.inFlight.WithLabelValues(rec.protocol)
	inFlight.Inc()
	out := &statusWriter{ResponseWriter: w, altSvc: t.altSvc, protocol: rec.protocol}

	failure := serve(t.next, out, r.WithContext(context.WithValue(r.Context(), recordKey{}, rec)))

	if out.status == 0 && failure == nil {
		out.WriteHeader(http.StatusOK) // as the server would
	}
	rec.status = out.status
	if rec.status == 0 {
		rec.status = statusNone
	}
	rec.duration = time.Since(began)
	inFlight.Dec()
	t.metrics.observe(rec)
	t.access.write(rec, r)
	if failure == nil {
		return
	}
	if failure.stack != nil {
		t.metrics.panics.Inc()
		t.log.Error("handler failed", "protocol", rec.protocol, "method", rec.method,
			"path", redactPath(r.URL.EscapedPath()), "panic", failure.kind, "stack", string(failure.stack))
	}
	// The client must see a broken body and not a clean end.
	panic(http.ErrAbortHandler)
}

// handlerFailure is a panic of a handler.
type handlerFailure struct {
	kind  string // the value's type: the value itself may hold a client's data
	stack []byte // nil for http.ErrAbortHandler, which is how handlers break off
}

// serve calls h and returns its panic, if any.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (failure *handlerFailure) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		failure = &handlerFailure{kind: fmt.Sprintf("%T", v)}
		if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
			failure.stack = debug.Stack()
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// statusWriter notes the final status of a response. It leaves what it does not
// know to the server's own writer, by Unwrap.
type statusWriter struct {
	http.ResponseWriter
	altSvc   altSvc
	protocol string
	status   int // 0 until sent
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *statusWriter) WriteHeader(status int) {
	interim := status < 200 && status != http.StatusSwitchingProtocols
	if !interim && w.status == 0 {
		w.status = status
		w.altSvc.set(w.Header(), w.protocol)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(p []byte) (int, error) {
	w.implyOK()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *statusWriter) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController calls.
func (w *statusWriter) FlushError() error {
	w.implyOK()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// implyOK does what the server would at the first byte of a body.
func (w *statusWriter) implyOK() {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
}
