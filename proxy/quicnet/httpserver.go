package quicnet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// HTTPServer serves HTTP/3. Its fields must not change after the first Serve.
type HTTPServer struct {
	// Handler answers the requests. The context of a request ends with its
	// stream, with its connection, and with Close; a handler has to return then.
	Handler http.Handler
	// TLS names the certificates. NextProtos is replaced by what is served here.
	TLS    *tls.Config
	Config Config
	// MaxHeaderBytes bounds the header section of a request; a larger one gets
	// status 431. 0 means http.DefaultMaxHeaderBytes.
	MaxHeaderBytes int
	// IdleTimeout closes a connection on which no handler has run for that long,
	// whatever else the client sends: PINGs, or the header of a request byte by
	// byte. 0 means 60 s.
	IdleTimeout time.Duration
	// Admit, if not nil, is asked for each new connection. An error refuses it;
	// otherwise release is called once when the connection has ended. Before the
	// handshake is complete, remote may be made up by the client.
	Admit func(remote net.Addr) (release func(), err error)
	// Logger is told of panicking handlers. nil means slog.Default().
	Logger *slog.Logger

	once sync.Once
	run  *httpRun
}

const (
	defaultHTTPIdleTimeout = 60 * time.Second
	// drainLinger is how long a draining connection may stay after its last
	// handler has returned, so that the client can get the end of the response,
	// lost packets included, and close it.
	drainLinger = 2 * time.Second
)

// errDraining refuses a connection; quic-go says CONNECTION_REFUSED to the
// client.
var errDraining = errors.New("quicnet: the server is shutting down")

// httpRun is the run-time state of an HTTPServer.
type httpRun struct {
	h3       *http3.Server
	log      *slog.Logger
	drain    context.Context // ends when Shutdown or Close begins
	stop     context.CancelFunc
	finished context.Context // ends when Shutdown or Close has closed every connection
	finish   context.CancelFunc
	conns    sync.WaitGroup // connections being served

	// starting is held for reading from the decision to serve a connection until
	// http3.Server has counted it, so that Shutdown and Close see all of them.
	starting sync.RWMutex

	mu    sync.Mutex
	idles map[*idleTimer]struct{}
}

func (s *HTTPServer) state() *httpRun {
	s.once.Do(func() {
		r := &httpRun{log: s.Logger, idles: make(map[*idleTimer]struct{})}
		r.drain, r.stop = context.WithCancel(context.Background())
		r.finished, r.finish = context.WithCancel(context.Background())
		if r.log == nil {
			r.log = slog.Default()
		}
		r.h3 = &http3.Server{
			Handler:        http.HandlerFunc(s.serveHTTP),
			MaxHeaderBytes: s.MaxHeaderBytes,
			Logger:         slog.New(warnings{r.log.Handler()}),
			ConnContext:    r.connContext,
		}
		s.run = r
	})
	return s.run
}

// Serve serves HTTP/3 on pc until Shutdown or Close has finished, and then
// returns http.ErrServerClosed; only then may the caller close pc. It may be
// called for several sockets.
func (s *HTTPServer) Serve(pc net.PacketConn) error {
	r := s.state()
	if r.drain.Err() != nil {
		return http.ErrServerClosed
	}
	if s.TLS == nil || s.Handler == nil {
		return errors.New("quicnet: HTTPServer needs TLS and a Handler")
	}
	qc, err := s.Config.prepare()
	if err != nil {
		return err
	}
	qc.MaxIncomingUniStreams = maxIncomingUniStreams
	g := &gate{retryAbove: int64(s.Config.RetryAbove), admit: s.admit}
	tr := &quic.Transport{Conn: pc}
	g.guard(tr)
	// The socket can carry other application protocols beside h3: add their names
	// here and dispatch in accept.
	ln, err := tr.Listen(http3.ConfigureTLSConfig(s.TLS), qc)
	if err != nil {
		_ = tr.Close()
		return fmt.Errorf("quicnet: serving HTTP/3 on %v: %w", pc.LocalAddr(), err)
	}
	err = s.accept(r, g, ln)
	_ = ln.Close()
	for { // connections nobody has accepted yet
		conn, err := ln.Accept(context.Background())
		if err != nil {
			break
		}
		_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
	}
	_ = tr.Close()
	r.conns.Wait()
	return err
}

// maxIncomingUniStreams leaves room beside the three HTTP/3 and QPACK ask for
// (RFC 9114 section 6.2).
const maxIncomingUniStreams = 16

