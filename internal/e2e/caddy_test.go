package e2e

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"fastpacs/internal/selfsign"
)

// caddy is the rival: a reverse proxy with HTTP/3 that sends with quic-go's own
// Reno.
type caddy struct {
	process
	host string
	leaf *x509.Certificate
}

// startCaddy runs Caddy in front of an upstream (host:port), and stops it with
// the test.
func startCaddy(tb testing.TB, upstream string) caddy {
	tb.Helper()
	file := findCaddy(tb)
	dir := tb.TempDir()
	cert, err := selfsign.New(time.Now(), time.Hour, "localhost", "127.0.0.1")
	if err != nil {
		tb.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			tb.Fatal(err)
		}
		return path
	}
	host := freePort(tb)
	_, port, _ := net.SplitHostPort(host)
	config := write("Caddyfile", fmt.Appendf(nil, `{
	admin off
	skip_install_trust
	auto_https disable_redirects
	storage file_system %[1]s
	log {
		output discard
	}
	servers {
		protocols h1 h2 h3
	}
}
https://localhost:%[2]s, https://127.0.0.1:%[2]s {
	bind 127.0.0.1
	tls %[3]s %[4]s
	reverse_proxy http://%[5]s
}
`, dir, port,
		write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})),
		write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		upstream))

	var output bytes.Buffer
	cmd := exec.Command(file, "run", "--adapter", "caddyfile", "--config", config)
	cmd.Env = append(cleanEnviron(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended matters only before it was ready
		close(exited)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		timer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		<-exited
	})
	eventually(tb, 20*time.Second, func() error {
		select {
		case <-exited:
			tb.Fatalf("caddy ended\n%s", output.String())
		default:
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c, err := new(net.Dialer).DialContext(ctx, "tcp", host)
		if err != nil {
			return err
		}
		return c.Close()
	})
	return caddy{process{cmd.Process.Pid}, host, cert.Leaf}
}

// findCaddy looks where `make bench` builds it, too.
func findCaddy(tb testing.TB) string {
	tb.Helper()
	if file, err := exec.LookPath("caddy"); err == nil {
		return file
	}
	places := []string{"../../bin/caddy"}
	if home, err := os.UserHomeDir(); err == nil {
		places = append(places, filepath.Join(home, "go", "bin", "caddy"))
	}
	for _, place := range places {
		if file, err := exec.LookPath(place); err == nil {
			return file
		}
	}
	missing(tb, "caddy", "scripts/setup.sh caddy")
	return ""
}

// freePort returns a host:port of loopback that nobody uses, TCP or UDP.
func freePort(tb testing.TB) string {
	tb.Helper()
	for range 20 {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		host := l.Addr().String()
		pc, err := net.ListenPacket("udp4", host)
		_ = l.Close()
		if err == nil {
			_ = pc.Close()
			return host
		}
	}
	tb.Fatal("no port is free for both TCP and UDP")
	return ""
}
