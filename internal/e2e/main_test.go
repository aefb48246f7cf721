package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The laboratory is what tests share, made when first asked for and removed by
// TestMain.
var (
	scratch string // directory
	binary  = sync.OnceValues(buildFastpacs)
	archive = sync.OnceValues(startArchive)
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(play(role))
	}
	os.Exit(run(m))
}

func run(m *testing.M) (status int) {
	var err error
	if scratch, err = os.MkdirTemp("", "fastpacs-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	status = m.Run()
	if archiveStarted {
		a, err := archive()
		if err == nil {
			err = a.stop()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
			status = max(status, 1)
		}
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: goroutines are left:", err)
		status = max(status, 1)
	}
	return status
}

// buildFastpacs builds the program under test, with the race detector if the
// tests have it.
func buildFastpacs() (string, error) {
	if err := watchSources(); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, "fastpacs")
	args := []string{"build", "-o", file}
	if raceEnabled {
		args = append(args, "-race")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", append(args, "fastpacs/cmd/fastpacs")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building fastpacs: %w\n%s", err, out)
	}
	return file, nil
}

// watchSources looks at every source file, so that go test does not answer from
// its cache when one has changed: it cannot know what a child process read.
func watchSources() error {
	return filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // a temporary file that is gone again
			}
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		return err
	})
}

// missing ends a test that needs a part which is not installed.
func missing(tb testing.TB, part, install string) {
	tb.Helper()
	if os.Getenv("REQUIRE_PARTS") == "1" {
		tb.Fatalf("%s is not installed; run: %s", part, install)
	}
	tb.Skipf("%s is not installed (run: %s)", part, install)
}

// within returns a context that ends with the test or after d.
func within(tb testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(tb.Context(), d)
	tb.Cleanup(cancel)
	return ctx
}

// eventually polls until done returns nil, and fails the test with its last
// error after d.
func eventually(tb testing.TB, d time.Duration, done func() error) {
	tb.Helper()
	deadline := time.NewTimer(d)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := done()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			tb.Fatalf("after %v: %v", d, err)
		}
	}
}
