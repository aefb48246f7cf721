package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fastpacs/internal/dicomweb"
	"fastpacs/proxy/quicnet"
)

// This is the part of fastlab wan that runs in the namespaces: fastlab starts
// itself there. An endpoint gets its job as JSON on stdin and ends when stdin
// does; a client prints what came of it as JSON on stdout.

// runWANEndpoint is the hidden subcommand.
func runWANEndpoint(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	roles := map[string]func(context.Context, wanJob, io.Writer) error{
		"origin": wanOrigin,
		"fetch":  wanFetch,
		"probe":  wanProbe,
		"get":    wanGet,
	}
	if len(args) != 1 || roles[args[0]] == nil {
		fmt.Fprintln(stderr, "fastlab wan-endpoint: is for `fastlab wan` alone")
		return exitUsage
	}
	if err := roles[args[0]](ctx, wanJob{json.NewDecoder(stdin), stdin}, stdout); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFailed
	}
	return exitOK
}

// wanJob is what an endpoint is to do.
type wanJob struct {
	*json.Decoder
	stdin io.Reader
}

// rest ends when the endpoint is to end.
func (j wanJob) rest() io.Reader { return io.MultiReader(j.Buffered(), j.stdin) }

// wanOriginJob: serve the slices in Dir by plain HTTP on Plain, as an archive
// does, and by TLS on each of Fronts; echo datagrams on Echo.
type wanOriginJob struct {
	Dir, Plain, Echo string
	Cert, Key        string // PEM files
	Fronts           []wanFront
}

// wanFront is an address of the TLS front and the congestion control of its
// connections.
type wanFront struct{ Addr, CC string }

const wanDICOMweb = "/dicom-web"

func wanOrigin(ctx context.Context, job wanJob, _ io.Writer) error {
	var j wanOriginJob
	if err := job.Decode(&j); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		_, _ = io.Copy(io.Discard, job.rest()) // an error is an end, too
		cancel(errWANEnd)
	}()
	handler, err := newWANArchive(j.Dir)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(j.Cert, j.Key)
	if err != nil {
		return err
	}
	echo, err := net.ListenPacket("udp4", j.Echo)
	if err != nil {
		return err
	}
	defer echo.Close()
	go wanEcho(echo)
	serve := func(l net.Listener, tlsConf *tls.Config) {
		s := &http.Server{Handler: handler, TLSConfig: tlsConf, ReadHeaderTimeout: 10 * time.Second}
		go func() {
			if tlsConf != nil {
				err = s.ServeTLS(l, "", "")
			} else {
				err = s.Serve(l)
			}
			cancel(err)
		}()
	}
	plain, err := net.Listen("tcp4", j.Plain)
	if err != nil {
		return err
	}
	serve(plain, nil)
	for _, f := range j.Fronts {
		l, err := listenWithCC(ctx, f)
		if err != nil {
			return err
		}
		serve(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	}
	<-ctx.Done()
	if err := context.Cause(ctx); !errors.Is(err, errWANEnd) {
		return err
	}
	return nil
}

var errWANEnd = errors.New("asked to end")

// listenWithCC listens by the kernel's TCP with that congestion control, which
// accepted connections inherit.
func listenWithCC(ctx context.Context, f wanFront) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		err2 := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, f.CC)
		})
		return errors.Join(err, err2)
	}}
	l, err := lc.Listen(ctx, "tcp4", f.Addr)
	if err != nil {
		return nil, fmt.Errorf("listening on %s with %s (is tcp_%s loaded?): %w", f.Addr, f.CC, f.CC, err)
	}
	return ccListener{l, f.CC}, nil
}

// ccListener sees that connections have the congestion control that they should.
type ccListener struct {
	net.Listener
	cc string
}

func (l ccListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	var got string
	err2 := raw.Control(func(fd uintptr) { got, err = unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION) })
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	if got != l.cc {
		return nil, fmt.Errorf("a connection to %s is sent by %s", l.Addr(), got)
	}
	return c, nil
}

// wanArchive answers WADO-RS for single instances, from memory.
type wanArchive map[string][]byte // by path below wanDICOMweb

const wanBoundary = "fastlab-wan-instance"

func newWANArchive(dir string) (wanArchive, error) {
	a := wanArchive{}
	err := filepath.WalkDir(dir, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(file)
		a[wanDICOMweb+strings.TrimPrefix(file, dir)] = slices.Concat(
			[]byte("--"+wanBoundary+"\r\nContent-Type: application/dicom\r\n\r\n"), b, []byte("\r\n--"+wanBoundary+"--\r\n"))
		return err
	})
	return a, err
}

