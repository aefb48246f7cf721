package lab

import (
	"crypto/rand"
	mathrand "math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
)

// deterministic makes a run repeatable, as far as the Go runtime allows, until
// the function it returns is called: seeded cryptographic randomness (quic-go
// skips packet numbers at random), one goroutine at a time, and no garbage
// collection below 512 MiB, which would reorder them. What stays is the runtime's
// own choice among the ready cases of a select, and preemption on a busy
// machine: most runs repeat to the last digit, one whose losses feed back on
// themselves may not.
//
// Outside of tests only what reads crypto/rand.Reader is seeded; keys are not,
// and need not be: see tlsConfigs.
func deterministic(t *testing.T, seed uint64) (restore func()) {
	if testing.Testing() {
		cryptotest.SetGlobalRandom(t, seed)
	}
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	reader := rand.Reader
	if !testing.Testing() {
		rand.Reader = mathrand.NewChaCha8(key)
	}
	procs := runtime.GOMAXPROCS(1)
	percent := debug.SetGCPercent(-1)
	limit := debug.SetMemoryLimit(512 << 20)
	return func() {
		rand.Reader = reader
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
