// Package quichook gives quic-go a congestion controller of ours.
//
// quic-go v0.65.0 has no public hook for one. This package holds no quic-go
// code: its module path lies below github.com/quic-go/quic-go, so that the go
// command lets it import quic-go's internal packages, and the main module finds
// it by a replace directive. It is the only place in the product with unsafe
// and linkname.
//
//	quic.Transport.Dial ──► newClientConnection ┐ package variables of quic-go,
//	quic.Listener       ──► newConnection       ┘ wrapped by init of this package
//	                              │
//	                              ▼
//	        *quic.Conn, built, its run loop not yet started
//	        │
//	        ├─ qlogTrace ─────────── a Provider? if not, nothing is touched
//	        │
//	        └─ sentPacketHandler ─── replaced by pathHandler, which passes every
//	             │                   call on and refits the controller after
//	             │                   MigratedPath (RFC 9000 section 9.4)
//	             └─ congestion ───── replaced by adapter ──► Controller
//
// Both variables are read by quic-go when a listener is made or a connection is
// dialled; a package's init runs before either can happen, so every connection
// of the program passes through here. The controller is in place before the
// first packet is sent.
//
// Everything this package relies on is compared with the linked quic-go in
// init: the version (where the build information or the path of the source
// names it), the origin of both constructors, the name, type and place of each
// struct field, and the parameters of the server's constructor. If anything
// differs, nothing is wrapped and Err says what was found. The type of the
// client's constructor cannot be reached by reflection; it is held by the pinned
// version and by a test of package quicnet that reads the source.
//
// This is a module of its own; from the main module its tests are run by
//
//	go test github.com/quic-go/quic-go/quichook
//
// What it never does: choose a control law, keep state of its own, read a
// clock, allocate per packet, record qlog events, or touch a connection whose
// configuration does not ask for a controller.
package quichook
