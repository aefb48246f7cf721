package proxy

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// echo answers with what it saw of a request.
func echo(w http.ResponseWriter, r *http.Request) {
	n, err := io.Copy(io.Discard, r.Body)
	fmt.Fprintf(w, "%s %s HTTP/1.1\nHost: %s\nLength: %d\nTE: %v\nRead: %d %v\n", r.Method, r.RequestURI, r.Host, r.ContentLength, r.TransferEncoding, n, err)
	_ = r.Header.Write(w)
}

func wantLines(t *testing.T, got string, want ...string) {
	t.Helper()
	lines := strings.Split(strings.ReplaceAll(got, "\r\n", "\n"), "\n")
	for _, w := range want {
		if !slices.Contains(lines, w) {
			t.Errorf("no line %q in:\n%s", w, got)
		}
	}
}

func wantNoHeader(t *testing.T, got string, names ...string) {
	t.Helper()
	for _, n := range names {
		if strings.Contains(strings.ToLower("\n"+got), "\n"+strings.ToLower(n)+":") {
			t.Errorf("header %s in:\n%s", n, got)
		}
	}
}

func TestW01HostIsKept(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		a := f.do(t, "GET", "/studies", nil, http.Header{"Host": {"pacs.example:8443"}})
		wantLines(t, a.body, "Host: pacs.example:8443", "Forwarded: for=127.0.0.1;proto=https",
			"X-Forwarded-Host: pacs.example:8443", "X-Forwarded-Port: 8443", "X-Forwarded-Proto: https", "X-Forwarded-For: 127.0.0.1")
	})
}

func TestG09UpstreamHostOnlyIfConfigured(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), func(c *HandlerConfig) { c.UpstreamHost = "orthanc:8042" })
	a := newHTTP1Front(t, h).do(t, "GET", "/", nil, http.Header{"Host": {"pacs.example"}})
	wantLines(t, a.body, "Host: orthanc:8042", "X-Forwarded-Host: pacs.example")
}

func TestW03PathPrefix(t *testing.T) {
	for _, base := range []string{"/orthanc", "/orthanc/"} {
		h := newHandlerUnderTest(t, newTestUpstream(t, echo)+base, nil)
		a := newHTTP1Front(t, h).get(t, "/dicom-web/studies?limit=1")
		wantLines(t, a.body, "GET /orthanc/dicom-web/studies?limit=1 HTTP/1.1")
	}
}

func TestW05SemicolonQuery(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for _, target := range []string{
			"/studies/1?accept=multipart/related;type=application/dicom&limit=1",
			`/studies/1?accept=multipart/related;type="application/dicom"`,
			"/studies?PatientName=M%C3%BCller%5E*&x=%zz&x",
			"/studies?",
		} {
			r := newRawURLRequest(t, f, target)
			res, err := f.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			wantLines(t, string(b), "GET "+target+" HTTP/1.1")
		}
	})
}

// newRawURLRequest makes a request whose path and query go out as written.
func newRawURLRequest(t *testing.T, f front, target string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", f.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	path, query, ok := strings.Cut(target, "?")
	r.URL.Opaque, r.URL.RawQuery, r.URL.ForceQuery = "//"+r.URL.Host+path, query, ok
	if f.name != "h1" {
		r.URL.Opaque = path
	}
	return r
}

func TestW21PathAsSent(t *testing.T) {
	for _, base := range []string{"", "/pacs"} {
		h := newHandlerUnderTest(t, newTestUpstream(t, echo)+base, nil)
		for _, path := range []string{"/a%2Fb", "/a%2fb/c%20d", "//studies///1", "/a/../b", "/./a", "/%E4%B8%AD", "/a;v=1/b", "/a%252F", "/"} {
			c := newRawClient(t, h)
			c.send(t, "GET "+path+" HTTP/1.1\r\nHost: pacs.test\r\nConnection: close\r\n\r\n")
			b, err := io.ReadAll(c.r)
			if err != nil {
				t.Fatal(err)
			}
			wantLines(t, string(b), "GET "+base+path+" HTTP/1.1")
		}
	}
}

