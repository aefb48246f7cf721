package proxy

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestProberStatus(t *testing.T) {
	for status, up := range map[int]bool{200: true, 204: true, 307: true, 401: true, 404: true, 429: true, 500: false, 502: false, 503: false} {
		var told []bool
		p := newProber(func(context.Context) (int, error) { return status, nil }, time.Second, time.Second,
			func(up bool) { told = append(told, up) })
		if err := p.check(t.Context()); (err == nil) != up {
			t.Errorf("status %d: %v, want up: %v", status, err, up)
		}
		if len(told) != 1 || told[0] != up {
			t.Errorf("status %d: told %v, want %v once", status, told, up)
		}
	}
}

// However many ask, the archive gets one request at a time and none while an
// answer holds, a bad one too.
func TestProberSparesTheArchive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		failure := errors.New("down")
		p := newProber(func(context.Context) (int, error) {
			asked.Add(1)
			time.Sleep(100 * time.Millisecond)
			return 0, failure
		}, time.Second, 2*time.Second, func(bool) {})
		ask := func() {
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if err := p.check(t.Context()); !errors.Is(err, failure) {
						t.Errorf("check = %v", err)
					}
				})
			}
			all.Wait()
		}
		ask()
		ask()
		if n := asked.Load(); n != 1 {
			t.Errorf("%d requests for 100 checks at once, want 1", n)
		}
		time.Sleep(2 * time.Second)
		ask()
		if n := asked.Load(); n != 2 {
			t.Errorf("%d requests once the answer is old, want 2", n)
		}
	})
}

func TestProberTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProber(func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}, 5*time.Second, time.Minute, func(bool) {})
		began := time.Now()
		go func() {
			// Waits for the other's probe no longer than it wants to.
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := p.check(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
				t.Errorf("an impatient check = %v after %v", err, time.Since(began))
			}
		}()
		if err := p.check(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 5*time.Second {
			t.Errorf("check of a silent archive = %v after %v", err, time.Since(began))
		}
		synctest.Wait()
	})
}

// The asker may leave; its probe goes on for the others.
func TestProberOutlivesItsAsker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProber(func(ctx context.Context) (int, error) {
			select {
			case <-time.After(time.Second):
				return 200, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}, 5*time.Second, time.Minute, func(bool) {})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := p.check(ctx); err != nil {
			t.Errorf("check = %v", err)
		}
	})
}

func TestProberRunTellsChangesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []int{200, 200, 503, 503, 200}
		next := 0
		p := newProber(func(context.Context) (int, error) {
			status := answers[min(next, len(answers)-1)]
			next++
			return status, nil
		}, time.Second, 0, func(bool) {})
		ctx, cancel := context.WithCancel(t.Context())
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		var changes []bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.run(ctx, ticker.C, func(err error) { changes = append(changes, err == nil) })
		}()
		time.Sleep(10 * time.Second)
		cancel()
		<-done
		if len(changes) != 3 || !changes[0] || changes[1] || !changes[2] {
			t.Errorf("told %v, want up, down, up", changes)
		}
	})
}
