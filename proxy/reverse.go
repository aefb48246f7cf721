package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Handler is the reverse proxy: it hands requests to the archive and answers to
// clients. It is safe for concurrent use.
type Handler struct {
	cfg       HandlerConfig
	base      *url.URL
	log       *slog.Logger
	observers []Observer
	upstream  *upstream
	forwarder forwarder
	cors      cors
	urls      *urlRewriter // nil unless RewriteURLs
	proxy     httputil.ReverseProxy
}

// NewHandler returns a Handler for cfg, which tells each of obs of every
// exchange. It fails if cfg does not validate or UpstreamCAFile cannot be used;
// it does not contact the upstream.
func NewHandler(cfg HandlerConfig, log *slog.Logger, obs ...Observer) (*Handler, error) {
	dialer := net.Dialer{Timeout: cfg.DialTimeout, KeepAlive: 30 * time.Second}
	return newHandler(cfg, dialer.DialContext, log, obs)
}

func newHandler(cfg HandlerConfig, dial dialFunc, log *slog.Logger, obs []Observer) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	base, err := parseBaseURL(cfg.Upstream)
	if err != nil {
		return nil, err
	}
	up, err := newUpstream(cfg, dial)
	if err != nil {
		return nil, err
	}
	h := &Handler{
		cfg:       cfg,
		base:      base,
		log:       log,
		observers: obs,
		upstream:  up,
		forwarder: forwarder{cfg.TrustedProxies},
		cors:      newCORS(cfg),
	}
	if cfg.RewriteURLs {
		h.urls = newURLRewriter(cfg, base, h.forwarder)
	}
	h.proxy = httputil.ReverseProxy{
		Rewrite:        h.rewrite,
		Transport:      up,
		FlushInterval:  flushInterval,
		ErrorLog:       discardLog, // exchange logs, once
		BufferPool:     &copyBuffers,
		ModifyResponse: h.modifyResponse,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			exchangeOf(r.Context()).answerError(err)
		},
	}
	return h, nil
}

// flushInterval is how long bytes of a body of known length may wait in a buffer
// for more to come. Bodies of unknown length are flushed at once.
const flushInterval = 50 * time.Millisecond

var discardLog = log.New(io.Discard, "", 0)

// ServeHTTP serves one exchange. It panics with http.ErrAbortHandler when the
// answer cannot be brought to its end.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	x := &exchange{handler: h, request: r, control: http.NewResponseController(w), cancel: cancel}
	x.client = newClientWriter(w, x)
	defer x.finish()

	if out, ok := h.admit(x); ok {
		h.pass(ctx, x, out)
	}
	x.client.release()
}

// pass hands out to the archive and the answer to the client.
func (h *Handler) pass(ctx context.Context, x *exchange, out *http.Request) {
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	if ctx.Value(http.ServerContextKey) == nil {
		// The ReverseProxy lets a broken answer end cleanly unless it finds a server
		// here that catches its panic; HTTP/3 servers do, and leave no such value.
		ctx = context.WithValue(ctx, http.ServerContextKey, http3Server)
	}
	h.proxy.ServeHTTP(x.client, out.WithContext(ctx))
}

// http3Server stands for a server that is not an http.Server.
var http3Server = new(http.Server)

// admit answers requests that the archive should not see, or returns the request
// with the body that it will.
func (h *Handler) admit(x *exchange) (out *http.Request, ok bool) {
	r := x.request
	switch {
	case r.Method == http.MethodConnect:
		x.refuse(http.StatusMethodNotAllowed, errors.New("CONNECT to a reverse proxy"))
		return nil, false
	case r.Method == http.MethodOptions && r.URL.Path == "*":
		x.fail(OutcomeRefused, errors.New("OPTIONS * concerns the proxy itself"))
		x.client.WriteHeader(http.StatusNoContent)
		return nil, false
	case isEarly(r) && !isSafe(r.Method):
		x.refuse(http.StatusTooEarly, errors.New("unsafe request in early data"))
		return nil, false
	case h.cfg.MaxRequestBody > 0 && r.ContentLength > h.cfg.MaxRequestBody:
		x.refuse(http.StatusRequestEntityTooLarge, errBodyTooLarge)
		return nil, false
	case h.cors.preflight(x.client, r):
		x.fail(OutcomeRefused, errors.New("CORS preflight answered here"))
		return nil, false
	}

	out = new(http.Request)
	*out = *r
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		out.Body, out.ContentLength = http.NoBody, 0
		return out, true
	}
	body := newRequestBody(x)
	out.Body = body
	if r.ProtoMajor == 3 && r.ContentLength < 0 && usuallyBodiless(r.Method) && !body.sendContinue {
		empty, err := body.empty()
		switch {
		case err != nil:
			x.answerError(err)
			return nil, false
		case empty:
			out.Body, out.ContentLength = http.NoBody, 0
		}
	}
	return out, true
}

