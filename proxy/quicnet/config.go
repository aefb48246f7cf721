package quicnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"

	"fastpacs/cc"
)

// Config is what both ends of a connection are made with.
type Config struct {
	// Law is the control law of the sending side. Default cc.LawImproved.
	Law cc.Law
	// NewController, if not nil, makes the controllers instead of cc.New, for
	// laboratories: client tells the end, maxDatagramSize is in bytes. It is called
	// once for each path of each connection and may return nil for quic-go's own.
	NewController func(client bool, maxDatagramSize int64, rtt cc.RTTSource) cc.Controller
	// Controllers, if not nil, is told of every connection.
	Controllers *Controllers

	// HandshakeTimeout ends a handshake in which nothing was received for that
	// long, and any handshake after twice that. 100 ms to 1 min, default 5 s.
	HandshakeTimeout time.Duration
	// MaxIdleTimeout ends a connection on which nothing was received for that
	// long; the smaller of the two ends' values holds (RFC 9000 section 10.1).
	// 1 s to 1 h, default 30 s.
	MaxIdleTimeout time.Duration
	// KeepAlivePeriod sends a PING after that much silence; 0, the default, sends
	// none. At most half of MaxIdleTimeout.
	KeepAlivePeriod time.Duration

	// The receive windows bound what a peer may have in flight to us, and so the
	// memory one connection can take: at most MaxConnectionReceiveWindow bytes
	// that were received and not yet read. They start at the initial size and
	// grow to the maximum as the reader keeps up. A path needs rate x RTT: 1 Gb/s
	// at 100 ms is 12.5 MB, and twice that while the window is being announced.
	// Each 64 KiB to 1 GiB, and no initial or stream window above the maximum or
	// connection window. Defaults 1 MiB to 32 MiB and 2 MiB to 64 MiB.
	InitialStreamReceiveWindow     uint64
	MaxStreamReceiveWindow         uint64
	InitialConnectionReceiveWindow uint64
	MaxConnectionReceiveWindow     uint64

	// MaxIncomingStreams bounds the streams (HTTP/3: requests) a peer may have
	// open at once. 1 to 65536, default 256.
	MaxIncomingStreams int64
	// RetryAbove is the number of unfinished handshakes from which on a listener
	// makes new clients prove their address first, at the cost of a round trip
	// (Retry, RFC 9000 section 8.1.2). 0, which means always, to 65536, default
	// 128.
	RetryAbove int

	// InitialPacketSize is the size of UDP payload to start with and never to go
	// below, in bytes. 1200 to 1452; 0, the default, is 1280 with a fallback to
	// 1200 if the local network refuses that.
	InitialPacketSize uint16
	// DisablePathMTUDiscovery keeps every packet at InitialPacketSize: for paths
	// that lose large packets only now and then, which discovery does not notice.
	DisablePathMTUDiscovery bool
}

// DefaultConfig returns the defaults named in Config.
func DefaultConfig() Config {
	return Config{
		Law:                            cc.LawImproved,
		HandshakeTimeout:               5 * time.Second,
		MaxIdleTimeout:                 30 * time.Second,
		InitialStreamReceiveWindow:     1 << 20,
		MaxStreamReceiveWindow:         32 << 20,
		InitialConnectionReceiveWindow: 2 << 20,
		MaxConnectionReceiveWindow:     64 << 20,
		MaxIncomingStreams:             256,
		RetryAbove:                     128,
	}
}

const (
	minWindow = 64 << 10
	maxWindow = 1 << 30
	// maxStreams also bounds what quic-go keeps for each connection.
	maxStreams = 1 << 16
	// maxHandshakes bounds what spoofed addresses can make a listener keep.
	maxHandshakes = 1 << 16
	// RFC 9000 section 14: nothing below 1200; quic-go's packet buffers end at 1452.
	minPacketSize = 1200
	maxPacketSize = 1452
)

