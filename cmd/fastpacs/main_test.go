package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// beFastpacs makes the test binary act as fastpacs, so that tests can run it as
// a child without building it again.
const beFastpacs = "BE_FASTPACS"

func TestMain(m *testing.M) {
	if os.Getenv(beFastpacs) == "1" {
		main()
	}
	goleak.VerifyTestMain(m)
}