func TestW06W09ContentTypeAndStatusPassUnchanged(t *testing.T) {
	const odd = `multipart/related;type=application/dicom ;BOUNDARY="a b";transfer-syntax=*`
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != odd || r.Header.Get("Accept") != odd {
			t.Errorf("upstream got %q", r.Header)
		}
		switch r.URL.Path {
		case "/none":
			w.Header()["Content-Type"] = nil
		default:
			w.Header()["Content-Type"] = []string{odd}
		}
		w.Header().Set("Warning", `299 - "some instances failed"`)
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, "<html>")
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for path, want := range map[string][]string{"/some": {odd}, "/none": nil} {
			a := f.do(t, "POST", path, strings.NewReader("x"), http.Header{"Content-Type": {odd}, "Accept": {odd}})
			if a.StatusCode != http.StatusConflict || !slices.Equal(a.Header["Content-Type"], want) || a.Header.Get("Warning") == "" {
				t.Errorf("%s: %d %q", path, a.StatusCode, a.Header)
			}
		}
	})
}

func TestW10NoEncodingOfOurOwn(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, "[]")
	_ = z.Close()
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if got, want := r.Header.Get("Accept-Encoding"), r.URL.Query().Get("want"); got != want {
			t.Errorf("upstream was asked for encoding %q, want %q", got, want)
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zipped.Bytes())
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for _, encoding := range []string{"", "gzip"} {
			header := http.Header{}
			if encoding != "" {
				header.Set("Accept-Encoding", encoding)
			}
			a := f.do(t, "GET", "/?want="+encoding, nil, header)
			if a.body != zipped.String() || a.Header.Get("Content-Encoding") != "gzip" || a.ContentLength != int64(zipped.Len()) {
				t.Errorf("body was changed: %q %d bytes", a.Header, len(a.body))
			}
		}
	})
}

func TestW11RequestBodyIsNotEncoded(t *testing.T) {
	type request struct {
		encoding string
		body     []byte
	}
	got := make(chan request, 1)
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- request{r.Header.Get("Content-Encoding"), b}
	}), nil)
	sent := strings.Repeat("DICM", 100_000)
	eachFront(t, h, func(t *testing.T, f front) {
		for _, encoding := range []string{"", "gzip"} {
			header := http.Header{"Content-Type": {"application/dicom"}}
			if encoding != "" {
				header.Set("Content-Encoding", encoding) // passed as the client says it is
			}
			f.do(t, "POST", "/studies", strings.NewReader(sent), header)
			if r := receive(t, got); r.encoding != encoding || string(r.body) != sent {
				t.Errorf("encoding %q, %d bytes; want %q, %d", r.encoding, len(r.body), encoding, len(sent))
			}
		}
	})
}

func TestW13RequestBodyLimit(t *testing.T) {
	upstreamRead := make(chan error, 1)
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		upstreamRead <- err
	}), func(c *HandlerConfig) { c.MaxRequestBody = 100_000 })
	eachFront(t, h, func(t *testing.T, f front) {
		for _, tt := range []struct {
			size   int
			length bool
			want   int
			called bool
		}{
			{100_000, true, 200, true},
			{100_000, false, 200, true},
			{100_001, true, 413, false},
			{100_001, false, 413, true},
			{300_000, false, 413, true},
		} {
			var body io.Reader = strings.NewReader(strings.Repeat("x", tt.size))
			if !tt.length {
				body = io.MultiReader(body)
			}
			a := f.do(t, "POST", "/studies", body, nil)
			if a.StatusCode != tt.want {
				t.Errorf("%+v: status %d", tt, a.StatusCode)
			}
			if tt.want == 413 {
				h.wantOutcome(t, OutcomeRefused)
				if f.name == "h1" && !a.Close {
					t.Errorf("%+v: no Connection: close", tt)
				}
			} else {
				h.wantOutcome(t, OutcomeComplete)
			}
			if tt.called {
				if err := receive(t, upstreamRead); (err == nil) != (tt.want == 200) {
					t.Errorf("%+v: upstream read the body with %v", tt, err)
				}
			}
		}
	})
}

