package proxy

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hopByHop are the headers that concern one connection only (RFC 9110 section
// 7.6.1, with those of RFC 2616 section 13.5.1 that are still sent).
var hopByHop = [...]string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// removeHopByHop removes those headers and the ones that Connection names. The
// ReverseProxy does the same for all but 1xx answers.
func removeHopByHop(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for _, name := range hopByHop {
		h.Del(name)
	}
}

// wantsWebSocket tells whether a request asks to become a websocket (RFC 6455
// section 4.1).
func wantsWebSocket(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade") && strings.EqualFold(h.Get("Upgrade"), "websocket")
}