func (a wanArchive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := a[r.URL.Path]
	if !ok {
		status := http.StatusNotFound
		if r.URL.Path == "/system" { // fastpacs asks whether the archive is there
			status = http.StatusNoContent
		}
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", `multipart/related; type="application/dicom"; boundary=`+wanBoundary)
	w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	_, _ = w.Write(body) // the client may go
}

// wanFetchJob: fetch every instance, as a browser does.
type wanFetchJob struct {
	Protocol, Host string // host:port
	Root           []byte // DER of the certificate to trust
	Parallel       int
	Study, Series  string
	Sums           map[string]string // hexadecimal SHA-256 by SOP Instance UID
	Limit          time.Duration
}

// wanFetchResult is what came of it. A fetch that was stopped has no error.
type wanFetchResult struct {
	Seconds     float64 // from before the first dial to the last byte
	Bytes       int64   // of instances
	Instances   int
	Connections int64 // TCP only
	Stopped     bool
}

func wanFetch(ctx context.Context, job wanJob, stdout io.Writer) error {
	var j wanFetchJob
	if err := job.Decode(&j); err != nil {
		return err
	}
	want, refs := originals{}, []dicomweb.Ref{}
	for uid, sum := range j.Sums {
		b, err := hex.DecodeString(sum)
		if err != nil || len(b) != sha256.Size {
			return fmt.Errorf("checksum %q: %w", sum, err)
		}
		want[uid] = [sha256.Size]byte(b)
		refs = append(refs, dicomweb.Ref{Study: j.Study, Series: j.Series, Instance: uid})
	}
	slices.SortFunc(refs, func(a, b dicomweb.Ref) int { return strings.Compare(a.Instance, b.Instance) })
	leaf, err := x509.ParseCertificate(j.Root)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	var result wanFetchResult
	var connections atomic.Int64
	transport, closeTransport, err := wanTransport(j.Protocol, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, &connections)
	if err != nil {
		return err
	}
	defer closeTransport()
	client, err := dicomweb.New("https://"+j.Host+wanDICOMweb, &http.Client{Transport: transport})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, j.Limit)
	defer cancel()
	var got fetched
	began := time.Now()
	err = fetchInstances(ctx, client, refs, j.Parallel, newUnseen(want), &got)
	result.Seconds = time.Since(began).Seconds()
	result.Stopped = errors.Is(ctx.Err(), context.DeadlineExceeded)
	result.Bytes, result.Instances = got.bytes.Load(), int(got.instances.Load())
	result.Connections = connections.Load()
	if err != nil && !result.Stopped {
		return err
	}
	return json.NewEncoder(stdout).Encode(result)
}

// browserConnections is how many HTTP/1.1 connections browsers open to a host.
const browserConnections = 6

// wanTransport returns a client that speaks one protocol only.
func wanTransport(protocol string, tlsConf *tls.Config, connections *atomic.Int64) (_ http.RoundTripper, closeIt func() error, err error) {
	if protocol == "h3" {
		t, err := quicnet.NewHTTPTransport(tlsConf, quicnet.DefaultConfig())
		if err != nil {
			return nil, nil, err
		}
		return t, t.Close, nil
	}
	dialer := net.Dialer{Timeout: 20 * time.Second}
	t := &http.Transport{
		TLSClientConfig:     tlsConf,
		TLSHandshakeTimeout: 20 * time.Second,
		DisableCompression:  true,
		Protocols:           new(http.Protocols),
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			connections.Add(1)
			return dialer.DialContext(ctx, network, addr)
		},
	}
	if protocol == "h2" {
		t.Protocols.SetHTTP2(true)
		t.MaxConnsPerHost = 1 // the requests of the start wait for the one connection
	} else {
		t.Protocols.SetHTTP1(true)
		t.MaxConnsPerHost, t.MaxIdleConnsPerHost = browserConnections, browserConnections
	}
	return t, func() error { t.CloseIdleConnections(); return nil }, nil
}

// wanGet prints what is at the URL of its job.
func wanGet(ctx context.Context, job wanJob, stdout io.Writer) error {
	var url string
	if err := job.Decode(&url); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(stdout, io.LimitReader(resp.Body, 4<<20))
	return err
}