func TestW13LargestLimit(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), func(c *HandlerConfig) { c.MaxRequestBody = math.MaxInt64 })
	a := newHTTP1Front(t, h).do(t, "POST", "/", strings.NewReader("0123456789"), nil)
	wantLines(t, a.body, "Read: 10 <nil>")
}

// A body that may not pass is refused before it is asked for.
func TestW13LimitBeforeContinue(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), func(c *HandlerConfig) { c.MaxRequestBody = 10 })
	c := newRawClient(t, h)
	c.send(t, "POST / HTTP/1.1\r\nHost: pacs.test\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n")
	head := c.readHead(t)
	if !strings.HasPrefix(head, "HTTP/1.1 413 ") || !strings.Contains(head, "Connection: close\r\n") {
		t.Errorf("%q", head)
	}
}

func TestW16ContentLengthIsKept(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		a := f.do(t, "POST", "/", strings.NewReader("0123456789"), nil)
		wantLines(t, a.body, "Length: 10", "TE: []", "Read: 10 <nil>")
		a = f.do(t, "POST", "/", io.MultiReader(strings.NewReader("0123456789")), nil)
		wantLines(t, a.body, "Length: -1", "TE: [chunked]", "Read: 10 <nil>")
		a = f.do(t, "GET", "/", nil, nil)
		if a.ContentLength != int64(len(a.body)) {
			t.Errorf("length of the answer is %d, announced %d", len(a.body), a.ContentLength)
		}
	})
}

func TestQ14BodilessRequest(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Saw", fmt.Sprintf("%s %d %v", r.Method, r.ContentLength, r.TransferEncoding))
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for _, method := range []string{"GET", "HEAD", "DELETE", "OPTIONS"} {
			a := f.do(t, method, "/", nil, nil)
			if got, want := a.Header.Get("Saw"), method+" 0 []"; got != want {
				t.Errorf("upstream saw %q, want %q", got, want)
			}
		}
		a := f.do(t, "GET", "/", io.MultiReader(strings.NewReader("{}")), nil)
		if got := a.Header.Get("Saw"); got != "GET -1 [chunked]" {
			t.Errorf("GET with a body: upstream saw %q", got)
		}
	})
}

