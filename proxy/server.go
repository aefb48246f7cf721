package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"fastpacs/proxy/quicnet"

	"github.com/prometheus/client_golang/prometheus"
)

// Options are what the process lends a Server.
type Options struct {
	Logger    *slog.Logger
	Registry  *prometheus.Registry // gets the Server's metrics and is served on /metrics
	AccessLog io.Writer            // not used if Config.AccessLog is off
	Version   string               // of the build, for /metrics and /
}

// Server serves HTTP/1.1 and 2 on TCP and HTTP/3 on UDP, on one port and with
// one certificate, and the operator on another port. It runs once:
//
//	New ──► Run: listening ──► Ready: serving ──► context ends: draining ──► Run returns
//	                                    ▲ Reload: another certificate
type Server struct {
	cfg         Config
	opts        Options
	log         *slog.Logger
	metrics     *metrics
	certs       *certificates
	handler     *Handler
	prober      *prober
	admission   *admission
	access      *accessLog
	controllers *quicnet.Controllers

	started  atomic.Bool
	draining atomic.Bool
	running  atomic.Int64 // requests in flight
	ready    chan struct{}
	addrs    Addrs // written before ready is closed
	socks    sockets
}

// Addrs are the addresses a Server listens on; nil where it does not.
type Addrs struct {
	HTTPS net.Addr // TCP: HTTP/1.1 and 2
	HTTP3 net.Addr // UDP
	Admin net.Addr // TCP
}

// New makes a Server that hands requests to the upstream of cfg.Handler. It reads
// or makes the certificate and registers the metrics; it does not listen yet.
func New(cfg Config, opts Options) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("proxy: configuration: %w", err)
	}
	handler, err := NewHandler(cfg.Handler, opts.Logger, tellRecord)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:         cfg,
		opts:        opts,
		log:         opts.Logger,
		metrics:     newMetrics(opts.Version),
		handler:     handler,
		admission:   newAdmission(cfg.MaxConnections, cfg.MaxConnectionsPerAddress),
		access:      newAccessLog(cfg.AccessLog, cfg.AccessLogQueryValues, opts.AccessLog),
		controllers: cfg.QUIC.Controllers,
		ready:       make(chan struct{}),
	}
	if s.controllers == nil {
		s.controllers = new(quicnet.Controllers)
	}
	names := cfg.SelfSignedNames
	if len(names) == 0 {
		names = defaultCertNames()
	}
	s.prober = newProber(
		func(ctx context.Context) (int, error) { return handler.Probe(ctx, cfg.ReadyPath) },
		cfg.ReadyTimeout, cfg.ReadyCacheTime, s.metrics.setUpstreamUp)
	s.certs = &certificates{
		certFile: cfg.CertFile, keyFile: cfg.KeyFile, stateDir: cfg.StateDir, names: names,
		now: time.Now, log: opts.Logger,
		onLoad: func(notAfter time.Time) { s.metrics.certificateExpiry.Set(float64(notAfter.Unix())) },
	}
	if err := s.certs.load(); err != nil {
		return nil, err
	}
	if err := s.metrics.register(opts.Registry); err != nil {
		return nil, fmt.Errorf("proxy: registering metrics: %w", err)
	}
	return s, nil
}

// Ready is closed when the Server listens on all its addresses.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Addrs returns the addresses listened on, once Ready is closed.
func (s *Server) Addrs() Addrs {
	<-s.ready
	return s.addrs
}

// Reload reads the certificate again, for new connections of every protocol. On
// an error the old one stays in use.
func (s *Server) Reload() error {
	if err := s.certs.load(); err != nil {
		return fmt.Errorf("%w; the certificate in use stays", err)
	}
	return nil
}

// Run serves until ctx ends or a listener fails, then drains: no new connection
// is taken, clients are told to send nothing more (GOAWAY), requests in flight
// go on until they are done or DrainTimeout has passed, and the rest is cut. It
// returns nil after ctx ended, and otherwise the listener's error.
func (s *Server) Run(ctx context.Context) error {
	if !s.started.CompareAndSwap(false, true) {
		return errors.New("proxy: a Server runs only once")
	}
	socks, err := listen(ctx, s.cfg.ListenAddr, s.cfg.HTTP3)
	if err != nil {
		return err
	}
	defer socks.close()
	s.socks = socks
	var adminListener net.Listener
	if s.cfg.AdminAddr != "" {
		adminListener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", s.cfg.AdminAddr)
		if err != nil {
			return fmt.Errorf("proxy: listening for the operator on %s: %w", s.cfg.AdminAddr, err)
		}
		s.addrs.Admin = adminListener.Addr()
	}
	s.addrs.HTTPS = socks.tcp.Addr()
	if socks.udp != nil {
		s.addrs.HTTP3 = socks.udp.LocalAddr()
	}

	handler := &telemetry{
		next: s.handler, altSvc: newAltSvc(s.cfg, portOf(socks.tcp.Addr())),
		metrics: s.metrics, access: s.access, log: s.log, running: &s.running,
	}
	front := s.httpServer(handler)
	front3 := s.http3Server(handler)
	admin := newAdminServer(s.opts.Version, s.opts.Registry, s.readiness, s.log)

	// Each listener serves in a goroutine; the first that fails ends Run.
	var serving sync.WaitGroup
	failed := make(chan error, 3)
	serve := func(what string, f func() error) {
		serving.Go(func() {
			if err := f(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("proxy: serving %s: %w", what, err)
			}
		})
	}
	serve("HTTP/1.1 and 2", func() error {
		return front.ServeTLS(&limitListener{socks.tcp, s.admission, s.metrics}, "", "")
	})
	if socks.udp != nil {
		serve("HTTP/3", func() error {
			defer func() { _ = socks.udp.Close() }() // tells clients sooner than silence would
			return front3.Serve(socks.udp)
		})
	}
	if adminListener != nil {
		serve("the operator", func() error { return admin.Serve(adminListener) })
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	serving.Go(func() { s.sample(background, socks.udp) })
	serving.Go(func() { s.probe(background) })
	serving.Go(func() { s.renew(background) })

	s.logStart(socks)
	close(s.ready)
	select {
	case <-ctx.Done():
	case err = <-failed:
		s.log.Error("a listener failed; stopping", "error", err)
	}

	s.draining.Store(true)
	s.drain(front, front3)
	stop()
	s.handler.CloseIdleConnections()
	_ = admin.Close() // last, so that the end can be watched
	serving.Wait()
	s.log.Info("stopped")
	return err
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	version, _ := minTLSVersion(s.cfg.MinTLSVersion) // checked by Validate
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Server{
		Handler:           h,
		TLSConfig:         &tls.Config{GetCertificate: s.certs.get, MinVersion: version},
		Protocols:         &protocols,
		ReadHeaderTimeout: s.cfg.ReadHeaderTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    s.cfg.MaxHeaderBytes,
		ConnState:         s.connState,
		ErrorLog:          newErrorLog(s.log),
		// "OPTIONS *" is the Handler's to answer, as over HTTP/3.
		DisableGeneralOptionsHandler: true,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: s.cfg.MaxStreamsPerConnection,
			// The largest net/http takes: an upload moves at most this per round
			// trip. It is also the memory a client can hold per connection.
			MaxReceiveBufferPerConnection: 4<<20 - 1,
			MaxReceiveBufferPerStream:     4<<20 - 1,
			SendPingTimeout:               time.Minute, // finds peers that are gone
			WriteByteTimeout:              s.cfg.Handler.BodyIdleTimeout,
		},
	}
}

func (s *Server) http3Server(h http.Handler) *quicnet.HTTPServer {
	cfg := s.cfg.QUIC
	cfg.Controllers = s.controllers
	return &quicnet.HTTPServer{
		Handler:        h,
		TLS:            &tls.Config{GetCertificate: s.certs.get, MinVersion: tls.VersionTLS13},
		Config:         cfg,
		MaxHeaderBytes: s.cfg.MaxHeaderBytes,
		IdleTimeout:    s.cfg.IdleTimeout,
		Logger:         s.log,
		Admit:          s.admitQUIC,
	}
}

func (s *Server) admitQUIC(remote net.Addr) (func(), error) {
	release, why := s.admission.admit(remote)
	if why != admitted {
		s.metrics.connectionsRefused.WithLabelValues("quic", string(why)).Inc()
		return nil, fmt.Errorf("proxy: connections are at their limit (%s)", why)
	}
	s.metrics.connectionOpened("h3")
	return func() {
		s.metrics.connectionClosed("h3")
		release()
	}, nil
}

// connState notes what protocol a TCP connection chose, and failed handshakes.
func (s *Server) connState(c net.Conn, state http.ConnState) {
	tc, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		protocol := "h1"
		if tc.ConnectionState().NegotiatedProtocol == "h2" {
			protocol = "h2"
		}
		if cc, ok := tc.NetConn().(*clientConn); ok {
			cc.speaks(protocol)
		}
	case http.StateClosed:
		if !tc.ConnectionState().HandshakeComplete {
			s.metrics.handshakeFailures.Inc()
		}
	}
}

// readiness says why requests cannot be answered; nil if they can.
func (s *Server) readiness(r *http.Request) error {
	select {
	case <-s.ready:
	default:
		return errors.New("proxy: starting")
	}
	if s.draining.Load() {
		return errors.New("proxy: draining")
	}
	return s.prober.check(r.Context())
}

func (s *Server) sample(ctx context.Context, udp *net.UDPConn) {
	ticker := time.NewTicker(s.cfg.SampleInterval)
	defer ticker.Stop()
	if udp != nil {
		s.reportBuffers(udp)
	}
	newSampler(s.metrics.cc, s.controllers).run(ctx, ticker.C)
}

// reportBuffers tells of a UDP socket whose buffers will lose packets at high
// rates.
func (s *Server) reportBuffers(udp *net.UDPConn) {
	b, err := quicnet.BuffersOf(udp)
	if err != nil {
		s.log.Debug("UDP buffers are unknown", "error", err)
		return
	}
	s.metrics.udpBuffer.WithLabelValues("receive").Set(float64(b.Receive))
	s.metrics.udpBuffer.WithLabelValues("send").Set(float64(b.Send))
	if err := b.Check(); err != nil {
		s.log.Warn("HTTP/3 will be slow at high rates", "error", err)
	}
}

func (s *Server) probe(ctx context.Context) {
	ticker := time.NewTicker(s.cfg.ReadyInterval)
	defer ticker.Stop()
	s.prober.run(ctx, ticker.C, func(err error) {
		if err != nil {
			s.log.Warn("upstream does not answer", "error", err)
			return
		}
		s.log.Info("upstream answers", "upstream", s.cfg.Handler.Upstream)
	})
}

// renew replaces a self-signed certificate before it ends.
func (s *Server) renew(ctx context.Context) {
	if !s.certs.selfSigned() {
		return
	}
	ticker := time.NewTicker(renewCheckInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := s.Reload(); err != nil {
				s.log.Error("self-signed certificate was not renewed", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// drain ends both fronts, gracefully until DrainTimeout and then at once.
func (s *Server) drain(front *http.Server, front3 *quicnet.HTTPServer) {
	s.log.Info("draining", "requests", s.running.Load(), "timeout", s.cfg.DrainTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.DrainTimeout)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		if front.Shutdown(ctx) != nil {
			s.log.Warn("drain timeout passed; cutting HTTP/1.1 and 2")
			_ = front.Close()
		}
	})
	both.Go(func() {
		if front3.Shutdown(ctx) != nil {
			s.log.Warn("drain timeout passed; cutting HTTP/3")
		}
	})
	both.Wait()
	s.awaitHandlers()
}

// handlersEnd is how long handlers get to notice that their client was cut.
const handlersEnd = 5 * time.Second

// awaitHandlers waits for handlers, which http.Server.Close does not.
func (s *Server) awaitHandlers() {
	deadline := time.NewTimer(handlersEnd)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for s.running.Load() > 0 {
		select {
		case <-poll.C:
		case <-deadline.C:
			s.log.Error("handlers did not end", "requests", s.running.Load())
			return
		}
	}
}

func (s *Server) logStart(socks sockets) {
	attrs := []any{"https", socks.tcp.Addr().String(), "upstream", s.cfg.Handler.Upstream, "version", s.opts.Version}
	if socks.udp != nil {
		attrs = append(attrs, "http3", socks.udp.LocalAddr().String(), "law", s.cfg.QUIC.Law)
	}
	if a := s.addrs.Admin; a != nil {
		attrs = append(attrs, "admin", a.String())
		if ap, err := netip.ParseAddrPort(a.String()); err == nil && !ap.Addr().IsLoopback() {
			s.log.Warn("the admin listener has no authentication and is not on loopback", "addr", a.String())
		}
	}
	s.log.Info("serving", attrs...)
}
