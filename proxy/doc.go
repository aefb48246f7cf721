// Package proxy is the HTTP face of fastpacs: one server for HTTP/1.1, 2 and 3
// and the reverse proxy behind it that hands every request to the archive.
//
//	client ──h1, h2, h3──► Server ──► Handler ──HTTP/1.1──► archive
//	      downstream                            upstream
//
// # Server
//
// Server owns what lives as long as the process: listeners, certificate,
// Alt-Svc, limits, metrics, access log, drain.
//
// # Handler
//
// Handler owns one exchange at a time, and passes on what it gets: method,
// escaped path, query, Host, headers, status, trailers and body bytes reach the
// other side as they were sent. What it changes, and why, is in this list:
//
//   - hop-by-hop headers and those named in Connection are dropped both ways, in
//     1xx answers too (RFC 9110 section 7.6.1), and with them any Upgrade but a
//     websocket that is allowed;
//   - Forwarded and X-Forwarded-* are replaced, or extended if the client is a
//     trusted proxy (RFC 7239);
//   - Alt-Svc of the archive is dropped: it would lead clients past the proxy;
//   - CORS headers and the archive's own URLs are rewritten only if configured.
//
// An exchange has no time limit as a whole. Its waits have one each:
//
//	dial, TLS          DialTimeout
//	first answer byte  ResponseHeaderTimeout, from the end of the request
//	body, each way,    BodyIdleTimeout without a single byte of progress; it
//	each leg           never cuts a slow body. A wait during which a QUIC client
//	                   took a part is waited for once more.
//
// How an exchange ends:
//
//	complete             answer passed on to its end
//	refused              answered here: 405, 413, 425 or a CORS preflight
//	upstream_unreachable no connection, or none kept: 502
//	upstream_timeout     no connection or no answer in time: 504
//	upstream_error       no answer that HTTP can make sense of: 502
//	upstream_truncated   the answer broke off: the client sees a broken body
//	upstream_stalled     the answer stopped: the client sees a broken body
//	client_aborted       the client went away, or its request broke off: 400
//	client_stalled       the client stopped sending (408) or taking
//
// A body that breaks off is never ended cleanly: the connection (HTTP/1) or the
// stream (HTTP/2 and 3) is reset, by panicking with [http.ErrAbortHandler].
//
// Requests that may be sent twice (GET, HEAD, OPTIONS, TRACE without a body) use
// kept-alive upstream connections and are sent again if the archive closed one
// under them. All others get a connection of their own, so that there is no
// moment in which the archive could close it by right, and are sent once.
//
// The package never holds a body, never compresses or inflates one, never
// answers from a cache, and logs neither paths nor queries nor headers of a
// request from the Handler.
package proxy
