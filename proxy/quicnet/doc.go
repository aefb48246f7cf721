// Package quicnet carries bytes over QUIC with our congestion controllers: raw
// streams, an HTTP/3 server and an HTTP/3 client. It is the only importer of
// quic-go and of the seam to it, package quichook.
//
//	HTTPServer   HTTPTransport   Listener, Dial ── Conn ── Stream (net.Conn)
//	     └───────────────┴──────────────┤
//	                              Config: law, windows, timeouts
//	                                    │ quic.Config.Tracer, once a connection
//	                                    ▼
//	   quichook ──asks──────────► carrier ──makes──► cc.Controller, one a path
//	   (before the run loop,            │
//	   and after a migration)           └─registers─► Controllers (live, totals)
//
// Every connection made here, on either end, is fitted with a controller of the
// configured law before its first packet; after a path migration it gets a new
// one of the same law (RFC 9000 section 9.4). With cc.LawReno nothing is fitted
// and quic-go's own controller stays. If the linked quic-go is not the one the
// seam knows, everything but cc.LawReno is refused: see CheckHook.
//
// What it never does: accept or send 0-RTT data (RFC 8470: DICOMweb has
// requests that must not be replayed), send datagrams, record qlog, migrate a
// connection by itself, close a socket it was given, or fall back to another
// law silently.
package quicnet