func usuallyBodiless(method string) bool { return isSafe(method) || method == http.MethodDelete }

// isEarly tells whether a request came in TLS early data, to us or to a proxy
// before us, and so may be a replay (RFC 8470).
func isEarly(r *http.Request) bool {
	return r.Header.Get("Early-Data") == "1" || r.TLS != nil && !r.TLS.HandshakeComplete
}

// rewrite makes the upstream request from the client's.
func (h *Handler) rewrite(pr *httputil.ProxyRequest) {
	in, out := pr.In, pr.Out
	x := exchangeOf(in.Context())
	pr.SetURL(h.base)
	out.URL.RawQuery = in.URL.RawQuery // as sent: Go drops pairs with a semicolon
	out.Host = in.Host
	if h.cfg.UpstreamHost != "" {
		out.Host = h.cfg.UpstreamHost
	}
	if !h.cfg.AllowWebSocket || !wantsWebSocket(in.Header) {
		// A tunnel to the archive, such as h2c, would pass all of these rules by.
		out.Header.Del("Connection")
		out.Header.Del("Upgrade")
		out.Header.Del("Http2-Settings")
	}
	h.forwarder.apply(in, out.Header)
	if h.urls != nil {
		out.Header.Del("Accept-Encoding")
	}
	if body, ok := in.Body.(*requestBody); ok && out.ContentLength < 0 {
		body.out = out
	} else {
		out.Trailer = nil // only chunked bodies have them
	}
	x.upstreamStart = time.Now()
}

var (
	errUnaskedUpgrade = errors.New("the archive switched to a protocol that was not asked for")
	errInvalidStatus  = errors.New("the status of the archive's answer is no final one")
)

// modifyResponse makes the client's answer from the archive's.
func (h *Handler) modifyResponse(res *http.Response) error {
	x := exchangeOf(res.Request.Context())
	x.upstreamTime = max(time.Since(x.upstreamStart), 1)
	if res.StatusCode == http.StatusSwitchingProtocols {
		if res.Request.Header.Get("Upgrade") == "" {
			return errUnaskedUpgrade
		}
		return nil
	}
	if res.StatusCode < 200 {
		return errInvalidStatus
	}
	res.Header.Del("Alt-Svc")
	h.cors.allow(x.request, res.Header)
	if res.Body != http.NoBody {
		res.Body = newUpstreamBody(x, res.Body)
	}
	if h.urls != nil {
		h.urls.rewrite(x.request, res)
	}
	return nil
}

// Probe GETs path, below the upstream's base path, and returns the status of the
// answer. An error means that the archive cannot be reached or does not answer.
func (h *Handler) Probe(ctx context.Context, path string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, h.base.JoinPath(path).String(), nil)
	if err != nil {
		return 0, fmt.Errorf("probe upstream: %w", err)
	}
	if h.cfg.UpstreamHost != "" {
		r.Host = h.cfg.UpstreamHost
	}
	res, err := h.upstream.RoundTrip(r)
	if err != nil {
		return 0, fmt.Errorf("probe upstream %s: %w", h.base.Host, err)
	}
	defer res.Body.Close()
	const enough = 64 << 10 // to keep the connection
	_, err = io.CopyN(io.Discard, res.Body, enough)
	if err != nil && err != io.EOF {
		return 0, fmt.Errorf("probe upstream %s: %w", h.base.Host, err)
	}
	return res.StatusCode, nil
}

// CloseIdleConnections closes upstream connections that no exchange uses.
func (h *Handler) CloseIdleConnections() { h.upstream.CloseIdleConnections() }
