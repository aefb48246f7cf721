package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"
)

// upstream makes HTTP/1.1 exchanges with the archive.
type upstream struct {
	// pooled keeps connections alive. An archive may close one just when it gets
	// the next request, so it is used for requests that may then be sent again.
	pooled *http.Transport
	// fresh makes a connection for each request.
	fresh *http.Transport
}

const (
	// maxUpstreamHeader bounds the header of an answer, in bytes.
	maxUpstreamHeader = 1 << 20
	// upstreamBuffer is for headers and chunk sizes; larger reads and writes of
	// bodies pass it by.
	upstreamBuffer = 32 << 10
)

// dialFunc is net.Dialer.DialContext, or a stand-in for it in tests.
type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

func newUpstream(cfg HandlerConfig, dial dialFunc) (*upstream, error) {
	tlsConfig, err := cfg.upstreamTLS()
	if err != nil {
		return nil, err
	}
	make := func() *http.Transport {
		return &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := dial(ctx, network, addr)
				if err != nil {
					return nil, err
				}
				return &upstreamConn{c, cfg.BodyIdleTimeout}, nil
			},
			TLSClientConfig:        tlsConfig,
			TLSHandshakeTimeout:    cfg.DialTimeout,
			DisableCompression:     true, // pass Accept-Encoding and bodies as they are
			MaxConnsPerHost:        cfg.MaxUpstreamConnections,
			MaxIdleConnsPerHost:    cfg.MaxUpstreamConnections,
			IdleConnTimeout:        cfg.UpstreamIdleTimeout,
			ResponseHeaderTimeout:  cfg.ResponseHeaderTimeout,
			ExpectContinueTimeout:  time.Second,
			MaxResponseHeaderBytes: maxUpstreamHeader,
			ReadBufferSize:         upstreamBuffer,
			WriteBufferSize:        upstreamBuffer,
		}
	}
	u := &upstream{pooled: make(), fresh: make()}
	u.pooled.DisableKeepAlives = cfg.UpstreamIdleTimeout == 0
	u.fresh.DisableKeepAlives = true
	return u, nil
}

// upstreamTLS is nil for an http upstream.
func (c HandlerConfig) upstreamTLS() (*tls.Config, error) {
	base, err := url.Parse(c.Upstream)
	if err != nil || base.Scheme != "https" {
		return nil, err
	}
	t := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         c.UpstreamServerName,
		InsecureSkipVerify: c.UpstreamInsecure,
		ClientSessionCache: tls.NewLRUClientSessionCache(64),
	}
	if c.UpstreamCAFile != "" {
		pem, err := os.ReadFile(c.UpstreamCAFile)
		if err != nil {
			return nil, fmt.Errorf("UpstreamCAFile: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("UpstreamCAFile: %s holds no PEM certificate", c.UpstreamCAFile)
		}
	}
	return t, nil
}

func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	if repeatable(r) {
		return u.pooled.RoundTrip(r)
	}
	return u.fresh.RoundTrip(r)
}

func (u *upstream) CloseIdleConnections() {
	u.pooled.CloseIdleConnections()
	u.fresh.CloseIdleConnections()
}

// repeatable tells whether the transport may send r a second time, by the same
// rule as the transport.
func repeatable(r *http.Request) bool {
	return isSafe(r.Method) && (r.Body == nil || r.Body == http.NoBody)
}

// isSafe tells whether a method changes nothing (RFC 9110 section 9.2.1).
func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// upstreamConn is a connection to the archive whose writes need progress. Reads
// are bounded by the exchange, which knows whether the archive owes anything.
type upstreamConn struct {
	net.Conn
	idle time.Duration
}

func (c *upstreamConn) Write(p []byte) (int, error) {
	done := 0
	for {
		c.SetWriteDeadline(time.Now().Add(c.idle))
		n, err := c.Conn.Write(p[done:])
		done += n
		if err != nil && n > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			continue // slow, but taking
		}
		return done, err
	}
}

// ReadFrom lets a request body be sent in large pieces.
func (c *upstreamConn) ReadFrom(r io.Reader) (int64, error) {
	buf := copyBuffers.Get()
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c}, r, buf)
}

// CloseWrite ends our side of a websocket.
func (c *upstreamConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// upstreamBody is the archive's body on its way to the client.
type upstreamBody struct {
	io.ReadCloser
	x     *exchange
	stall stallTimer
	seen  int64 // bytes of request body when the timer last expired
}

var errUpstreamStalled = errors.New("the archive stopped in the middle of its answer")

func newUpstreamBody(x *exchange, body io.ReadCloser) *upstreamBody {
	b := &upstreamBody{ReadCloser: body, x: x}
	b.stall = stallTimer{idle: x.handler.cfg.BodyIdleTimeout, cut: b.cut}
	return b
}

func (b *upstreamBody) Read(p []byte) (int, error) {
	b.stall.begin()
	n, err := b.ReadCloser.Read(p)
	b.stall.end()
	if err != nil && err != io.EOF {
		b.x.failUpstream(OutcomeUpstreamTruncated, err)
	}
	return n, err
}

// cut gives up on the archive, unless it is still taking a body.
func (b *upstreamBody) cut() {
	if n := b.x.requestBytes.Load(); n != b.seen {
		b.seen = n
		b.stall.timer.Reset(b.stall.idle)
		return
	}
	b.x.failUpstream(OutcomeUpstreamStalled, errUpstreamStalled)
	b.x.cancel()
}

// bufferPool holds the buffers that bodies are copied with.
type bufferPool struct{ pool sync.Pool }

// copyBufferSize is one read from the archive and one write to the client. After
// each write an HTTP/3 connection runs dry for a moment: on loopback, 1 MiB is
// 8 % faster than 256 KiB, and as fast as 4 MiB. Of a buffer that holds a small
// answer only the first pages become memory.
const copyBufferSize = 1 << 20

var copyBuffers bufferPool

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[copyBufferSize]byte); ok {
		return b[:]
	}
	return new([copyBufferSize]byte)[:]
}

func (p *bufferPool) Put(b []byte) { p.pool.Put((*[copyBufferSize]byte)(b)) }
