package proxy

import (
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// Rows W01 and W03 of the field cases, for archives that do not honour Host.
func TestRewriteURLs(t *testing.T) {
	var base string
	up := newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Error("compressed answer asked for")
		}
		q := r.URL.Query()
		body := strings.NewReplacer("UP", base, "HOST", r.Host).Replace(q.Get("body"))
		h := w.Header()
		h.Set("Content-Type", q.Get("type"))
		h.Set("Content-Length", strconv.Itoa(len(body)))
		h.Set("ETag", `"1"`)
		h.Set("Content-Location", base+"/studies/1")
		if e := q.Get("encoding"); e != "" {
			h.Set("Content-Encoding", e)
		}
		_, _ = io.WriteString(w, body)
	})
	base = up + "/dicom-web"
	escape := func(s string) string { return strings.ReplaceAll(s, "/", `\/`) }

	h := newHandlerUnderTest(t, base+"/", func(c *HandlerConfig) {
		c.RewriteURLs, c.RewriteFrom = true, []string{"http://localhost:8080/arc/"}
	})
	eachFront(t, h, func(t *testing.T, f front) {
		for _, tt := range []struct{ mediaType, encoding, body, want string }{
			{"application/dicom+json", "", `{"0":"UP/studies/1","1":"UP","2":"http://localhost:8080/arc/x"}`, `{"0":"PUB/studies/1","1":"PUB","2":"PUB/x"}`},
			{"application/json; charset=utf-8", "", `["http://HOST/dicom-web/a","https://HOST/dicom-web/b"]`, `["PUB/a","PUB/b"]`},
			{"application/dicom+json", "", escape(`["http://localhost:8080/arc/a"]`), `["ESC\/a"]`},
			{"application/dicom+xml", "", `<BulkData uri="http://localhost:8080/arc/b"/>`, `<BulkData uri="PUB/b"/>`},
			{"application/json", "", `["http://localhost:8080/arc2","http://localhost:8080/","http://localhost:80800/arc"]`, ""},
			{"application/json", "br", "http://localhost:8080/arc/x", ""},
			{"multipart/related; type=application/dicom", "", "http://localhost:8080/arc/x", ""},
			{"text/html", "", "http://localhost:8080/arc/x", ""},
		} {
			want := tt.want
			changed := want != "" || strings.Contains(tt.mediaType, "json") && tt.encoding == ""
			if want == "" {
				want = tt.body
			}
			want = strings.NewReplacer("PUB", f.url, "ESC", escape(f.url)).Replace(want)
			a := f.do(t, "GET", "/?"+url.Values{"type": {tt.mediaType}, "body": {tt.body}, "encoding": {tt.encoding}}.Encode(), nil, http.Header{"Accept-Encoding": {"gzip"}})
			if a.body != want || a.bodyErr != nil {
				t.Errorf("%s: got %q, want %q (%v)", tt.mediaType, a.body, want, a.bodyErr)
			}
			if tag, want := a.Header.Get("ETag"), map[bool]string{true: `W/"1"`, false: `"1"`}[changed]; tag != want {
				t.Errorf("%s: ETag %s, want %s", tt.mediaType, tag, want)
			}
			if changed && a.Header.Get("Content-Length") == strconv.Itoa(len(tt.body)) && len(want) != len(tt.body) {
				t.Errorf("%s: old Content-Length", tt.mediaType)
			}
			if got := a.Header.Get("Content-Location"); got != f.url+"/studies/1" {
				t.Errorf("Content-Location %s", got)
			}
		}
	})

	t.Run("public URL", func(t *testing.T) {
		h := newHandlerUnderTest(t, base, func(c *HandlerConfig) { c.RewriteURLs, c.PublicURL = true, "https://pacs.example/web/" })
		a := newHTTP1Front(t, h).get(t, "/?"+url.Values{"type": {"application/json"}, "body": {`["UP/x"]`}}.Encode())
		if a.body != `["https://pacs.example/web/x"]` {
			t.Errorf("%q", a.body)
		}
	})
	t.Run("off", func(t *testing.T) {
		h := newHandlerUnderTest(t, newTestUpstream(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, base)
		}), nil)
		if a := newHTTP1Front(t, h).get(t, "/"); a.body != base {
			t.Errorf("%q", a.body)
		}
	})
}

// A hostile Host must not get into JSON.
func TestRewriteURLsWithHostileHost(t *testing.T) {
	u := &urlRewriter{from: []string{"http://orthanc:8042"}}
	for _, host := range []string{`a"b`, "a\\b", "a<b", "", "a b", "a/b"} {
		if rules := u.rules(&http.Request{Host: host}); rules != nil {
			t.Errorf("%q: %v", host, rules)
		}
	}
}