// Validate returns an error for each field that is out of its range.
func (c Config) Validate() error {
	var errs []error
	bad := func(field string, value any, allowed string, args ...any) {
		errs = append(errs, fmt.Errorf("quicnet: %s is %v: must be %s", field, value, fmt.Sprintf(allowed, args...)))
	}
	if _, err := cc.ParseLaw(string(c.Law)); err != nil {
		bad("Law", fmt.Sprintf("%q", c.Law), "one of %v", cc.Laws())
	}
	if c.HandshakeTimeout < 100*time.Millisecond || c.HandshakeTimeout > time.Minute {
		bad("HandshakeTimeout", c.HandshakeTimeout, "100ms to 1m")
	}
	if c.MaxIdleTimeout < time.Second || c.MaxIdleTimeout > time.Hour {
		bad("MaxIdleTimeout", c.MaxIdleTimeout, "1s to 1h")
	}
	if c.KeepAlivePeriod < 0 || c.KeepAlivePeriod > c.MaxIdleTimeout/2 {
		bad("KeepAlivePeriod", c.KeepAlivePeriod, "0 to half of MaxIdleTimeout (%v)", c.MaxIdleTimeout/2)
	}
	window := func(field string, v, limit uint64, limitName string) {
		if v < minWindow || v > maxWindow {
			bad(field, v, "%d to %d bytes", minWindow, maxWindow)
		} else if v > limit {
			bad(field, v, "at most %s (%d bytes)", limitName, limit)
		}
	}
	window("InitialStreamReceiveWindow", c.InitialStreamReceiveWindow, c.MaxStreamReceiveWindow, "MaxStreamReceiveWindow")
	window("MaxStreamReceiveWindow", c.MaxStreamReceiveWindow, c.MaxConnectionReceiveWindow, "MaxConnectionReceiveWindow")
	window("InitialConnectionReceiveWindow", c.InitialConnectionReceiveWindow, c.MaxConnectionReceiveWindow, "MaxConnectionReceiveWindow")
	window("MaxConnectionReceiveWindow", c.MaxConnectionReceiveWindow, maxWindow, "")
	if c.MaxIncomingStreams < 1 || c.MaxIncomingStreams > maxStreams {
		bad("MaxIncomingStreams", c.MaxIncomingStreams, "1 to %d", maxStreams)
	}
	if c.RetryAbove < 0 || c.RetryAbove > maxHandshakes {
		bad("RetryAbove", c.RetryAbove, "0 to %d", maxHandshakes)
	}
	if s := c.InitialPacketSize; s != 0 && (s < minPacketSize || s > maxPacketSize) {
		bad("InitialPacketSize", s, "0 or %d to %d bytes", minPacketSize, maxPacketSize)
	}
	return errors.Join(errs...)
}

// prepare validates c, sees that the hook it needs is in place, and returns what
// quic-go wants.
func (c Config) prepare() (*quic.Config, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if err := c.checkHook(CheckHook()); err != nil {
		return nil, err
	}
	return &quic.Config{
		HandshakeIdleTimeout:           c.HandshakeTimeout,
		MaxIdleTimeout:                 c.MaxIdleTimeout,
		KeepAlivePeriod:                c.KeepAlivePeriod,
		InitialStreamReceiveWindow:     c.InitialStreamReceiveWindow,
		MaxStreamReceiveWindow:         c.MaxStreamReceiveWindow,
		InitialConnectionReceiveWindow: c.InitialConnectionReceiveWindow,
		MaxConnectionReceiveWindow:     c.MaxConnectionReceiveWindow,
		MaxIncomingStreams:             c.MaxIncomingStreams,
		MaxIncomingUniStreams:          -1, // raw connections use none; HTTP/3 raises it
		InitialPacketSize:              c.InitialPacketSize,
		DisablePathMTUDiscovery:        c.DisablePathMTUDiscovery,
		Allow0RTT:                      false,
		EnableDatagrams:                false,
		Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace {
			return c.newTrace()
		},
	}, nil
}
