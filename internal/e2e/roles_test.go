package e2e

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/internal/selfsign"
	"fastpacs/proxy/quicnet"
)

// The test binary plays other servers as child processes, so that each has a
// heap and a scheduler of its own, as in life. Such a child reads nothing but
// its environment, writes a line of JSON when it serves, and ends with its
// standard input.
const (
	roleVariable = "E2E_ROLE"
	roleUpstream = "upstream" // an archive over HTTP/1.1 that has all in memory
	roleBare     = "bare"     // the same over HTTP/3: quic-go, its own Reno, no proxy
)

// served is what a child says.
type served struct {
	Addr string // host:port
	Cert []byte // PEM; of HTTP/3 only
}

// play is the main function of a child.
func play(role string) int {
	if err := playRole(role); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: as", role+":", err)
		return 1
	}
	return 0
}

func playRole(role string) error {
	failed := make(chan error, 1)
	var s served
	switch role {
	case roleUpstream:
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.Addr = l.Addr().String()
		server := &http.Server{Handler: memoryArchive(), ReadHeaderTimeout: 10 * time.Second}
		go func() { failed <- server.Serve(l) }()
	case roleBare:
		cert, err := selfsign.New(time.Now(), time.Hour, "127.0.0.1")
		if err != nil {
			return err
		}
		pc, err := quicnet.ListenUDP("127.0.0.1:0")
		if err != nil {
			return err
		}
		s.Addr = pc.LocalAddr().String()
		s.Cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
		cfg := quicnet.DefaultConfig()
		cfg.Law = cc.LawReno
		server := &quicnet.HTTPServer{
			Handler: memoryArchive(),
			TLS:     &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13},
			Config:  cfg,
		}
		go func() { failed <- server.Serve(pc) }()
	default:
		return errors.New("no such role")
	}
	if err := json.NewEncoder(os.Stdout).Encode(s); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case err := <-failed:
		return err
	case err := <-ended:
		return err
	}
}

// memoryArchive answers
//
//	GET  /bytes/N  N bytes, with Content-Length
//	POST /sink     how many bytes the body had
//	GET  /small    64 bytes
func memoryArchive() http.Handler {
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * 7)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /bytes/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
		if err != nil || n < 0 {
			http.Error(w, "not a number of bytes", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/dicom")
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		for n > 0 {
			m, err := w.Write(block[:min(n, int64(len(block)))])
			if err != nil {
				return
			}
			n -= int64(m)
		}
	})
	mux.HandleFunc("POST /sink", func(w http.ResponseWriter, r *http.Request) {
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r.Body, make([]byte, 256<<10))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, n)
	})
	mux.HandleFunc("GET /small", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(block[:64])
	})
	mux.HandleFunc("GET /system", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// child is a server that this test binary plays in a process of its own.
type child struct {
	process
	addr string // host:port
	leaf *x509.Certificate
}

// startChild starts a child, which ends with the test.
func startChild(tb testing.TB, role string) child {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(cleanEnviron(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		timer := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("child %s: %v", role, err)
		}
	})
	var s served
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s)
	}
	if err != nil {
		tb.Fatalf("child %s: %v", role, err)
	}
	c := child{process{cmd.Process.Pid}, s.Addr, nil}
	if s.Cert != nil {
		block, _ := pem.Decode(s.Cert)
		if c.leaf, err = x509.ParseCertificate(block.Bytes); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}
