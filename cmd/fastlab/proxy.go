package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// proxyConfig says how to run a `fastpacs serve`.
type proxyConfig struct {
	binary    string
	upstream  string    // base URL of the archive
	stateDir  string    // keeps the certificate; also the log's place
	env       []string  // settings on top, NAME=value
	accessLog io.Writer // nil: none
}

// proxyServer is a running `fastpacs serve`.
type proxyServer struct {
	URL     string // https://host:port, without a slash at its end
	Metrics string // URL of /metrics

	Certificate *x509.Certificate
	SHA256      string // its fingerprints, as fastpacs logs them
	SPKI        string

	cmd    *exec.Cmd
	log    *childLog
	exited chan struct{}
	err    error
}

// startProxy runs fastpacs and waits until it is ready. The context bounds the
// start only.
func startProxy(ctx context.Context, cfg proxyConfig) (_ *proxyServer, err error) {
	p := &proxyServer{exited: make(chan struct{}), log: newChildLog("ready", "certificate in use")}
	p.cmd = exec.Command(cfg.binary, "serve")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "FASTPACS_") {
			p.cmd.Env = append(p.cmd.Env, e)
		}
	}
	p.cmd.Env = append(p.cmd.Env,
		"FASTPACS_UPSTREAM="+cfg.upstream,
		"FASTPACS_STATE_DIR="+cfg.stateDir,
		"FASTPACS_LOG_FORMAT=json",
	)
	if cfg.accessLog == nil {
		p.cmd.Env = append(p.cmd.Env, "FASTPACS_ACCESS_LOG=off")
	}
	p.cmd.Env = append(p.cmd.Env, cfg.env...)
	p.cmd.Stdout, p.cmd.Stderr = cfg.accessLog, p.log
	// Ctrl-C at the terminal is for us; we stop the children in order.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting fastpacs: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("starting fastpacs: %w", err), p.Stop())
		}
	}()
	timer := time.NewTimer(20 * time.Second)
	defer timer.Stop()
	select {
	case <-p.log.all:
	case <-p.exited:
		return nil, fmt.Errorf("it ended before it was ready: %v; its log:\n%s", p.err, p.log.text())
	case <-timer.C:
		return nil, fmt.Errorf("not ready after 20s; its log:\n%s", p.log.text())
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var ready struct{ URL, Metrics string }
	var cert struct {
		SHA256 string `json:"sha256"`
		SPKI   string `json:"spki_sha256"`
	}
	if err := errors.Join(p.log.record("ready", &ready), p.log.record("certificate in use", &cert)); err != nil {
		return nil, err
	}
	p.URL, p.Metrics = strings.TrimSuffix(ready.URL, "/"), ready.Metrics
	p.SHA256, p.SPKI = cert.SHA256, cert.SPKI
	p.Certificate, err = leafOf(ctx, p.Host())
	return p, err
}

// leafOf returns the certificate of our own child. It is taken on first sight:
// nobody else listens at an address that the child just said it listens at.
func leafOf(ctx context.Context, host string) (*x509.Certificate, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, fmt.Errorf("fetching the certificate of %s: %w", host, err)
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// Host is the host:port of the proxy, for TCP and UDP.
func (p *proxyServer) Host() string { return strings.TrimPrefix(p.URL, "https://") }

// TLS returns a client configuration that trusts the proxy's certificate only.
func (p *proxyServer) TLS() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(p.Certificate)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}
}

// Stop lets the proxy drain for a moment and waits for its end. One that had
// ended before is an error.
func (p *proxyServer) Stop() error {
	select {
	case <-p.exited:
		return fmt.Errorf("fastpacs had ended by itself: %v; its log:\n%s", p.err, p.log.text())
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it is gone
	for _, wait := range []time.Duration{10 * time.Second, 5 * time.Second} {
		timer := time.NewTimer(wait)
		select {
		case <-p.exited:
			timer.Stop()
			return nil
		case <-timer.C:
			_ = p.cmd.Process.Signal(syscall.SIGTERM) // a second one stops it at once
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
	return errors.New("fastpacs did not stop when asked to, and was killed")
}

// childLog takes the log of a child, one JSON object a line: it keeps the end of
// it and the records that are waited for.
type childLog struct {
	all chan struct{} // closed when all awaited records are there

	mu      sync.Mutex
	partial []byte
	tail    []byte
	awaited map[string][]byte // message to record, nil until it comes
	missing int
}

const keptLog = 32 << 10

func newChildLog(messages ...string) *childLog {
	l := &childLog{all: make(chan struct{}), awaited: map[string][]byte{}, missing: len(messages)}
	for _, m := range messages {
		l.awaited[m] = nil
	}
	return l
}

func (l *childLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, p...)
	if len(l.tail) > 2*keptLog {
		l.tail = append(l.tail[:0], l.tail[len(l.tail)-keptLog:]...)
	}
	if l.missing == 0 {
		return len(p), nil
	}
	l.partial = append(l.partial, p...)
	for l.missing > 0 {
		line, rest, ok := bytes.Cut(l.partial, []byte("\n"))
		if !ok {
			break
		}
		l.partial = rest
		var record struct{ Msg string }
		if json.Unmarshal(line, &record) != nil {
			continue // not of the logger: a panic
		}
		if was, ok := l.awaited[record.Msg]; ok && was == nil {
			l.awaited[record.Msg] = bytes.Clone(line)
			if l.missing--; l.missing == 0 {
				close(l.all)
			}
		}
	}
	return len(p), nil
}

// record decodes an awaited record.
func (l *childLog) record(message string, v any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := json.Unmarshal(l.awaited[message], v); err != nil {
		return fmt.Errorf("its log record %q: %w", message, err)
	}
	return nil
}

// text is the end of the log.
func (l *childLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.tail))
}

// labStateDir is where `fastlab run` keeps fastpacs' certificate, so that a
// browser that was told to trust it does so the next time.
func labStateDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("where to keep the certificate: %w", err)
	}
	return filepath.Join(cache, "fastpacs-lab"), nil
}
