package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
)

// explanations are what a person in front of a viewer may pass on to an
// administrator. They name no address, path or version.
var explanations = map[int]string{
	http.StatusBadRequest:            "The body of the request broke off before its end. Send it again.",
	http.StatusMethodNotAllowed:      "The proxy does not serve this method.",
	http.StatusRequestTimeout:        "The body of the request stopped coming. Administrator: look at the network toward the client, and at the proxy's body idle timeout.",
	http.StatusRequestEntityTooLarge: "The body of the request is larger than the proxy is configured to pass on. Administrator: look at the proxy's limit for request bodies.",
	http.StatusTooEarly:              "The request came in TLS early data and might be a replay. Send it again once the connection is up.",
	http.StatusBadGateway:            "The proxy cannot reach the archive, or cannot make sense of its answer. Administrator: see that the archive runs, that the configured upstream is its address, and what the proxy's log says.",
	http.StatusGatewayTimeout:        "The archive did not answer the proxy in time. Administrator: look at the load of the archive, at its network, and at the proxy's timeouts and log.",
}

// refuse answers with an error of the proxy's own.
func (x *exchange) refuse(status int, cause error) {
	x.fail(OutcomeRefused, cause)
	x.answer(status)
}

func (x *exchange) answer(status int) {
	text := strconv.Itoa(status) + " " + http.StatusText(status) + "\n" + explanations[status] + "\n"
	h := x.client.Header()
	clear(h)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(text)))
	x.client.WriteHeader(status)
	_, _ = io.WriteString(x.client, text) // failure is in the exchange already
}

// answerError answers an exchange that failed before an answer had begun.
func (x *exchange) answerError(err error) {
	if x.client.status != 0 {
		panic(http.ErrAbortHandler)
	}
	x.failUpstream(classify(err))
	switch outcome, cause := x.failure(); outcome {
	case OutcomeClientStalled:
		x.answer(http.StatusRequestTimeout)
	case OutcomeClientAborted:
		if !errors.Is(cause, errClientBody) || x.request.Context().Err() != nil {
			panic(http.ErrAbortHandler) // nobody is listening
		}
		x.answer(http.StatusBadRequest)
	case OutcomeRefused:
		x.answer(http.StatusRequestEntityTooLarge)
	case OutcomeUpstreamTimeout:
		x.answer(http.StatusGatewayTimeout)
	default:
		x.answer(http.StatusBadGateway)
	}
}

// classify names an error of the transport.
func classify(err error) (Outcome, error) {
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return OutcomeUpstreamTimeout, err
	case errors.As(err, &op) && op.Op == "dial", errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return OutcomeUpstreamUnreachable, err
	default:
		return OutcomeUpstreamError, err
	}
}