func TestW18CORS(t *testing.T) {
	calls := make(chan string, 10)
	up := newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		calls <- r.Method
		w.Header().Set("Access-Control-Allow-Origin", "http://upstream.example")
		if r.Method == "OPTIONS" {
			w.WriteHeader(http.StatusNotFound)
		}
	})
	preflight := http.Header{"Origin": {"https://viewer.example"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization, content-type"}}

	t.Run("not configured", func(t *testing.T) {
		eachFront(t, newHandlerUnderTest(t, up, nil), func(t *testing.T, f front) {
			a := f.do(t, "OPTIONS", "/studies", nil, preflight)
			if a.StatusCode != 404 || receive(t, calls) != "OPTIONS" || !slices.Equal(a.Header["Access-Control-Allow-Origin"], []string{"http://upstream.example"}) {
				t.Errorf("%d %q", a.StatusCode, a.Header)
			}
		})
	})
	t.Run("configured", func(t *testing.T) {
		h := newHandlerUnderTest(t, up, func(c *HandlerConfig) {
			c.CORSOrigins, c.CORSCredentials = []string{"https://viewer.example"}, true
		})
		eachFront(t, h, func(t *testing.T, f front) {
			a := f.do(t, "OPTIONS", "/studies", nil, preflight)
			if a.StatusCode != 204 || len(calls) != 0 ||
				!slices.Equal(a.Header["Access-Control-Allow-Origin"], []string{"https://viewer.example"}) ||
				a.Header.Get("Access-Control-Allow-Methods") != "POST" ||
				a.Header.Get("Access-Control-Allow-Headers") != "authorization, content-type" ||
				a.Header.Get("Access-Control-Allow-Credentials") != "true" {
				t.Errorf("preflight: %d %q", a.StatusCode, a.Header)
			}
			a = f.do(t, "GET", "/studies", nil, http.Header{"Origin": {"https://viewer.example"}})
			receive(t, calls)
			if !slices.Equal(a.Header["Access-Control-Allow-Origin"], []string{"https://viewer.example"}) || a.Header.Get("Vary") != "Origin" {
				t.Errorf("GET: %q", a.Header)
			}
			foreign := preflight.Clone()
			foreign.Set("Origin", "https://evil.example")
			a = f.do(t, "OPTIONS", "/studies", nil, foreign)
			receive(t, calls)
			if a.StatusCode != 404 || a.Header.Get("Access-Control-Allow-Origin") == "https://evil.example" {
				t.Errorf("foreign preflight: %d %q", a.StatusCode, a.Header)
			}
			a = f.do(t, "OPTIONS", "/studies", nil, nil) // not a preflight
			receive(t, calls)
			if a.StatusCode != 404 {
				t.Errorf("OPTIONS: %d", a.StatusCode)
			}
		})
	})
	t.Run("any origin", func(t *testing.T) {
		h := newHandlerUnderTest(t, up, func(c *HandlerConfig) { c.CORSOrigins = []string{"*"} })
		a := newHTTP1Front(t, h).do(t, "GET", "/", nil, http.Header{"Origin": {"https://x.example"}})
		receive(t, calls)
		if !slices.Equal(a.Header["Access-Control-Allow-Origin"], []string{"*"}) {
			t.Errorf("%q", a.Header)
		}
	})
}

func TestW19HeadAndOptionsPass(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "HEAD" {
			w.Header().Set("Content-Length", "123456")
		}
		w.Header().Set("Allow", "GET")
		w.WriteHeader(http.StatusNotFound)
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		a := f.do(t, "HEAD", "/dicom-web/studies", nil, nil)
		if a.StatusCode != 404 || a.ContentLength != 123456 || a.bodyErr != nil || a.body != "" {
			t.Errorf("HEAD: %d, length %d, %q %v", a.StatusCode, a.ContentLength, a.body, a.bodyErr)
		}
		if a := f.do(t, "OPTIONS", "/dicom-web/studies", nil, nil); a.StatusCode != 404 || a.Header.Get("Allow") != "GET" {
			t.Errorf("OPTIONS: %d", a.StatusCode)
		}
	})
}

func TestQ10EarlyData(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "OPTIONS": 200, "POST": 425, "PUT": 425, "DELETE": 425, "PATCH": 425} {
			a := f.do(t, method, "/", nil, http.Header{"Early-Data": {"1"}})
			if a.StatusCode != want {
				t.Errorf("%s: %d, want %d", method, a.StatusCode, want)
			}
			if method == "GET" {
				wantLines(t, a.body, "Early-Data: 1")
			}
		}
		if a := f.do(t, "POST", "/", strings.NewReader("x"), nil); a.StatusCode != 200 {
			t.Errorf("POST without early data: %d", a.StatusCode)
		}
	})
}

func TestG01G10ConnectionNamedHeaders(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Keep-Alive", "timeout=1")
		w.Header().Set("Proxy-Authenticate", "Basic")
		echo(w, r)
	}), nil)
	c := newRawClient(t, h)
	c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\nConnection: X-Forwarded-For, Forwarded, X-Forwarded-Proto, X-Mine, keep-alive\r\n"+
		"X-Mine: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: trailers, deflate\r\nProxy-Authorization: Basic eA==\r\nX-Kept: 1\r\n\r\n")
	head := c.readHead(t)
	wantNoHeader(t, head, "X-Hop", "Keep-Alive", "Proxy-Authenticate", "Connection")
	b := make([]byte, 4096)
	n, _ := c.r.Read(b)
	body := string(b[:n])
	wantLines(t, body, "Forwarded: for=127.0.0.1;proto=http", "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Kept: 1", "Te: trailers")
	wantNoHeader(t, body, "X-Mine", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Connection")
}

