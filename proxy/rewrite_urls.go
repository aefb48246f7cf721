package proxy

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// urlRewriter replaces the archive's base URLs in answers by the public one: in
// RetrieveURL (0008,1190), BulkDataURI and the like, and in Location.
type urlRewriter struct {
	from      []string // without a slash at the end
	public    string   // the same; "" for that of the request
	path      string   // of the upstream's base URL, without a slash at the end
	forwarder forwarder
}

func newURLRewriter(cfg HandlerConfig, base *url.URL, f forwarder) *urlRewriter {
	u := &urlRewriter{
		from:      []string{strings.TrimRight(cfg.Upstream, "/")},
		public:    strings.TrimRight(cfg.PublicURL, "/"),
		path:      strings.TrimRight(base.EscapedPath(), "/"),
		forwarder: f,
	}
	for _, s := range cfg.RewriteFrom {
		u.from = append(u.from, strings.TrimRight(s, "/"))
	}
	return u
}

// rewrite changes res, the answer to the client's request r. Encoded and partial
// bodies pass as they are.
func (u *urlRewriter) rewrite(r *http.Request, res *http.Response) {
	rules := u.rules(r)
	if len(rules) == 0 {
		return
	}
	for _, name := range []string{"Location", "Content-Location"} {
		if v := res.Header.Get(name); v != "" {
			res.Header.Set(name, replaceURLs(v, rules))
		}
	}
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	json := mediaType == "application/dicom+json" || mediaType == "application/json"
	if !json && mediaType != "application/dicom+xml" ||
		res.Header.Get("Content-Encoding") != "" || res.StatusCode == http.StatusPartialContent {
		return
	}
	if json {
		rules = append(rules, escapeSlashes(rules)...)
	}
	// What the archive says about its bytes is no longer true.
	for _, name := range []string{"Content-Length", "Accept-Ranges", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest"} {
		res.Header.Del(name)
	}
	res.ContentLength = -1
	if tag := res.Header.Get("Etag"); strings.HasPrefix(tag, `"`) {
		res.Header.Set("Etag", "W/"+tag)
	}
	if res.Body != http.NoBody {
		res.Body = struct {
			io.Reader
			io.Closer
		}{newURLReader(res.Body, rules), res.Body}
	}
}

// rules are what to replace in answers to r, longest first.
func (u *urlRewriter) rules(r *http.Request) []urlRule {
	from, public := slices.Clone(u.from), u.public
	if validHost(r.Host) {
		// The archive knows the client's Host, but perhaps not the scheme, and not
		// that its path is not part of the public URL.
		from = append(from, "http://"+r.Host+u.path, "https://"+r.Host+u.path)
		if public == "" {
			public = u.forwarder.publicScheme(r) + "://" + r.Host
		}
	}
	if public == "" {
		return nil
	}
	var rules []urlRule
	for _, f := range from {
		if f != public {
			rules = append(rules, urlRule{f, public})
		}
	}
	slices.SortStableFunc(rules, func(a, b urlRule) int { return len(b.from) - len(a.from) })
	return rules
}

// urlRule replaces a base URL where it stands for itself: "http://pacs" is not
// replaced in "http://pacs2/" or "http://pacs:8042/".
type urlRule struct{ from, to string }

// escapeSlashes returns the rules for JSON in which "/" is written "\/".
func escapeSlashes(rules []urlRule) []urlRule {
	escaped := make([]urlRule, len(rules))
	for i, r := range rules {
		escaped[i] = urlRule{strings.ReplaceAll(r.from, "/", `\/`), strings.ReplaceAll(r.to, "/", `\/`)}
	}
	return escaped
}

// urlStart begins every rule's from.
const urlStart = "http"

// endsBaseURL tells whether a base URL may end before b.
func endsBaseURL(b byte) bool { return !isAlphanumeric(b) && strings.IndexByte("-._~%:@", b) < 0 }

func replaceURLs(s string, rules []urlRule) string {
	out, _ := appendReplaced(nil, []byte(s), rules, 0, true)
	return string(out)
}

// appendReplaced appends to out what becomes of in and returns how much of in it
// is done with. Unless in is all there is, it stops where more bytes could
// matter: at most longest+1 before the end, longest being that of any from.
func appendReplaced(out, in []byte, rules []urlRule, longest int, all bool) ([]byte, int) {
	done := 0
	for {
		i := bytes.Index(in[done:], []byte(urlStart))
		if i < 0 {
			keep := 0
			if !all {
				keep = min(len(urlStart)-1, len(in)-done)
			}
			return append(out, in[done:len(in)-keep]...), len(in) - keep
		}
		out = append(out, in[done:done+i]...)
		done += i
		if !all && len(in)-done <= longest {
			return out, done
		}
		if r := matchURL(in[done:], rules); r != nil {
			out = append(out, r.to...)
			done += len(r.from)
		} else {
			out = append(out, urlStart...)
			done += len(urlStart)
		}
	}
}

// matchURL returns the first rule for a base URL at the beginning of in.
func matchURL(in []byte, rules []urlRule) *urlRule {
	for i := range rules {
		n := len(rules[i].from)
		if len(in) >= n && string(in[:n]) == rules[i].from && (len(in) == n || endsBaseURL(in[n])) {
			return &rules[i]
		}
	}
	return nil
}

// urlReader applies rules to a stream, with a buffer of fixed size.
type urlReader struct {
	src     io.Reader
	rules   []urlRule
	longest int
	in, out []byte // read and not yet dealt with; dealt with and not yet given out
	free    []byte // what out is made in
	err     error  // of src
}

const urlReaderBuffer = 32 << 10

func newURLReader(src io.Reader, rules []urlRule) *urlReader {
	r := &urlReader{src: src, rules: rules}
	for _, rule := range rules {
		r.longest = max(r.longest, len(rule.from))
	}
	r.in = make([]byte, 0, urlReaderBuffer+r.longest)
	return r
}

func (r *urlReader) Read(p []byte) (int, error) {
	for len(r.out) == 0 && len(p) > 0 {
		if r.err != nil {
			return 0, r.err
		}
		n, err := r.src.Read(r.in[len(r.in):cap(r.in)])
		r.in, r.err = r.in[:len(r.in)+n], err
		var done int
		r.free, done = appendReplaced(r.free[:0], r.in, r.rules, r.longest, err != nil)
		r.out = r.free
		r.in = r.in[:copy(r.in, r.in[done:])]
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}