func (s *HTTPServer) admit(remote net.Addr) (release func(), err error) {
	if s.state().drain.Err() != nil {
		return nil, errDraining
	}
	if s.Admit == nil {
		return func() {}, nil
	}
	return s.Admit(remote)
}

// accept starts connections until Shutdown or Close has finished: while they
// wait, it turns away those whose handshake had begun before.
func (s *HTTPServer) accept(r *httpRun, g *gate, ln *quic.Listener) error {
	for {
		conn, err := ln.Accept(r.finished)
		if err != nil {
			if r.finished.Err() != nil {
				return http.ErrServerClosed
			}
			return fmt.Errorf("quicnet: accepting on %v: %w", ln.Addr(), err)
		}
		g.entered(conn.Context())
		s.start(r, conn)
	}
}

// start serves conn in a goroutine of its own, and returns when http3.Server
// knows of it.
func (s *HTTPServer) start(r *httpRun, conn *quic.Conn) {
	live, err := opened(conn, false)
	if err != nil {
		r.log.Error("quicnet: refusing a connection", "remote", conn.RemoteAddr(), "err", err)
		_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeInternalError), "")
		return
	}
	timeout := s.IdleTimeout
	if timeout == 0 {
		timeout = defaultHTTPIdleTimeout
	}
	r.starting.RLock()
	defer r.starting.RUnlock()
	if r.drain.Err() != nil {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
		return
	}
	idle := newIdleTimer(timeout, conn)
	live.http = &httpConn{idle: idle, counted: make(chan struct{})}
	r.mu.Lock()
	r.idles[idle] = struct{}{}
	r.mu.Unlock()
	served := make(chan struct{})
	r.conns.Go(func() {
		defer close(served)
		// Why a connection ended is the client's business. http3 leaves one open that
		// has no room for its control stream.
		_ = r.h3.ServeQUICConn(conn)
		_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeGeneralProtocolError), "")
		r.mu.Lock()
		delete(r.idles, idle)
		r.mu.Unlock()
		idle.end()
	})
	select {
	case <-live.http.counted:
	case <-served:
	}
}

// connContext is called by http3.Server once for each connection, after counting
// it.
func (r *httpRun) connContext(ctx context.Context, conn *quic.Conn) context.Context {
	live := traceOf(conn).live
	close(live.http.counted)
	return context.WithValue(ctx, liveKey{}, live)
}

type liveKey struct{}

// httpConn is what HTTPServer keeps for a connection.
type httpConn struct {
	idle    *idleTimer
	counted chan struct{}
}

func (s *HTTPServer) serveHTTP(w http.ResponseWriter, req *http.Request) {
	if live, ok := req.Context().Value(liveKey{}).(*liveConn); ok {
		live.http.idle.enter()
		defer live.http.idle.leave()
	}
	s.Handler.ServeHTTP(w, req)
}

// PathOf returns the path of the connection that a request served by HTTPServer
// came by, and its controller's state; false if ctx is no such request's.
func PathOf(ctx context.Context) (Path, bool) {
	live, ok := ctx.Value(liveKey{}).(*liveConn)
	if !ok {
		return Path{}, false
	}
	return live.path(), true
}

// Shutdown refuses new connections, tells the clients to send no more requests
// (GOAWAY, RFC 9114 section 5.2), and waits until the running ones are answered
// and the connections closed. When ctx ends first, it closes what is left and
// returns the cause.
func (s *HTTPServer) Shutdown(ctx context.Context) error {
	r := s.state()
	r.beginDrain()
	r.mu.Lock()
	for idle := range r.idles {
		idle.shorten(drainLinger)
	}
	r.mu.Unlock()
	defer r.finish()
	if err := r.h3.Shutdown(ctx); err != nil {
		return fmt.Errorf("quicnet: shutting HTTP/3 down: %w", err)
	}
	return nil
}

// Close ends every connection and request at once, and returns when all
// handlers have.
func (s *HTTPServer) Close() error {
	r := s.state()
	r.beginDrain()
	defer r.finish()
	if err := r.h3.Close(); err != nil {
		return fmt.Errorf("quicnet: closing HTTP/3: %w", err)
	}
	return nil
}

// beginDrain returns when no connection is being handed to http3.Server and none
// will be.
func (r *httpRun) beginDrain() {
	r.starting.Lock()
	defer r.starting.Unlock()
	r.stop()
}

// warnings passes records of level Warn and above: below, http3 logs request
// URIs, which can name patients.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}