func TestHopByHopResponseHeadersOnEveryFront(t *testing.T) {
	h := newHandlerUnderTest(t, newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=1\r\nUpgrade: h2c\r\nAlt-Svc: h3=\":1\"\r\nX-Latin: M\xfcller\r\nContent-Length: 2\r\n\r\nok")
		}
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		a := f.get(t, "/")
		if a.body != "ok" || a.bodyErr != nil || a.Header.Get("X-Latin") != "M\xfcller" {
			t.Errorf("%q %v %q", a.body, a.bodyErr, a.Header)
		}
		for _, name := range []string{"Connection", "X-Hop", "Keep-Alive", "Upgrade", "Alt-Svc"} {
			if v, ok := a.Header[name]; ok {
				t.Errorf("%s: %q", name, v)
			}
		}
	})
}

func TestNoUserAgentOfOurOwn(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), nil)
	c := newRawClient(t, h)
	c.send(t, "GET / HTTP/1.1\r\nHost: pacs.test\r\nConnection: close\r\n\r\n")
	b, _ := io.ReadAll(c.r)
	wantNoHeader(t, string(b), "User-Agent", "Accept-Encoding")
}

func TestRequestsForTheProxyItself(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(http.ResponseWriter, *http.Request) { t.Error("upstream was asked") }), nil)
	c := newRawClient(t, h)
	c.send(t, "CONNECT pacs.test:443 HTTP/1.1\r\nHost: pacs.test:443\r\n\r\n")
	if head := c.readHead(t); !strings.HasPrefix(head, "HTTP/1.1 405 ") {
		t.Errorf("%q", head)
	}
	h.wantOutcome(t, OutcomeRefused)
	f := newHTTP3Front(t, h)
	r := newRawURLRequest(t, f, "*")
	r.Method = http.MethodOptions
	res, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != 204 {
		t.Errorf("OPTIONS *: %d", res.StatusCode)
	}
}

func TestObserverSeesBytesAndTime(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("y", int(n)*2))
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		const size = 300_000
		a := f.do(t, "POST", "/", strings.NewReader(strings.Repeat("x", size)), nil)
		if len(a.body) != 2*size {
			t.Fatalf("%d bytes: %v", len(a.body), a.bodyErr)
		}
		e := h.next(t)
		if e.Outcome != OutcomeComplete || e.RequestBytes != size || e.ResponseBytes != 2*size || e.UpstreamTime <= 0 {
			t.Errorf("%+v", e)
		}
	})
}

func TestLargeBodiesBothWays(t *testing.T) {
	const size = 8 << 20
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, int(n), err)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(size))
		_, _ = io.CopyN(w, new(pattern), size)
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		a := f.get(t, "/")
		if a.bodyErr != nil || len(a.body) != size {
			t.Errorf("GET: %d bytes, %v", len(a.body), a.bodyErr)
		}
		for i := 0; i+len(patternBlock) <= len(a.body); i += len(patternBlock) {
			if a.body[i:i+len(patternBlock)] != string(patternBlock[:]) {
				t.Fatalf("body differs near %d", i)
			}
		}
		a = f.do(t, "POST", "/", io.LimitReader(new(pattern), size), nil)
		if a.body != fmt.Sprint(size, nil) {
			t.Errorf("POST: %q", a.body)
		}
	})
}

// pattern is an endless body that repeats patternBlock.
type pattern struct{ at int }

var patternBlock = func() (b [1 << 16]byte) {
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)
	}
	return
}()

func (p *pattern) Read(b []byte) (int, error) {
	n := copy(b, patternBlock[p.at:])
	p.at = (p.at + n) % len(patternBlock)
	return n, nil
}
