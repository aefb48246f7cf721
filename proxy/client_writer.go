package proxy

import (
	"bufio"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// clientWriter is the ResponseWriter that the ReverseProxy writes to. It keeps
// the answer's header apart from the one that the server in front of us may have
// begun, so that 1xx answers neither carry nor clear the latter; it filters 1xx;
// and it cuts a client that takes nothing.
type clientWriter struct {
	under http.ResponseWriter
	x     *exchange
	stall stallTimer
	// pieceSize bounds one write below, as progress within it cannot be seen.
	pieceSize int

	mu     sync.Mutex  // header and status of under; a 100 may come from elsewhere
	header http.Header // the answer's, or the next 1xx's, until status is set; then under's
	status int         // final, 0 until sent
	over   bool        // under is no longer ours

	written int64
}

const (
	// tcpPieceSize is small enough for any client that can be called alive to take
	// within BodyIdleTimeout, large enough to cost nothing.
	tcpPieceSize = 64 << 10
	quicPiece    = 1 << 30 // all: a QUIC stream tells how much of a write it took
)

func newClientWriter(w http.ResponseWriter, x *exchange) *clientWriter {
	c := &clientWriter{under: w, x: x, header: http.Header{}, pieceSize: tcpPieceSize}
	if x.request.ProtoMajor == 3 {
		c.pieceSize = quicPiece
	}
	c.stall = stallTimer{idle: x.handler.cfg.BodyIdleTimeout, cut: x.cutClientWrite}
	return c
}

// Unwrap lets http.ResponseController reach the server's own writer.
func (c *clientWriter) Unwrap() http.ResponseWriter { return c.under }

func (c *clientWriter) Header() http.Header { return c.header }

func (c *clientWriter) WriteHeader(code int) {
	if code >= 100 && code <= 199 && code != http.StatusSwitchingProtocols {
		c.inform(code)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != 0 {
		return
	}
	c.status = code
	h := c.under.Header()
	maps.Copy(h, c.header)
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // or the server guesses one
	}
	if c.leavesBody() {
		// Or the server lets the answer out only when it has read the body. It must
		// not take the rest of the body for the next request then.
		_ = c.x.control.EnableFullDuplex()
		h.Set("Connection", "close")
	}
	c.header = h
	c.under.WriteHeader(code)
}

// leavesBody tells whether there is a part of an HTTP/1 request body on the
// connection that the exchange has not read.
func (c *clientWriter) leavesBody() bool {
	r := c.x.request
	return r.ProtoMajor == 1 && r.ContentLength != 0 && !c.x.requestRead.Load()
}

// inform sends a 1xx answer. 100 is left to the server, which sends it when the
// body is first read; that is when the upstream has asked for the body, too.
func (c *clientWriter) inform(code int) {
	if code == http.StatusContinue || !c.x.request.ProtoAtLeast(1, 1) {
		return
	}
	removeHopByHop(c.header)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeInformational(code, c.header)
}

// sendContinue sends a 100 to an HTTP/3 client, whose server does not do that by
// itself. It may be called from the goroutine that reads the request body.
func (c *clientWriter) sendContinue() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeInformational(http.StatusContinue, nil)
}

func (c *clientWriter) writeInformational(code int, header http.Header) {
	if c.status != 0 || c.over {
		return
	}
	h := c.under.Header()
	kept := maps.Clone(h)
	clear(h)
	maps.Copy(h, header)
	c.under.WriteHeader(code)
	clear(h)
	maps.Copy(h, kept)
}

func (c *clientWriter) Write(p []byte) (int, error) {
	if c.status == 0 {
		c.WriteHeader(http.StatusOK)
	}
	done := 0
	for done < len(p) {
		c.stall.begin()
		n, err := c.under.Write(p[done:min(len(p), done+c.pieceSize)])
		c.stall.end()
		done += n
		c.written += int64(n)
		if err == nil {
			continue
		}
		if n > 0 && c.resume(err) {
			continue
		}
		c.fail(err)
		return done, err
	}
	return done, nil
}

// resume goes on with a write to a QUIC stream that was cut although the client
// took a part of it: it is slow, not gone.
func (c *clientWriter) resume(err error) bool {
	return c.x.request.ProtoMajor == 3 && errors.Is(err, os.ErrDeadlineExceeded) &&
		c.x.writeCut.Swap(false) && c.x.control.SetWriteDeadline(time.Time{}) == nil
}

// FlushError is called by http.ResponseController.
func (c *clientWriter) FlushError() error {
	c.stall.begin()
	err := http.NewResponseController(c.under).Flush()
	c.stall.end()
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		c.fail(err)
	}
	return err
}

func (c *clientWriter) fail(err error) {
	if c.x.writeCut.Load() {
		c.x.fail(OutcomeClientStalled, errClientStalled)
		return
	}
	c.x.fail(OutcomeClientAborted, err)
}

// leave keeps the goroutine that reads the request body, which may outlive the
// handler, from writing.
func (c *clientWriter) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// lingerTime is how long a client may go on sending a body that nobody wants, for
// it to find the answer before the end of its connection.
const lingerTime = 5 * time.Second

// release bounds what the server does once the handler has returned: writing
// what is left in its buffers, and reading on for a client that may not have
// seen the answer. The server clears the deadlines.
func (c *clientWriter) release() {
	if c.status == http.StatusSwitchingProtocols {
		return // hijacked
	}
	// A front without deadlines is not a network's.
	_ = c.x.control.SetWriteDeadline(time.Now().Add(c.stall.idle))
	if c.leavesBody() {
		_ = c.x.control.SetReadDeadline(time.Now().Add(lingerTime))
	}
}

// Hijack hands over the client's connection for a websocket, which is ended when
// nothing has passed in either direction for BodyIdleTimeout.
func (c *clientWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := c.x.control.Hijack()
	if err != nil {
		return nil, nil, err
	}
	c.status = http.StatusSwitchingProtocols
	return newTunnelConn(conn, c.x.handler.cfg.BodyIdleTimeout, c.x.cancel), rw, nil
}
