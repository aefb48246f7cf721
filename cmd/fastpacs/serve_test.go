package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/internal/selfsign"
	"fastpacs/proxy/quicnet"
)

// patience bounds every wait for the child.
const patience = 20 * time.Second

// child is a running `fastpacs serve`.
type child struct {
	t       *testing.T
	cmd     *exec.Cmd
	log     <-chan map[string]any // messages on standard error; closed at the end
	host    string                // host:port of HTTPS and HTTP/3
	metrics string                // URL
}

// start runs fastpacs serve on free ports of loopback, and waits until it is
// ready.
func start(t *testing.T, upstream string, environ ...string) *child {
	t.Helper()
	c := launch(t, append([]string{
		"FASTPACS_UPSTREAM=" + upstream,
		"FASTPACS_LISTEN=127.0.0.1:0",
		"FASTPACS_ADMIN=127.0.0.1:0",
		"FASTPACS_STATE_DIR=" + t.TempDir(),
	}, environ...)...)
	ready := c.await("ready")
	u, err := url.Parse(ready["url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	c.host, c.metrics = u.Host, ready["metrics"].(string)
	return c
}

// launch runs fastpacs serve with just environ.
func launch(t *testing.T, environ ...string) *child {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], "serve")
	cmd.Env = append(environ, beFastpacs+"=1", "FASTPACS_LOG_FORMAT=json", "FASTPACS_LOG_LEVEL=DEBUG")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := make(chan map[string]any, 1000)
	go func() {
		defer close(log)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			message := make(map[string]any)
			if err := json.Unmarshal(lines.Bytes(), &message); err != nil {
				message["msg"] = lines.Text()
			}
			log <- message
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // gone already, if all went well
		for range log {
		}
		_ = cmd.Wait()
	})
	return &child{t: t, cmd: cmd, log: log}
}

// await reads the log up to a message.
func (c *child) await(message string) map[string]any {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case m, ok := <-c.log:
			if !ok {
				c.t.Fatalf("fastpacs ended without saying %q", message)
			}
			c.t.Logf("fastpacs: %v", m)
			if m["msg"] == message {
				return m
			}
		case <-deadline:
			c.t.Fatalf("fastpacs did not say %q in %v", message, patience)
		}
	}
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// status waits for the end and returns the exit status.
func (c *child) status() int {
	c.t.Helper()
	for m := range c.log { // bounded by the context of the command
		c.t.Logf("fastpacs: %v", m)
	}
	err := c.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return 0
}

