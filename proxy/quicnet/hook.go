package quicnet

import (
	"fmt"

	"fastpacs/cc"

	"github.com/quic-go/quic-go/quichook"
)

// CheckHook says why our controllers cannot be fitted to the linked quic-go; nil
// means that they can.
func CheckHook() error { return quichook.Err() }

// checkHook refuses every law that needs the hook when hookErr says that it is
// not in place.
func (c Config) checkHook(hookErr error) error {
	if hookErr == nil || !c.needsHook() {
		return nil
	}
	return fmt.Errorf("quicnet: law %q cannot run: %w; FASTPACS_CC=reno runs with quic-go's own controller", c.Law, hookErr)
}

func (c Config) needsHook() bool { return c.NewController != nil || c.Law != cc.LawReno }
