package proxy

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// requestBody is the client's body on its way upstream. It is read by one
// goroutine of the transport, which may outlive the handler.
type requestBody struct {
	io.ReadCloser
	x     *exchange
	stall stallTimer
	// left is how many bytes may still come; only if limited.
	left    int64
	limited bool
	// sendContinue is true until the first read if the client waits for a 100 that
	// the server in front does not send.
	sendContinue bool
	// first is a byte read ahead, if ahead is set.
	first [1]byte
	ahead bool
	// out is the upstream request, whose trailers are filled in at the end.
	out *http.Request
}

var (
	errBodyTooLarge = errors.New("request body is larger than MaxRequestBody")
	errClientBody   = errors.New("request body broke off")
)

func newRequestBody(x *exchange) *requestBody {
	r := x.request
	b := &requestBody{ReadCloser: r.Body, x: x}
	b.stall = stallTimer{idle: x.handler.cfg.BodyIdleTimeout, cut: x.cutClientRead}
	if limit := x.handler.cfg.MaxRequestBody; limit > 0 {
		b.left, b.limited = limit, true
	}
	b.sendContinue = r.ProtoMajor == 3 && expectsContinue(r)
	return b
}

func expectsContinue(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Expect"), "100-continue")
}

// empty reads ahead to find out whether there is a body at all. HTTP/3 requests
// without one look as if they had one of unknown length.
func (b *requestBody) empty() (bool, error) {
	for {
		switch n, err := b.readClient(b.first[:]); {
		case n == 1:
			b.ahead = true
			return false, nil
		case err == io.EOF:
			return true, nil
		case err != nil:
			return false, b.fail(err)
		}
	}
}

func (b *requestBody) Read(p []byte) (int, error) {
	if b.sendContinue {
		b.sendContinue = false
		b.x.client.sendContinue()
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.limited && int64(len(p)) > b.left {
		p = p[:b.left+1] // one more, to see whether it is there
	}
	n, err := 0, error(nil)
	if b.ahead {
		b.ahead = false
		n = copy(p, b.first[:])
	} else {
		n, err = b.readClient(p)
	}
	b.x.requestBytes.Add(int64(n))
	if b.limited {
		if b.left -= int64(n); b.left < 0 {
			b.x.fail(OutcomeRefused, errBodyTooLarge)
			return 0, errBodyTooLarge
		}
	}
	switch {
	case err == io.EOF:
		b.x.requestRead.Store(true)
		b.copyTrailers()
	case err != nil:
		err = b.fail(err)
	}
	return n, err
}

// readClient reads from the client, for at most BodyIdleTimeout.
func (b *requestBody) readClient(p []byte) (int, error) {
	b.stall.begin()
	n, err := b.ReadCloser.Read(p)
	b.stall.end()
	return n, err
}

func (b *requestBody) fail(err error) error {
	if b.x.readCut.Load() {
		b.x.fail(OutcomeClientStalled, errClientStalled)
		return errClientStalled
	}
	err = fmt.Errorf("%w: %w", errClientBody, err)
	b.x.fail(OutcomeClientAborted, err)
	return err
}

// copyTrailers hands on the trailers that the client had announced, which the
// server puts into its request when it comes to the end of the body. The
// transport writes them after this very read.
func (b *requestBody) copyTrailers() {
	if b.out == nil {
		return
	}
	for k := range b.out.Trailer {
		b.out.Trailer[k] = b.x.request.Trailer[k]
	}
}

// Close is for the transport. The server closes its own body when the handler
// has returned.
func (b *requestBody) Close() error { return nil }
