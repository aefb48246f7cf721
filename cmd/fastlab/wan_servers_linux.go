package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fastpacs/internal/lab/wan"
	"fastpacs/internal/selfsign"
)

const (
	wanOriginAddr = "127.0.0.1:8042" // in the server's namespace
	wanEchoPort   = 7
	wanCaddyPort  = 8446
	wanNgtcp2Port = 8460
)

// Ports and administration by congestion control.
var (
	wanFastpacsPorts = map[string]uint16{"improved": 8443, "static": 8444, "reno": 8445}
	wanFrontPorts    = map[string]uint16{"cubic": 8451, "bbr": 8452, "reno": 8453}
)

// wanServers are the servers of the comparison, in the server's namespace. All
// of them run for as long as the comparison does, and do nothing while another
// one is measured; ngtcp2's is started for each run.
type wanServers struct {
	ns       *wan.Namespace
	dir      string
	htdocs   string
	cert     *x509.Certificate
	certFile string
	keyFile  string
	ngtcp2   struct{ server, client string }

	origin   *wanChild
	children []*wanChild
}

// writeCertificate makes the certificate that all servers show.
func (s *wanServers) writeCertificate() error {
	c, err := selfsign.New(time.Now(), 24*time.Hour, s.ns.Addr().String())
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return err
	}
	s.cert = c.Leaf
	s.certFile, s.keyFile = filepath.Join(s.dir, "cert.pem"), filepath.Join(s.dir, "key.pem")
	return errors.Join(
		os.WriteFile(s.certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o600),
		os.WriteFile(s.keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600),
	)
}

func (s *wanServers) addr(port uint16) string { return fmt.Sprintf("%s:%d", s.ns.Addr(), port) }

// startOrigin starts the archive, the TCP fronts for those congestion controls,
// and the echo of the probe.
func (s *wanServers) startOrigin(ctx context.Context, ccs []string) error {
	job := wanOriginJob{Dir: s.htdocs, Plain: wanOriginAddr, Echo: s.addr(wanEchoPort), Cert: s.certFile, Key: s.keyFile}
	last := uint16(8042)
	for _, cc := range ccs {
		last = wanFrontPorts[cc]
		job.Fronts = append(job.Fronts, wanFront{s.addr(last), cc})
	}
	var err error
	if s.origin, err = startEndpoint(s.ns, "origin", job); err != nil {
		return err
	}
	s.children = append(s.children, s.origin)
	return s.origin.ready(ctx, "tcp", last) // it is the last to come
}

func (s *wanServers) startFastpacs(ctx context.Context, binary, law string) error {
	port := wanFastpacsPorts[law]
	cmd := exec.Command(binary, "serve")
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "FASTPACS_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env,
		"FASTPACS_CC="+law,
		"FASTPACS_LISTEN="+s.addr(port),
		"FASTPACS_UPSTREAM=http://"+wanOriginAddr,
		"FASTPACS_TLS_CERT="+s.certFile,
		"FASTPACS_TLS_KEY="+s.keyFile,
		"FASTPACS_STATE_DIR="+filepath.Join(s.dir, "state-"+law),
		"FASTPACS_ADMIN="+wanAdmin(law),
		"FASTPACS_ACCESS_LOG=off",
		"FASTPACS_DRAIN_TIMEOUT=1s",
	)
	return s.start(ctx, "fastpacs with "+law, cmd, port)
}

// wanAdmin is where a fastpacs tells its counters, in the server's namespace.
func wanAdmin(law string) string { return fmt.Sprintf("127.0.0.1:%d", wanFastpacsPorts[law]+1000) }

func (s *wanServers) startCaddy(ctx context.Context, binary string) error {
	home := filepath.Join(s.dir, "caddy")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	file := filepath.Join(home, "Caddyfile")
	config := fmt.Sprintf(`{
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
https://%[2]s:%[3]d {
	bind %[2]s
	tls %[4]s %[5]s
	reverse_proxy http://%[6]s
}
`, home, s.ns.Addr(), wanCaddyPort, s.certFile, s.keyFile, wanOriginAddr)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	cmd := exec.Command(binary, "run", "--adapter", "caddyfile", "--config", file)
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	return s.start(ctx, "caddy", cmd, wanCaddyPort)
}

// start starts a server and waits until it has its UDP port.
func (s *wanServers) start(ctx context.Context, name string, cmd *exec.Cmd, port uint16) error {
	c, err := startIn(s.ns, name, cmd)
	if err != nil {
		return err
	}
	s.children = append(s.children, c)
	return c.ready(ctx, "udp", port)
}

// startNgtcp2 starts ngtcp2's server for one run.
func (s *wanServers) startNgtcp2(ctx context.Context, cc string, parallel int) (*wanChild, error) {
	cmd := exec.Command(s.ngtcp2.server, "-q", "--htdocs="+s.htdocs, "--cc="+cc, fmt.Sprintf("--max-streams-bidi=%d", parallel),
		s.ns.Addr().String(), strconv.Itoa(wanNgtcp2Port), s.keyFile, s.certFile)
	c, err := startIn(s.ns, "gtlsserver with "+cc, cmd)
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx, "udp", wanNgtcp2Port); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// alive returns the error of the first server that has ended.
func (s *wanServers) alive() error {
	for _, c := range s.children {
		select {
		case <-c.exited:
			return c.failed()
		default:
		}
	}
	return nil
}

// stop stops the servers, the last one first.
func (s *wanServers) stop() error {
	var err error
	for i := len(s.children) - 1; i >= 0; i-- {
		err = errors.Join(err, s.children[i].stop())
	}
	s.children = nil
	return err
}

// lostPackets is how many packets a fastpacs has declared lost, which it sent
// again, since it was started.
func (s *wanServers) lostPackets(ctx context.Context, law string) (int64, error) {
	c, err := startEndpoint(s.ns, "get", "http://"+wanAdmin(law)+"/metrics")
	if err != nil {
		return 0, err
	}
	defer c.stop()
	if err := c.wait(ctx); err != nil {
		return 0, err
	}
	return metricSum(c.stdout.Bytes(), "fastpacs_quic_packets_lost_total")
}

// metricSum adds the values of a metric over its labels, in Prometheus' text
// format.
func metricSum(text []byte, name string) (int64, error) {
	sum, found := 0.0, false
	for line := range bytes.Lines(text) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok || len(rest) == 0 || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		fields := bytes.Fields(rest)
		v, err := strconv.ParseFloat(string(fields[len(fields)-1]), 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s: %w", name, err)
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("no metric %s", name)
	}
	return int64(sum), nil
}
