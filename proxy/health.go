package proxy

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// prober tells whether the upstream answers. It is asked by GET: archives answer
// HEAD with 404. Any status below 500 counts, since an archive that wants a
// password or knows no such path is still there; redirects are not followed.
//
// An answer holds for a while, and at most one request is under way, so that
// probing us cannot load the archive.
type prober struct {
	get      func(ctx context.Context) (status int, err error)
	timeout  time.Duration
	holds    time.Duration
	now      func() time.Time
	onAnswer func(up bool)

	turn  chan struct{} // capacity 1; whoever has put its token in owns the rest
	asked time.Time     // zero: never
	err   error         // the last answer
}

func newProber(get func(context.Context) (int, error), timeout, holds time.Duration, onAnswer func(up bool)) *prober {
	return &prober{
		get: get, timeout: timeout, holds: holds, now: time.Now,
		onAnswer: onAnswer, turn: make(chan struct{}, 1),
	}
}

// check returns nil if the upstream answers, from the last answer while that
// holds. ctx bounds the wait for a probe of somebody else.
func (p *prober) check(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return fmt.Errorf("proxy: waiting for a probe of the upstream: %w", ctx.Err())
	}
	if !p.asked.IsZero() && p.now().Sub(p.asked) < p.holds {
		return p.err
	}
	// Not the asker's context: the answer is for the next ones too.
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
	defer cancel()
	p.err = p.ask(ask)
	p.asked = p.now()
	p.onAnswer(p.err == nil)
	return p.err
}

func (p *prober) ask(ctx context.Context) error {
	status, err := p.get(ctx)
	if err != nil {
		return err
	}
	if status >= http.StatusInternalServerError {
		return fmt.Errorf("proxy: the upstream answers with status %d", status)
	}
	return nil
}

// run probes at every tick until ctx ends, for the metric and the log.
func (p *prober) run(ctx context.Context, ticks <-chan time.Time, onChange func(error)) {
	wasUp, first := false, true
	for {
		err := p.check(ctx)
		if ctx.Err() != nil {
			return
		}
		if up := err == nil; first || up != wasUp {
			onChange(err)
			wasUp, first = up, false
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
	}
}
