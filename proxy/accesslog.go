package proxy

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"fastpacs/proxy/quicnet"
)

// accessLog writes one line for each finished request. It holds no header, no
// query value and no body; see redact.go. A nil *accessLog writes nothing.
type accessLog struct {
	log         *slog.Logger
	queryValues bool
}

func newAccessLog(format AccessLogFormat, queryValues bool, w io.Writer) *accessLog {
	// Level and message would be the same on every line.
	opts := &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}}
	switch format {
	case AccessLogText:
		return &accessLog{slog.New(slog.NewTextHandler(w, opts)), queryValues}
	case AccessLogJSON:
		return &accessLog{slog.New(slog.NewJSONHandler(w, opts)), queryValues}
	}
	return nil
}

func (l *accessLog) write(rec *record, r *http.Request) {
	if l == nil {
		return
	}
	attrs := make([]slog.Attr, 0, 12)
	attrs = append(attrs,
		slog.String("proto", rec.protocol),
		slog.String("method", rec.method),
		slog.String("path", redactPath(r.URL.EscapedPath())))
	switch {
	case r.URL.RawQuery == "":
	case l.queryValues:
		attrs = append(attrs, slog.String("query", cut(r.URL.RawQuery, maxLoggedValues)))
	default:
		attrs = append(attrs, slog.String("query", queryNames(r.URL.RawQuery)))
	}
	attrs = append(attrs,
		slog.Int("status", rec.status),
		slog.Int64("bytes_in", rec.exchange.RequestBytes),
		slog.Int64("bytes_out", rec.exchange.ResponseBytes),
		slog.Float64("seconds", seconds(rec.duration)))
	if d := rec.exchange.UpstreamTime; d > 0 {
		attrs = append(attrs, slog.Float64("upstream_seconds", seconds(d)))
	}
	attrs = append(attrs, slog.String("remote", remoteAddr(r)))
	if o := rec.exchange.Outcome; o != OutcomeComplete {
		attrs = append(attrs, slog.String("outcome", string(o)))
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "", attrs...)
}

// remoteAddr is where the client is now: over QUIC it may have moved since it
// sent the request.
func remoteAddr(r *http.Request) string {
	if p, ok := quicnet.PathOf(r.Context()); ok {
		return p.Remote.String()
	}
	return r.RemoteAddr
}

// seconds rounds to microseconds, which is what a line can use.
func seconds(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }
