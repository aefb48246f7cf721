package quicnet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// HTTPTransport is an HTTP/3 client: an http.RoundTripper for https URLs. It
// keeps one connection to each host, asks for no compression and uses no 0-RTT.
type HTTPTransport struct {
	// DialAddr, if not nil, says which UDP address to dial for a "host:port", in
	// place of a DNS look-up: for emulated links. It must not change after the
	// first request.
	DialAddr func(ctx context.Context, hostPort string) (net.Addr, error)

	h3  *http3.Transport
	tr  *quic.Transport
	own net.PacketConn // to be closed with the transport; nil if the caller's
}

var _ http.RoundTripper = (*HTTPTransport)(nil)

// NewHTTPTransport returns a client with a UDP socket of its own.
func NewHTTPTransport(tlsConf *tls.Config, cfg Config) (*HTTPTransport, error) {
	pc, err := ListenUDP(":0")
	if err != nil {
		return nil, err
	}
	t, err := NewHTTPTransportOn(pc, tlsConf, cfg)
	if err != nil {
		_ = pc.Close()
		return nil, err
	}
	t.own = pc
	return t, nil
}

// NewHTTPTransportOn returns a client that sends through pc, which the caller
// closes after Close.
func NewHTTPTransportOn(pc net.PacketConn, tlsConf *tls.Config, cfg Config) (*HTTPTransport, error) {
	qc, err := cfg.prepare()
	if err != nil {
		return nil, err
	}
	qc.MaxIncomingStreams = -1 // a server opens none (RFC 9114 section 6.1)
	qc.MaxIncomingUniStreams = maxIncomingUniStreams
	t := &HTTPTransport{tr: &quic.Transport{Conn: pc}}
	t.h3 = &http3.Transport{
		TLSClientConfig:    tlsConf,
		QUICConfig:         qc,
		Dial:               t.dial,
		DisableCompression: true,
	}
	return t, nil
}

func (t *HTTPTransport) dial(ctx context.Context, hostPort string, tlsConf *tls.Config, qc *quic.Config) (*quic.Conn, error) {
	resolve := t.DialAddr
	if resolve == nil {
		resolve = resolveUDP
	}
	addr, err := resolve(ctx, hostPort)
	if err != nil {
		return nil, fmt.Errorf("quicnet: resolving %s: %w", hostPort, err)
	}
	conn, err := t.tr.Dial(ctx, addr, tlsConf, qc)
	if err != nil {
		return nil, fmt.Errorf("quicnet: dialling %s at %v: %w", hostPort, addr, err)
	}
	if _, err := opened(conn, true); err != nil {
		_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeInternalError), "")
		return nil, err
	}
	return conn, nil
}

func resolveUDP(ctx context.Context, hostPort string) (net.Addr, error) {
	host, service, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "udp", service)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	return &net.UDPAddr{IP: ips[0].Unmap().AsSlice(), Zone: ips[0].Zone(), Port: port}, nil
}

// RoundTrip implements http.RoundTripper.
func (t *HTTPTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.h3.RoundTrip(req)
}

// CloseIdleConnections closes the connections that carry no request.
func (t *HTTPTransport) CloseIdleConnections() { t.h3.CloseIdleConnections() }

// Close ends all connections and requests.
func (t *HTTPTransport) Close() error {
	err := errors.Join(t.h3.Close(), t.tr.Close())
	if t.own != nil {
		err = errors.Join(err, t.own.Close())
	}
	if err != nil {
		return fmt.Errorf("quicnet: closing the HTTP/3 client: %w", err)
	}
	return nil
}