func TestURLReaderAtEverySplit(t *testing.T) {
	rules := []urlRule{{"http://orthanc:8042/dicom-web", "https://p"}, {"http://orthanc:8042", "https://pacs.example:8443/a/long/one"}}
	rules = append(rules, escapeSlashes(rules)...)
	const in = `hthttp://orthanc:8042http://orthanc:8042/dicom-web/x http:\/\/orthanc:8042\/ http://orthanc:8042/dicom-webhttp://orthanc:8042`
	want := referenceReplace(in, rules)
	for cut := range len(in) {
		got, err := io.ReadAll(newURLReader(io.MultiReader(strings.NewReader(in[:cut]), strings.NewReader(in[cut:])), rules))
		if err != nil || string(got) != want {
			t.Errorf("cut at %d: %q, want %q (%v)", cut, got, want, err)
		}
	}
	for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, iotest.DataErrReader, iotest.HalfReader} {
		got, err := io.ReadAll(iotest.OneByteReader(newURLReader(wrap(strings.NewReader(in)), rules)))
		if err != nil || string(got) != want {
			t.Errorf("%q, want %q (%v)", got, want, err)
		}
	}
	broken := newURLReader(io.MultiReader(strings.NewReader("http://orth"), iotest.ErrReader(io.ErrUnexpectedEOF)), rules)
	if got, err := io.ReadAll(broken); string(got) != "http://orth" || err != io.ErrUnexpectedEOF {
		t.Errorf("broken source: %q, %v", got, err)
	}
}

func TestURLReaderMemoryIsFlat(t *testing.T) {
	rules := []urlRule{{"http://a", "https://pacs.example"}}
	r := newURLReader(io.LimitReader(&repeat{s: "http://a/"}, 64<<20), rules)
	buf := make([]byte, 64<<10)
	read := func() {
		for range 16 {
			if _, err := r.Read(buf); err != nil {
				t.Fatal(err)
			}
		}
	}
	read()
	if n := testing.AllocsPerRun(10, read); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

type repeat struct {
	s  string
	at int
}

func (r *repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.s[r.at]
		r.at = (r.at + 1) % len(r.s)
	}
	return len(p), nil
}

// referenceReplace is what a urlReader should do, on a whole.
func referenceReplace(in string, rules []urlRule) string {
	to, alternatives := map[string]string{}, []string{}
	for _, r := range rules {
		if _, ok := to[r.from]; !ok {
			to[r.from] = r.to
			alternatives = append(alternatives, regexp.QuoteMeta(r.from))
		}
	}
	re := regexp.MustCompile(`(?s)(` + strings.Join(alternatives, "|") + `)(\z|[^A-Za-z0-9\-._~%:@])`)
	// \x80 and above are single bytes here, which regexp does not know.
	latin1 := make([]rune, len(in))
	for i := range len(in) {
		latin1[i] = rune(in[i])
	}
	out := re.ReplaceAllStringFunc(string(latin1), func(m string) string {
		s := re.FindStringSubmatch(m)
		return to[s[1]] + s[2]
	})
	var b []byte
	for _, r := range out {
		b = append(b, byte(r))
	}
	return string(b)
}

func FuzzURLReader(f *testing.F) {
	f.Add("{\"u\":\"http://orthanc:8042/x\"}", "http://orthanc:8042", "https://pacs.example", uint64(1))
	f.Add(`http:\/\/a\/ http://a/b http://a`, "http://a/b", "http://a", uint64(2))
	f.Add("hhtthttp://http://ahttp://a.", "http://a", "", uint64(3))
	f.Add("http://a/\x80http://a\xff", "http://a", "https://b", uint64(4))
	f.Fuzz(func(t *testing.T, in, from, to string, seed uint64) {
		if _, err := parseBaseURL(from); err != nil {
			return
		}
		rules := []urlRule{{from, to}, {"http://a", "https://public/"}}
		slices.SortStableFunc(rules, func(a, b urlRule) int { return len(b.from) - len(a.from) })
		rules = append(rules, escapeSlashes(rules)...)
		for _, r := range rules {
			for i := range len(r.from) + len(r.to) {
				if (r.from + r.to)[i] >= 0x80 {
					return // the reference maps bytes to runes
				}
			}
		}
		random := rand.New(rand.NewPCG(seed, 0))
		src := &choppy{in, random}
		var got strings.Builder
		r := newURLReader(src, rules)
		buf := make([]byte, 100)
		for {
			n, err := r.Read(buf[:1+random.IntN(len(buf))])
			got.Write(buf[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if want := referenceReplace(in, rules); got.String() != want {
			t.Fatalf("%q with %q: %q, want %q", in, rules, got.String(), want)
		}
		// Without anything after it that could belong to a longer URL, a base URL is
		// replaced as by strings.ReplaceAll.
		if plain := rules[:1]; !continuesAfter(in, plain[0].from) {
			want := strings.ReplaceAll(in, plain[0].from, plain[0].to)
			if got := replaceURLs(in, plain); got != want {
				t.Fatalf("%q with %q: %q, want %q", in, plain, got, want)
			}
		}
	})
}

// continuesAfter tells whether s is followed by a byte that goes on with the URL,
// anywhere in text.
func continuesAfter(text, s string) bool {
	for i := 0; ; i++ {
		j := strings.Index(text[i:], s)
		if j < 0 {
			return false
		}
		if i += j; i+len(s) < len(text) && !endsBaseURL(text[i+len(s)]) {
			return true
		}
	}
}

// choppy reads in pieces of random size.
type choppy struct {
	rest   string
	random *rand.Rand
}

func (c *choppy) Read(p []byte) (int, error) {
	if c.rest == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), 1+c.random.IntN(12))], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
