package e2e

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fastpacs/internal/orthanc"
)

// publicName is what the browser believes to be the archive's host.
const publicName = "pacs.test"

// TestBrowser opens a study in Chromium: the page and the archive are one origin
// behind fastpacs, HTTP/3 is found by Alt-Svc, on another UDP port than TCP's as
// behind a port mapping, and lost again when UDP stops to get through.
func TestBrowser(t *testing.T) {
	requireBrowser(t)
	a := theArchive(t)
	s := newStudy(t, 20, 103)
	if _, err := s.store(within(t, time.Minute), service(t, a.URL(), plainClient(t)), s.uids...); err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(viewerAndArchive(t, a))
	t.Cleanup(upstream.Close)

	t.Run("discovers", func(t *testing.T) {
		site := newSite(t, upstream.URL)
		b := site.open(t)
		if got := b.discover(t); got != "h2" {
			t.Errorf("the page itself came by %q, before HTTP/3 was known: want h2", got)
		}
		view := b.openStudy(t, s)
		if len(view.Protocols) != 1 || view.Protocols["h3"] != s.Len()+2 {
			t.Errorf("the study came by %v: want %d requests, all h3", view.Protocols, s.Len()+2)
		}
		b.screenshot(t, "slice.png")
		if n := site.fastpacs.metric(t, "fastpacs_http_requests_total", "protocol=h3"); n < float64(s.Len()+2) {
			t.Errorf("fastpacs counted %v requests over HTTP/3", n)
		}
	})
	// A browser that remembers HTTP/3 and has a connection open.
	t.Run("port closed", func(t *testing.T) {
		site := newSite(t, upstream.URL)
		b := site.open(t)
		b.discover(t)
		site.relay.close()
		fallBack(t, b, s)
	})
	// A browser that remembers HTTP/3, has no connection, and is on a network that
	// says nothing about dropping UDP.
	t.Run("packets dropped", func(t *testing.T) {
		site := newSite(t, upstream.URL, "FASTPACS_QUIC_IDLE_TIMEOUT=1s")
		b := site.open(t)
		b.discover(t)
		eventually(t, 15*time.Second, func() error {
			if n := site.fastpacs.metric(t, "fastpacs_connections", "protocol=h3"); n != 0 {
				return fmt.Errorf("%v HTTP/3 connections are open", n)
			}
			return nil
		})
		site.relay.dropping.Store(true)
		fallBack(t, b, s)
		if site.relay.dropped.Load() == 0 {
			t.Error("the browser did not try HTTP/3 again: the test shows nothing")
		}
	})
	// The administrator turns HTTP/3 off; browsers still remember it.
	t.Run("turned off", func(t *testing.T) {
		site := newSite(t, upstream.URL)
		b := site.open(t)
		b.discover(t)
		site.restart(t, "FASTPACS_HTTP3=false")
		fallBack(t, b, s)
	})
}

// fallBack holds the browser to open the study without HTTP/3.
func fallBack(t *testing.T, b *browser, s study) {
	t.Helper()
	view := b.openStudy(t, s)
	if view.Protocols["h2"] != s.Len()+2 || len(view.Protocols) != 1 {
		t.Errorf("the study came by %v: want %d requests, all h2", view.Protocols, s.Len()+2)
	}
}

// site is fastpacs as the browser sees it: TCP directly, UDP through a relay that
// Alt-Svc points to.
type site struct {
	fastpacs *fastpacs
	upstream string
	relay    *udpRelay
	settings []string
	host     string // host:port of TCP
}

func newSite(t *testing.T, upstream string, env ...string) *site {
	t.Helper()
	host := freePort(t)
	s := &site{upstream: upstream, relay: startUDPRelay(t, host), host: host}
	s.settings = append([]string{
		"FASTPACS_LISTEN=" + host,
		"FASTPACS_ADVERTISED_PORT=" + strconv.Itoa(s.relay.port()),
		"FASTPACS_STATE_DIR=" + t.TempDir(), // keeps the certificate over a restart
	}, env...)
	s.fastpacs = startFastpacs(t, upstream, s.settings...)
	return s
}

func (s *site) restart(t *testing.T, env ...string) {
	t.Helper()
	s.fastpacs.stop(t)
	s.fastpacs = startFastpacs(t, s.upstream, append(s.settings, env...)...)
}

// open starts a browser on the viewer page, later by discover.
func (s *site) open(t *testing.T) *browser {
	t.Helper()
	_, port, _ := strings.Cut(s.host, ":")
	return startBrowser(t, "https://"+publicName+":"+port, s.fastpacs.spki)
}

// viewerAndArchive serves the viewer page and, below /dicom-web, the archive.
func viewerAndArchive(t *testing.T, a *liveArchive) http.Handler {
	t.Helper()
	target, err := url.Parse(a.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	mux := http.NewServeMux()
	mux.Handle(orthanc.DICOMwebPath+"/", &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
	})
	for path, file := range map[string]string{
		"/{$}":                "web/index.html",
		"/viewer.js":          "web/viewer.js",
		"/dicomweb-client.js": "web/node_modules/dicomweb-client/build/dicomweb-client.js",
		"/dicomParser.js":     "web/node_modules/dicom-parser/dist/dicomParser.min.js",
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	}
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

// requireBrowser finds out that Chromium, node and its packages are there.
func requireBrowser(t *testing.T) {
	t.Helper()
	const setup = "make setup"
	if findChromium() == "" {
		missing(t, "Chromium", setup)
	}
	if _, err := exec.LookPath("node"); err != nil {
		missing(t, "node", setup)
	}
	if _, err := os.Stat("web/node_modules/playwright-core"); err != nil {
		missing(t, "the npm packages of internal/e2e/web", setup)
	}
}

func findChromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if file, err := exec.LookPath(name); err == nil {
			return file
		}
	}
	return ""
}

