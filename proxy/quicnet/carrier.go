package quicnet

import (
	"errors"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlogwriter"
	"github.com/quic-go/quic-go/quichook"

	"fastpacs/cc"
)

// trace stands where quic-go keeps a connection's qlog: it records nothing, and
// leads from a *quic.Conn to what we know of it.
type trace struct {
	live *liveConn
}

// AddProducer returns nil, which leaves quic-go's own recorder nil: no event is
// then built at all.
func (*trace) AddProducer() qlogwriter.Recorder { return nil }

func (*trace) SupportsSchemas(string) bool { return false }

// carrier is a trace that also carries a connection's choice of controller to
// the hook.
type carrier struct {
	trace
	newController func(client bool, maxDatagramSize int64, rtt cc.RTTSource) cc.Controller
}

var _ quichook.Provider = (*carrier)(nil)

func (c Config) newTrace() qlogwriter.Trace {
	t := trace{live: &liveConn{registry: c.Controllers}}
	switch {
	case c.NewController != nil:
		return &carrier{t, c.NewController}
	case c.Law == cc.LawReno:
		return &t
	}
	law := c.Law
	return &carrier{t, func(_ bool, maxDatagramSize int64, rtt cc.RTTSource) cc.Controller {
		return cc.New(law, maxDatagramSize, rtt)
	}}
}

// NewController implements quichook.Provider.
func (c *carrier) NewController(p quichook.Path) quichook.Controller {
	ctl := c.newController(p.Client, p.MaxDatagramSize, p.RTT)
	c.live.onPath(p.Conn, p.Client, ctl)
	if ctl == nil {
		return nil // not a nil cc.Controller in a non-nil interface
	}
	return ctl
}

var errNotFitted = errors.New("quicnet: the connection was not fitted with a controller")

// traceOf returns the trace of a connection made with a Config's quic.Config.
func traceOf(conn *quic.Conn) *trace {
	switch t := conn.QlogTrace().(type) {
	case *carrier:
		return &t.trace
	case *trace:
		return t
	}
	panic("quicnet: a foreign connection")
}

// opened is called once for each connection whose handshake is complete. It
// fails if the hook was to fit a controller and has not.
func opened(conn *quic.Conn, client bool) (*liveConn, error) {
	switch t := conn.QlogTrace().(type) {
	case *trace:
		t.live.onPath(conn, client, nil)
		return t.live, nil
	case *carrier:
		if t.live.isOpen() {
			return t.live, nil
		}
	}
	return nil, errNotFitted
}