// client returns an HTTP/1.1 and 2 client that takes any certificate and keeps
// no connection.
func client(t *testing.T) *http.Client {
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		ForceAttemptHTTP2: true,
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func get(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// pacs is an upstream that says which path it was asked for; /slow begins an
// answer and ends it when the test says so.
type pacs struct {
	*httptest.Server
	slow   chan struct{} // gets a value when the answer to /slow has begun
	finish chan struct{} // closed: the answer to /slow ends
}

func newPACS(t *testing.T) *pacs {
	p := &pacs{slow: make(chan struct{}, 1), finish: make(chan struct{})}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/slow" {
			_, _ = io.WriteString(w, "PACS "+r.URL.Path)
			return
		}
		_, _ = io.WriteString(w, "begin ")
		w.(http.Flusher).Flush()
		p.slow <- struct{}{}
		select {
		case <-p.finish:
			_, _ = io.WriteString(w, "end")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func TestServe(t *testing.T) {
	c := start(t, newPACS(t).URL)

	resp, body := get(t, client(t), "https://"+c.host+"/studies")
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK || body != "PACS /studies" {
		t.Errorf("over TCP: %s %s, body %q", resp.Proto, resp.Status, body)
	}
	_, port, _ := net.SplitHostPort(c.host)
	if got, want := resp.Header.Get("Alt-Svc"), `h3=":`+port+`"; ma=300`; got != want {
		t.Errorf("Alt-Svc is %q, want %q", got, want)
	}

	h3, err := quicnet.NewHTTPTransport(&tls.Config{InsecureSkipVerify: true}, quicnet.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	resp, body = get(t, &http.Client{Transport: h3, Timeout: patience}, "https://"+c.host+"/studies")
	if resp.ProtoMajor != 3 || resp.StatusCode != http.StatusOK || body != "PACS /studies" {
		t.Errorf("over UDP: %s %s, body %q", resp.Proto, resp.Status, body)
	}
	if err := h3.Close(); err != nil {
		t.Error(err)
	}

	_, metrics := get(t, client(t), c.metrics)
	for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", "fastpacs_"} {
		if !strings.Contains(metrics, "\n"+name) {
			t.Errorf("the metrics hold no %s", name)
		}
	}
	if resp, body := get(t, client(t), strings.Replace(c.metrics, "/metrics", "/readyz", 1)); resp.StatusCode != http.StatusOK {
		t.Errorf("readyz: %s %s", resp.Status, body)
	}

	c.signal(syscall.SIGTERM)
	if status := c.status(); status != exitOK {
		t.Errorf("status %d after SIGTERM, want %d", status, exitOK)
	}
}

// begin asks for /slow and returns once the answer has begun, with the channel
// on which its body arrives; the error is of reading it.
func begin(t *testing.T, c *child, p *pacs) <-chan answer {
	t.Helper()
	resp, err := client(t).Get("https://" + c.host + "/slow")
	if err != nil {
		t.Fatal(err)
	}
	answers := make(chan answer, 1)
	go func() {
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		answers <- answer{string(body), err}
	}()
	<-p.slow
	return answers
}

type answer struct {
	body string
	err  error
}

func TestSIGTERMDrains(t *testing.T) {
	p := newPACS(t)
	c := start(t, p.URL)
	answers := begin(t, c, p)
	c.signal(syscall.SIGTERM)
	c.await("draining")
	close(p.finish)
	if a := <-answers; a.err != nil || a.body != "begin end" {
		t.Errorf("the transfer under way gave %q, %v", a.body, a.err)
	}
	if status := c.status(); status != exitOK {
		t.Errorf("status %d, want %d", status, exitOK)
	}
}

func TestSecondSignalStopsAtOnce(t *testing.T) {
	p := newPACS(t)
	c := start(t, p.URL)
	answers := begin(t, c, p)
	c.signal(os.Interrupt)
	c.await("draining")
	c.signal(syscall.SIGTERM)
	c.await("stopped at once: transfers were cut")
	if status := c.status(); status != exitFailed {
		t.Errorf("status %d, want %d", status, exitFailed)
	}
	if a := <-answers; a.err == nil {
		t.Errorf("the transfer that was cut gave a clean end: %q", a.body)
	}
}

func TestDrainTimeout(t *testing.T) {
	p := newPACS(t)
	c := start(t, p.URL, "FASTPACS_DRAIN_TIMEOUT=50ms")
	answers := begin(t, c, p)
	c.signal(syscall.SIGTERM)
	if a := <-answers; a.err == nil {
		t.Errorf("the transfer that was cut gave a clean end: %q", a.body)
	}
	if status := c.status(); status != exitOK {
		t.Errorf("status %d, want %d", status, exitOK)
	}
}

// writeCertificate puts a new certificate for host into dir, and returns it.
func writeCertificate(t *testing.T, dir, host string) tls.Certificate {
	t.Helper()
	cert, err := selfsign.New(time.Now(), time.Hour, host)
	if err != nil {
		t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		"tls.key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert
}

// handshake returns an error unless the server at host shows cert.
func handshake(host string, cert tls.Certificate) error {
	dialer := &net.Dialer{Timeout: patience}
	conn, err := tls.DialWithDialer(dialer, "tcp", host, &tls.Config{
		RootCAs: selfsign.Pool(cert), ServerName: cert.Leaf.DNSNames[0],
	})
	if err != nil {
		return err
	}
	return conn.Close()
}

func TestSIGHUPReloadsTheCertificate(t *testing.T) {
	dir := t.TempDir()
	first := writeCertificate(t, dir, "first.example")
	c := start(t, newPACS(t).URL,
		"FASTPACS_TLS_CERT="+filepath.Join(dir, "tls.crt"), "FASTPACS_TLS_KEY="+filepath.Join(dir, "tls.key"))
	if err := handshake(c.host, first); err != nil {
		t.Fatal(err)
	}

	second := writeCertificate(t, dir, "second.example")
	c.signal(syscall.SIGHUP)
	c.await("certificate in use")
	if err := handshake(c.host, second); err != nil {
		t.Errorf("after SIGHUP: %v", err)
	}

	if err := os.WriteFile(filepath.Join(dir, "tls.crt"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.signal(syscall.SIGHUP)
	c.await("certificate not reloaded")
	if err := handshake(c.host, second); err != nil {
		t.Errorf("after a SIGHUP with a broken file: %v", err)
	}
	c.signal(syscall.SIGTERM)
	if status := c.status(); status != exitOK {
		t.Errorf("status %d, want %d", status, exitOK)
	}
}

func TestUnknownQUICGoNeedsReno(t *testing.T) {
	hook := errors.New("unknown layout of quic-go")
	for _, c := range []struct {
		law     string
		http3   bool
		hook    error
		refused bool
	}{
		{"improved", true, hook, true},
		{"static", true, hook, true},
		{"reno", true, hook, false},
		{"improved", false, hook, false},
		{"improved", true, nil, false},
	} {
		err := config{CC: cc.Law(c.law), HTTP3: c.http3}.senderError(c.hook)
		if (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
		if c.refused && (!errors.Is(err, hook) || !strings.Contains(err.Error(), "FASTPACS_CC=reno")) {
			t.Errorf("%+v: the error does not tell the way out: %v", c, err)
		}
	}
}

func TestFailures(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	taken := busy.Addr().String()

	t.Run("port in use", func(t *testing.T) {
		c := launch(t, someUpstream, "FASTPACS_STATE_DIR="+t.TempDir(), "FASTPACS_LISTEN="+taken, "FASTPACS_ADMIN=off")
		m := c.await("failed")
		if why, _ := m["error"].(string); !strings.Contains(why, taken) || !strings.Contains(why, "address already in use") {
			t.Errorf("the error is %q", why)
		}
		if what, _ := m["hint"].(string); !strings.Contains(what, "FASTPACS_LISTEN") {
			t.Errorf("the hint is %q", what)
		}
		if status := c.status(); status != exitFailed {
			t.Errorf("status %d, want %d", status, exitFailed)
		}
	})
	t.Run("no certificate", func(t *testing.T) {
		c := launch(t, someUpstream, "FASTPACS_LISTEN=127.0.0.1:0", "FASTPACS_ADMIN=off",
			"FASTPACS_TLS_CERT=/nowhere/tls.crt", "FASTPACS_TLS_KEY=/nowhere/tls.key")
		if why, _ := c.await("cannot start")["error"].(string); !strings.Contains(why, "/nowhere/tls.crt") {
			t.Errorf("the error is %q", why)
		}
		if status := c.status(); status != exitUsage {
			t.Errorf("status %d, want %d", status, exitUsage)
		}
	})
	t.Run("wrong configuration", func(t *testing.T) {
		c := launch(t, someUpstream, "FASTPACS_DRAIN_TIMEOUT=2h")
		c.await("fastpacs: wrong configuration:")
		c.await(`  FASTPACS_DRAIN_TIMEOUT="2h": must be from 0s to 1h`)
		if status := c.status(); status != exitUsage {
			t.Errorf("status %d, want %d", status, exitUsage)
		}
	})
}