// browser is a headless Chromium with one page, driven by web/driver.js.
type browser struct {
	base   string // URL of the site, without a slash at its end
	in     io.WriteCloser
	out    *bufio.Reader
	exited chan struct{}
}

// startBrowser starts a browser that trusts the certificate with that public key
// and reaches nothing but loopback.
func startBrowser(t *testing.T, base, spki string) *browser {
	t.Helper()
	options, err := json.Marshal(map[string]any{
		"executable": findChromium(),
		"args": []string{
			"--no-sandbox", // tests may run as root
			"--enable-quic",
			"--ignore-certificate-errors-spki-list=" + spki,
			// QUIC with a self-signed certificate wants this switch, and takes it for
			// the whole host. Another port than ours is named, so that HTTP/3 is not
			// forced but has to be discovered.
			"--origin-to-force-quic-on=" + publicName + ":1",
			"--host-resolver-rules=MAP " + publicName + " 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
			"--disable-background-networking", "--disable-component-update", "--disable-sync",
			"--disable-default-apps", "--disable-domain-reliability", "--no-first-run", "--no-pings",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "web/driver.js", string(options))
	cmd.Env = append(cleanEnviron(), "HOME="+t.TempDir())
	cmd.Stderr = os.Stderr
	b := &browser{base: base, exited: make(chan struct{})}
	if b.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.out = bufio.NewReader(out)
	t.Cleanup(func() {
		_ = b.in.Close()
		timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the browser's driver: %v", err)
		}
	})
	return b
}

// do sends a command of driver.js and decodes the result into v.
func (b *browser) do(t *testing.T, command map[string]any, v any) {
	t.Helper()
	line, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("browser: %v: %v", command, err)
	}
	type reply struct {
		line []byte
		err  error
	}
	replies := make(chan reply, 1)
	go func() {
		line, err := b.out.ReadBytes('\n')
		replies <- reply{line, err}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 45*time.Second) // the driver's own limit is shorter
	defer cancel()
	var got reply
	select {
	case got = <-replies:
	case <-ctx.Done():
		t.Fatalf("browser: %v: no answer", command)
	}
	var answer struct {
		OK    json.RawMessage
		Error string
	}
	err = errors.Join(got.err, json.Unmarshal(got.line, &answer))
	if err == nil && answer.Error != "" {
		err = errors.New(answer.Error)
	}
	if err == nil && v != nil {
		err = json.Unmarshal(answer.OK, v)
	}
	if err != nil {
		t.Fatalf("browser: %v: %v", command, err)
	}
}

// discover opens the page and waits until the browser uses HTTP/3. It returns by
// what protocol the page came.
func (b *browser) discover(t *testing.T) (page string) {
	t.Helper()
	b.do(t, map[string]any{"do": "open", "url": b.base + "/"}, &page)
	eventually(t, 15*time.Second, func() error {
		var probe struct {
			Status   int
			Protocol string
		}
		b.do(t, map[string]any{"do": "call", "name": "probe"}, &probe)
		if probe.Status != http.StatusOK || probe.Protocol != "h3" {
			return fmt.Errorf("a request came by %q with status %d", probe.Protocol, probe.Status)
		}
		return nil
	})
	return page
}

// view is what the page says of an opened study.
type view struct {
	Digests map[string]string // hexadecimal SHA-256 by SOP Instance UID
	Drawn   struct{ Rows, Columns, Black, Grey, White int }
	// Protocols counts the requests by nextHopProtocol.
	Protocols map[string]int
}

// openStudy opens a study and holds every byte and the picture to be right.
func (b *browser) openStudy(t *testing.T, s study) view {
	t.Helper()
	var v view
	b.do(t, map[string]any{"do": "call", "name": "openStudy", "args": []string{s.PatientID()}}, &v)
	if len(v.Digests) != s.Len() {
		t.Errorf("the page has %d instances of %d", len(v.Digests), s.Len())
	}
	for uid, digest := range v.Digests {
		if sum := sha256.Sum256(s.files[uid]); digest != hex.EncodeToString(sum[:]) {
			t.Errorf("the page has other bytes of instance %s than were stored", uid)
		}
	}
	// Air, tissue and bone: a patient, not an empty or a broken picture.
	d, pixels := v.Drawn, 512*512
	if d.Rows != 512 || d.Columns != 512 || min(d.Black, d.Grey) < pixels/20 || d.White < pixels/1000 {
		t.Errorf("the page drew %+v", d)
	}
	return v
}

// screenshot keeps a picture of the page, in E2E_SCREENSHOTS if that is set.
func (b *browser) screenshot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("E2E_SCREENSHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	file := filepath.Join(dir, name)
	b.do(t, map[string]any{"do": "screenshot", "path": file}, nil)
	if st, err := os.Stat(file); err != nil || st.Size() < 10_000 {
		t.Errorf("the screenshot is empty: %v, %v", st, err)
	}
}
