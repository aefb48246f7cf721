package main

import "runtime"

// ballastSize is added to the heap that the garbage collector sees.
const ballastSize = 16 << 20

// withBallast calls f with a larger heap than the program needs. What lives here
// is small and every packet leaves some garbage, so the collector would run many
// times a second; the ballast makes it wait for as much garbage as this, and no
// more, however much lives (a percentage would grow with it). Its pages are never
// touched and so are no memory of the machine's.
func withBallast(f func() int) int {
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	return f()
}
