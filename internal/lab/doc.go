// Package lab is the laboratory: an in-process network with a bottleneck, named
// scenarios on it that run the product's QUIC client and server (package
// quicnet), and what they measured.
//
//	Scenario ──Measure──► Network: Endpoint ► Link ► Endpoint, one pair a Flow
//	   │                     │ sampled every Tick
//	   │                     ▼
//	   │                  Record (Series, histogram, objects)
//	   ▼                     │
//	  Bars ─────judge────► Result: figures, verdicts
//
// Links use the time package only, so a scenario runs by the wall's clock or, as
// Run does it, in the virtual time of a testing/synctest bubble, where a minute
// at 100 Mb/s takes some seconds and the machine's load changes nothing. End
// points are no UDP sockets: quic-go neither batches datagrams nor searches for
// the path MTU there.
//
// A Link is a drop-tail queue in bytes, a transmitter, then a wire:
//
//	send ─► [ queue: Buffer ]─► transmitter: Rate ─► loss ─► Delay ± Jitter ─► Grain ─► deliver
//	           │ full, Down
//	           ▼ dropped
//
// To run scenarios from the source tree, and print one line a run:
//
//	go test ./internal/lab -count=1 -v -run 'TestScenario$' -args -scenario wan,lan -cc improved,static,reno \
//	    [-seed 3] [-d 20s] [-trace 100ms]
//
// `fastlab suite` prints them as a table or as JSON; each run is a child process
// there (see Main), one on each CPU. A seed fixes the losses, the jitter, the
// controllers' clock and what quic-go draws at random.
//
// What it never does: touch a socket, emulate the kernel's TCP (see fastlab wan
// for that), or judge a law it was not asked to.
package lab
