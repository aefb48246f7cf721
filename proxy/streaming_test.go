package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Each part of an answer of unknown length gets to the client before the next is
// made; so do the header before any body, and the parts of an answer of known
// length.
func TestG06FlushedAtOnce(t *testing.T) {
	for _, length := range []string{"", "6"} {
		step := make(chan struct{})
		h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			for i := range 3 {
				_ = http.NewResponseController(w).Flush()
				<-step
				fmt.Fprintf(w, "%d\n", i)
			}
		}), nil)
		eachFront(t, h, func(t *testing.T, f front) {
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, "GET", f.url, nil)
			res, err := f.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			lines := bufio.NewReader(res.Body)
			for i := range 3 {
				step <- struct{}{}
				if line, err := lines.ReadString('\n'); line != fmt.Sprintln(i) {
					t.Fatalf("%q %v", line, err)
				}
			}
			if _, err := lines.ReadByte(); err != io.EOF {
				t.Error(err)
			}
		})
	}
}

// Parts of a request body get to the archive before the next is made.
func TestRequestBodyIsStreamed(t *testing.T) {
	got := make(chan string)
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		for s := bufio.NewScanner(r.Body); s.Scan(); {
			got <- s.Text()
		}
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		pr, pw := io.Pipe()
		go func() {
			defer pw.Close()
			for i := range 3 {
				fmt.Fprintln(pw, i)
				if s := <-got; s != fmt.Sprint(i) {
					t.Errorf("%q", s)
				}
			}
		}()
		if a := f.do(t, "POST", "/", pr, nil); a.StatusCode != 200 {
			t.Errorf("%d", a.StatusCode)
		}
	})
}

func TestG07Trailers(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		announced := r.URL.Path == "/announced"
		if announced {
			w.Header().Set("Trailer", "X-Sum")
		}
		_, _ = io.WriteString(w, "body")
		_ = http.NewResponseController(w).Flush()
		if announced {
			w.Header().Set("X-Sum", "1")
			return
		}
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for _, path := range []string{"/announced", "/unannounced"} {
			a := f.get(t, path)
			if a.body != "body" || a.bodyErr != nil || a.Trailer.Get("X-Sum") != "1" || a.Header.Get("X-Sum") != "" {
				t.Errorf("%s: %q %v trailer %q header %q", path, a.body, a.bodyErr, a.Trailer, a.Header)
			}
		}
	})
}

// HTTP/3 is not promised: Q16.
func TestG07Q16RequestTrailers(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Saw", r.Trailer.Get("X-Sum"))
	}), nil)
	for _, f := range []front{newHTTP1Front(t, h), newHTTP2Front(t, h)} {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", f.url, io.MultiReader(strings.NewReader("body")))
		r.Trailer = http.Header{"X-Sum": {"1"}}
		res, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.Header.Get("Saw") != "1" {
			t.Errorf("%s: trailer %q", f.name, res.Header.Get("Saw"))
		}
	}
}

// informational is what a client saw of 1xx answers.
type informational struct {
	mu   sync.Mutex
	seen []string
}

func (i *informational) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.seen = append(i.seen, fmt.Sprint(code, slices.Sorted(maps.Keys(h))))
			return nil
		},
	})
}

func TestG04InformationalAnswers(t *testing.T) {
	h := newHandlerUnderTest(t, newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
		for {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			const hop = "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: x\r\nUpgrade: h2c\r\n"
			_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n"+hop+"Link: </a>\r\n\r\n"+
				"HTTP/1.1 102 Processing\r\n"+hop+"\r\n"+
				"HTTP/1.1 100 Continue\r\n\r\n"+
				"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Final: 1\r\n\r\nok")
		}
	}), nil)
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", `h3=":443"`)
		h.ServeHTTP(w, r)
	})
	eachFront(t, outer, func(t *testing.T, f front) {
		var i informational
		ctx, cancel := context.WithTimeout(i.trace(t.Context()), deadline)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "GET", f.url, nil)
		res, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.Header.Get("Alt-Svc") != `h3=":443"` || res.Header.Get("X-Final") != "1" || res.Header.Get("Link") != "" {
			t.Errorf("final header %q", res.Header)
		}
		if want := []string{"103 [Link]", "102 []"}; !slices.Equal(i.seen, want) {
			t.Errorf("saw %q, want %q", i.seen, want)
		}
	})
	c := newRawClient(t, h)
	c.send(t, "GET / HTTP/1.0\r\n\r\n")
	if head := c.readHead(t); !strings.Contains(head, " 200 ") {
		t.Errorf("an HTTP/1.0 client got %q", head)
	}
}

