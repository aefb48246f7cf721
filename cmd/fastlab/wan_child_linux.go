package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"fastpacs/internal/lab/wan"
)

// wanChild is a program that runs in a namespace.
type wanChild struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout bytes.Buffer // whole only after exited
	stderr tailWriter
	exited chan struct{}
	err    error // of the end
}

// startIn starts a program in a namespace.
func startIn(ns *wan.Namespace, name string, cmd *exec.Cmd) (*wanChild, error) {
	c := &wanChild{name: name, cmd: cmd, exited: make(chan struct{})}
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = &c.stdout, &c.stderr
	cmd.WaitDelay = 5 * time.Second
	if err := ns.Start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		c.err = cmd.Wait()
		close(c.exited)
	}()
	return c, nil
}

// startEndpoint starts this program in a namespace, in one of its roles.
func startEndpoint(ns *wan.Namespace, role string, job any) (*wanChild, error) {
	c, err := startIn(ns, "fastlab "+role, exec.Command("/proc/self/exe", "wan-endpoint", role))
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(c.stdin).Encode(job); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: handing over its job: %w", c.name, err), c.stop())
	}
	return c, nil
}

func (c *wanChild) pid() int { return c.cmd.Process.Pid }

// failed is the error of a child that ended when it should not have.
func (c *wanChild) failed() error {
	return fmt.Errorf("%s ended: %v\n%s", c.name, c.err, c.stderr.text())
}

// wait waits for a child that ends by itself.
func (c *wanChild) wait(ctx context.Context) error {
	select {
	case <-c.exited:
		if c.err != nil {
			return c.failed()
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", c.name, context.Cause(ctx))
	}
}

// result waits for the end and decodes what an endpoint printed.
func (c *wanChild) result(ctx context.Context, v any) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	if err := json.Unmarshal(c.stdout.Bytes(), v); err != nil {
		return fmt.Errorf("%s: its result %q: %w", c.name, c.stdout.String(), err)
	}
	return nil
}

// ready waits until the child has a port.
func (c *wanChild) ready(ctx context.Context, transport string, port uint16) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("not ready after 30s"))
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		up, err := wan.Listening(c.pid(), transport, port)
		if up && err == nil {
			return nil
		}
		select {
		case <-c.exited:
			return c.failed()
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: %w\n%s", c.name, context.Cause(ctx), c.stderr.text()), err)
		case <-tick.C:
		}
	}
}

// stop ends a child: politely, then by force. One that had ended with an error
// is none of its business.
func (c *wanChild) stop() error {
	_ = c.stdin.Close()                       // our endpoints end
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // the others do; fails only if it is gone
	timer := time.AfterFunc(5*time.Second, func() { _ = c.cmd.Process.Kill() })
	<-c.exited
	if !timer.Stop() {
		return fmt.Errorf("%s did not end when asked to, and was killed", c.name)
	}
	return nil
}

// tailWriter keeps the end of what is written.
type tailWriter struct {
	mu sync.Mutex
	b  []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 16<<10 {
		t.b = append(t.b[:0], t.b[len(t.b)-8<<10:]...)
	}
	return len(p), nil
}

func (t *tailWriter) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