// Both orders of W15: the archive asks for the body, or answers without it. Go's
// HTTP/2 server keeps Expect to itself and asks for the body when it is first
// read, so there the archive does not get to choose.
func TestW15ExpectContinue(t *testing.T) {
	type upstreamSaw struct {
		expect string
		body   string
	}
	saw := make(chan upstreamSaw, 1)
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			saw <- upstreamSaw{expect: r.Header.Get("Expect")}
			return
		}
		b, _ := io.ReadAll(r.Body) // makes the server say 100
		saw <- upstreamSaw{r.Header.Get("Expect"), string(b)}
	}), nil)
	for _, f := range []front{newHTTP1Front(t, h), newHTTP2Front(t, h)} {
		t.Run(f.name, func(t *testing.T) {
			for path, want := range map[string]struct {
				status int
				body   string
				seen   []string
			}{
				"/accept": {200, "payload", []string{"100 []"}},
				"/refuse": {401, "", nil},
			} {
				var i informational
				body := &countedBody{Reader: strings.NewReader("payload")}
				ctx, cancel := context.WithTimeout(i.trace(t.Context()), deadline)
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, "POST", f.url+path, body)
				r.ContentLength = 7
				r.Header.Set("Expect", "100-continue")
				res, err := f.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				s := receive(t, saw)
				if f.name == "h2" {
					if res.StatusCode != want.status || s.body != want.body {
						t.Errorf("%s: %d, upstream saw %+v", path, res.StatusCode, s)
					}
					continue
				}
				if res.StatusCode != want.status || s.expect != "100-continue" || s.body != want.body || !slices.Equal(i.seen, want.seen) {
					t.Errorf("%s: %d, upstream saw %+v, client saw %q", path, res.StatusCode, s, i.seen)
				}
				if want.body == "" && body.read() != 0 {
					t.Errorf("%s: the body was sent", path)
				}
			}
		})
	}
}

// An HTTP/3 server does not send a 100 by itself; Go's client does not wait for
// one, so that it is looked for among the 1xx answers.
func TestW15ExpectContinueHTTP3(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, echo), nil)
	f := newHTTP3Front(t, h)
	var i informational
	pr, pw := io.Pipe()
	got100 := make(chan struct{})
	ctx := httptrace.WithClientTrace(i.trace(t.Context()), &httptrace.ClientTrace{Got100Continue: func() { close(got100) }})
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "POST", f.url, pr)
	r.Header.Set("Expect", "100-continue")
	go func() {
		defer pw.Close()
		select {
		case <-got100:
			_, _ = io.WriteString(pw, "payload")
		case <-ctx.Done():
		}
	}()
	res, err := f.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	wantLines(t, string(b), "Read: 7 <nil>", "Expect: 100-continue")
	if n := slices.Index(i.seen, "100 []"); n != 0 || len(i.seen) != 1 {
		t.Errorf("client saw %q", i.seen)
	}
}

type countedBody struct {
	io.Reader
	mu sync.Mutex
	n  int
}

func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += n
	return n, err
}

func (c *countedBody) read() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// An answer that comes before the whole request body must reach the client.
func TestW15EarlyAnswer(t *testing.T) {
	h := newHandlerUnderTest(t, newRawUpstream(t, func(c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.ReadFull(req.Body, make([]byte, 10))
		_, _ = io.WriteString(c, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
		_, _ = io.Copy(io.Discard, req.Body)
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		pr, pw := io.Pipe()
		defer pw.Close()
		go func() { _, _ = io.WriteString(pw, strings.Repeat("x", 10)) }() // and no end
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "POST", f.url, pr)
		res, err := f.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 2)
		if _, err := io.ReadFull(res.Body, b); err != nil || res.StatusCode != 401 {
			t.Errorf("%d %q %v", res.StatusCode, b, err)
		}
		_ = pw.Close()
		_ = res.Body.Close()
	})
}

// What is left of a body when the answer is out must not be taken for a request.
func TestUnreadBodyIsNotTheNextRequest(t *testing.T) {
	requests := make(chan string, 10)
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.URL.Path
		w.WriteHeader(http.StatusUnauthorized)
	}), func(c *HandlerConfig) { c.MaxRequestBody = 1000 })
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: pacs.test\r\n\r\n"
	for name, tt := range map[string]struct{ head, rest string }{
		"length":    {fmt.Sprintf("Content-Length: %d\r\n\r\n", len(smuggled)), smuggled},
		"chunked":   {"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", smuggled},
		"too large": {"Content-Length: 1001\r\n\r\n", smuggled},
		"early":     {"Early-Data: 1\r\nContent-Length: 1\r\n\r\n", "x" + smuggled},
	} {
		t.Run(name, func(t *testing.T) {
			c := newRawClient(t, h)
			c.send(t, "POST /first HTTP/1.1\r\nHost: pacs.test\r\n"+tt.head)
			if head := c.readHead(t); !strings.HasPrefix(head, "HTTP/1.1 4") || !strings.Contains(head, "Connection: close\r\n") {
				t.Errorf("%q", head)
			}
			_, _ = io.WriteString(c, tt.rest)
			_ = c.Conn.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c.r) // until the end of the connection
			for len(requests) > 0 {
				if path := <-requests; path != "/first" {
					t.Errorf("the upstream was asked for %s", path)
				}
			}
		})
	}
}

// An archive that does not read a body, however small, costs at most the
// client's connection, and the client is told.
func TestAnswersWithoutReadingTheBody(t *testing.T) {
	h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusConflict)
	}), nil)
	eachFront(t, h, func(t *testing.T, f front) {
		for range 200 {
			if a := f.do(t, "POST", "/", strings.NewReader("body"), nil); a.StatusCode != 409 {
				t.Fatal(a.StatusCode)
			}
		}
	})
}
