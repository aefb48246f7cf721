package dicomweb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a server and returns a client of it.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := New(srv.URL+"/dicom-web", srv.Client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func readers(files ...string) iter.Seq2[io.Reader, error] {
	return func(yield func(io.Reader, error) bool) {
		for _, f := range files {
			if !yield(strings.NewReader(f), nil) {
				return
			}
		}
	}
}

func answerJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/dicom+json")
	w.WriteHeader(status)
	io.WriteString(w, body)
}

func TestNewRefuses(t *testing.T) {
	for _, base := range []string{"", "pacs/dicom-web", "ftp://pacs/", "https://", "https://pacs/x?q=1", "https://pacs/%zz"} {
		if _, err := New(base, http.DefaultClient); err == nil {
			t.Errorf("New(%q): no error", base)
		}
	}
}

func TestSearch(t *testing.T) {
	var got []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.URL.RequestURI()+" "+r.Header.Get("Accept")+" "+r.Header.Get("Authorization"))
		answerJSON(w, 200, `[{
			"0020000D":{"vr":"UI","Value":["1.2.3"]},
			"00100010":{"vr":"PN","Value":[{"Alphabetic":"Müller^A"}]},
			"00201208":{"vr":"IS","Value":[300]},
			"00200013":{"vr":"IS","Value":["7"]},
			"00100020":{"vr":"LO"},
			"00080020":{"vr":"DA","Value":[null]}}]`)
	})
	c.Header = http.Header{"Authorization": {"Bearer x"}}
	studies, err := c.Studies(t.Context(), url.Values{"PatientID": {"P 1"}, "limit": {"5"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Series(t.Context(), "1.2", nil); err != nil {
		t.Error(err)
	}
	if _, err := c.Instances(t.Context(), Ref{Study: "1.2"}, nil); err != nil {
		t.Error(err)
	}
	if _, err := c.Instances(t.Context(), Ref{Study: "1.2", Series: "3.4"}, nil); err != nil {
		t.Error(err)
	}
	want := []string{
		"/dicom-web/studies?PatientID=P+1&limit=5",
		"/dicom-web/studies/1.2/series",
		"/dicom-web/studies/1.2/instances",
		"/dicom-web/studies/1.2/series/3.4/instances",
	}
	for i := range want {
		if w := want[i] + " application/dicom+json Bearer x"; got[i] != w {
			t.Errorf("request %d: %s, want %s", i, got[i], w)
		}
	}
	s := studies[0]
	for tag, want := range map[Tag]string{
		StudyInstanceUID: "1.2.3", PatientName: "Müller^A", NumberOfInstances: "300", InstanceNumber: "7",
		PatientID: "", StudyDate: "", SOPInstanceUID: "",
	} {
		if got := s.String(tag); got != want {
			t.Errorf("String(%s) = %q, want %q", tag, got, want)
		}
	}
	if n, ok := s.Int(NumberOfInstances); n != 300 || !ok {
		t.Errorf("Int(NumberOfInstances) = %d, %v", n, ok)
	}
	if _, ok := s.Int(PatientID); ok {
		t.Error("Int of an empty attribute is ok")
	}
}

func TestSearchAnswers(t *testing.T) {
	for _, c := range []struct {
		name, contentType, body string
		status                  int
		want                    string // in the error; empty: nothing found
	}{
		{"204", "", "", 204, ""},
		{"empty list", "application/json; charset=utf-8", "[]", 200, ""},
		{"XML", "application/dicom+xml", "<x/>", 200, `the response is "application/dicom+xml"`},
		{"no type", "", "[]", 200, "not application/dicom+json"},
		{"not a list", "application/dicom+json", "{}", 200, "decoding the response"},
		{"cut short", "application/dicom+json", "[{", 200, "decoding the response"},
		{"too long", "application/dicom+json", "[" + strings.Repeat(" ", 100) + "]", 200, "longer than 64 bytes"},
		{"404", "text/plain", "no such thing\n", 404, `404 Not Found: "no such thing"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = []string{c.contentType}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			client.MaxJSON = 64
			found, err := client.Studies(t.Context(), url.Values{"PatientName": {"SECRET"}})
			if len(found) != 0 {
				t.Errorf("found %v", found)
			}
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "QIDO-RS search for studies at http") {
				t.Fatalf("error %v, want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("the error holds the query: %v", err)
			}
			var se *StatusError
			if errors.As(err, &se) != (c.status == 404) {
				t.Errorf("error %v is a StatusError: %v", err, se != nil)
			}
		})
	}
}

func TestBadReferences(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("request for %s", r.URL) })
	for _, ref := range []Ref{
		{},
		{Series: "1.2"},
		{Study: "1.2", Instance: "3"},
		{Study: "1.2/../../x"},
		{Study: ".."},
		{Study: "1.2", Series: "a"},
		{Study: strings.Repeat("1", 65)},
	} {
		n := 0
		for _, err := range c.Retrieve(t.Context(), ref) {
			if n++; err == nil {
				t.Errorf("Retrieve(%+v): no error", ref)
			}
		}
		if n != 1 {
			t.Errorf("Retrieve(%+v) yielded %d times", ref, n)
		}
		if _, err := c.Instances(t.Context(), ref, nil); err == nil {
			t.Errorf("Instances(%+v): no error", ref)
		}
	}
	if _, err := c.Instances(t.Context(), Ref{"1", "2", "3"}, nil); err == nil {
		t.Error("Instances of an instance: no error")
	}
}

// TestErrorHidesQuery: a transport's error names the whole URL.
func TestErrorHidesQuery(t *testing.T) {
	c, err := New("http://user:PASSWORD@127.0.0.1:1/dicom-web", &http.Client{Transport: refusing{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Studies(t.Context(), url.Values{"PatientName": {"SECRET"}})
	if err == nil || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "PASSWORD") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v hides the cause", err)
	}
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }

const stowAnswer = `{
	"00081190":{"vr":"UR","Value":["http://x/studies/1"]},
	"00081199":{"vr":"SQ","Value":[
		{"00081150":{"vr":"UI","Value":["1.2"]},"00081155":{"vr":"UI","Value":["9.1"]},"00081190":{"vr":"UR","Value":["http://x/9.1"]}},
		{"00081150":{"vr":"UI","Value":["1.2"]},"00081155":{"vr":"UI","Value":["9.2"]},"00081196":{"vr":"US","Value":[45056]}}]},
	"00081198":{"vr":"SQ","Value":[
		{"00081150":{"vr":"UI","Value":["1.2"]},"00081155":{"vr":"UI","Value":["9.3"]},"00081197":{"vr":"US","Value":[272]}},
		{"00081197":{"vr":"US","Value":[-1]}}]}}`

func TestStore(t *testing.T) {
	var files []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mediaType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || mediaType != "multipart/related" || params["type"] != "application/dicom" {
			t.Errorf("Content-Type %q", r.Header.Get("Content-Type"))
		}
		if r.Method != "POST" || r.URL.Path != "/dicom-web/studies" || r.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s %s, Content-Encoding %q", r.Method, r.URL, r.Header.Get("Content-Encoding"))
		}
		mr := multipart.NewReader(r.Body, params["boundary"])
		for {
			p, err := mr.NextRawPart()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Error(err)
				break
			}
			if ct := p.Header.Get("Content-Type"); ct != "application/dicom" {
				t.Errorf("part of %q", ct)
			}
			b, err := io.ReadAll(p)
			if err != nil {
				t.Error(err)
			}
			files = append(files, string(b))
		}
		answerJSON(w, 202, stowAnswer)
	})
	big := strings.Repeat("x", 300_000)
	result, err := c.Store(t.Context(), readers("one", "\r\n--", big))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 3 || files[0] != "one" || files[1] != "\r\n--" || files[2] != big {
		t.Errorf("the server got %d files", len(files))
	}
	want := StoreResult{
		Stored: []Stored{{"1.2", "9.1", "http://x/9.1", 0}, {"1.2", "9.2", "", 0xB000}},
		Failed: []Failed{{"1.2", "9.3", 0x0110}, {"", "", 0}},
	}
	if fmt.Sprint(result) != fmt.Sprint(want) {
		t.Errorf("result %+v, want %+v", result, want)
	}
}

func TestStoreAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body   string
		status       int
		stored, fail int
		want         string
	}{
		{"200 and nothing stored", `{"00081190":{"vr":"UR"}}`, 200, 0, 0, ""},
		{"409 with reasons", `{"00081198":{"vr":"SQ","Value":[{}]}}`, 409, 0, 1, ""},
		{"409 without", `conflict`, 409, 0, 0, "409 Conflict"},
		{"413", `too large`, 413, 0, 0, `413 Request Entity Too Large: "too large"`},
		{"not JSON", `<x/>`, 200, 0, 0, "decoding the response"},
		{"sequence of strings", `{"00081199":{"vr":"SQ","Value":["x"]}}`, 200, 0, 0, "item 1 of sequence 00081199"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				answerJSON(w, c.status, c.body)
			})
			r, err := client.Store(t.Context(), readers("a", "b"))
			if len(r.Stored) != c.stored || len(r.Failed) != c.fail {
				t.Errorf("result %+v", r)
			}
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestStoreStopsEarly(t *testing.T) {
	endless := func(yield func(io.Reader, error) bool) {
		for yield(strings.NewReader(strings.Repeat("x", 100_000)), nil) {
		}
	}
	t.Run("refused before the body is read", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "who are you", http.StatusUnauthorized) })
		_, err := c.Store(t.Context(), endless)
		// Either the answer is seen or the connection it closed.
		if err == nil {
			t.Error("no error")
		}
	})
	t.Run("iterator fails", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		broken := errors.New("disk on fire")
		_, err := c.Store(t.Context(), func(yield func(io.Reader, error) bool) {
			if yield(strings.NewReader("a"), nil) {
				yield(nil, broken)
			}
		})
		if !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		_, err := c.Store(ctx, func(yield func(io.Reader, error) bool) {
			for yield(strings.NewReader("x"), nil) {
				if n++; n == 100 {
					cancel()
				}
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// multipartBody is a WADO-RS response body of those files.
func multipartBody(boundary string, files ...string) string {
	var b strings.Builder
	for _, f := range files {
		fmt.Fprintf(&b, "--%s\r\nContent-Type: application/dicom\r\nContent-Length: %d\r\n\r\n%s\r\n", boundary, len(f), f)
	}
	fmt.Fprintf(&b, "--%s--\r\n", boundary)
	return b.String()
}

func TestRetrieve(t *testing.T) {
	files := []string{"one", "", "\r\n--\r\n--x\r\n", strings.Repeat("y", 200_000)}
	var path, accept string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		path, accept = r.URL.Path, r.Header.Get("Accept")
		w.Header().Set("Content-Type", `Multipart/Related; boundary="a b"; type=application/dicom`)
		io.WriteString(w, "preamble\r\n"+multipartBody("a b", files...)+"epilogue")
	})
	i := 0
	for part, err := range c.Retrieve(t.Context(), Ref{"1.2", "3.4", "5.6"}) {
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(part)
		if err != nil || string(b) != files[i] || part.ContentType != "application/dicom" {
			t.Errorf("part %d: %d bytes of %q, %v", i, len(b), part.ContentType, err)
		}
		i++
	}
	if i != len(files) {
		t.Errorf("%d parts", i)
	}
	if path != "/dicom-web/studies/1.2/series/3.4/instances/5.6" || accept != acceptInstances {
		t.Errorf("asked for %s, %s", path, accept)
	}
	// Unread and half-read parts are skipped.
	i = 0
	for part, err := range c.Retrieve(t.Context(), Ref{Study: "1"}) {
		if err != nil {
			t.Fatal(err)
		}
		if i++; i == 4 {
			var one [1]byte
			if _, err := io.ReadFull(part, one[:]); err != nil || one[0] != 'y' {
				t.Errorf("part 4 begins with %q, %v", one, err)
			}
		}
	}
	if i != len(files) {
		t.Errorf("%d parts when not read", i)
	}
}

func TestRetrieveBroken(t *testing.T) {
	whole := multipartBody("B", "one", "two")
	for _, c := range []struct {
		name, contentType, body string
		status, parts           int
		want                    string
	}{
		{"404", "text/plain", "gone", 404, 0, `404 Not Found: "gone"`},
		{"HTML", "text/html", "<html>", 200, 0, `"text/html", not multipart/related`},
		{"no type", "", "x", 200, 0, "Content-Type"},
		{"no boundary", "multipart/related", whole, 200, 0, "has no boundary"},
		{"empty", "multipart/related; boundary=B", "", 200, 0, "unexpected EOF"},
		{"cut after a part", "multipart/related; boundary=B", whole[:len(whole)-len("--B--\r\n")], 200, 2, "unexpected EOF"},
		{"cut in a part", "multipart/related; boundary=B", whole[:len(whole)-len("wo\r\n--B--\r\n")], 200, 2, "unexpected EOF"},
		{"other boundary", "multipart/related; boundary=C", whole, 200, 0, "unexpected EOF"},
		{"bare instance", "application/dicom", "one", 200, 1, ""},
		{"no instance", "multipart/related; boundary=B", "--B--\r\n", 200, 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = []string{c.contentType}
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			n := 0
			var last error
			for part, err := range client.Retrieve(t.Context(), Ref{Study: "1"}) {
				if last = err; err == nil {
					n++
					io.Copy(io.Discard, part) // a cut part shows at the next one too
				}
			}
			if n != c.parts {
				t.Errorf("%d parts, want %d", n, c.parts)
			}
			if c.want == "" && last != nil || c.want != "" && (last == nil || !strings.Contains(last.Error(), c.want)) {
				t.Errorf("last error %v, want %q", last, c.want)
			}
		})
	}
}

func TestRetrieveLeaveAndAbort(t *testing.T) {
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "multipart/related; boundary=B")
		for {
			if _, err := io.WriteString(w, "--B\r\n\r\n"+strings.Repeat("x", 10_000)+"\r\n"); err != nil {
				close(gone)
				return
			}
		}
	})
	for _, err := range c.Retrieve(t.Context(), Ref{Study: "1"}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	<-gone // the server saw the end of the transfer

	c = serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "multipart/related; boundary=B")
		io.WriteString(w, "--B\r\n\r\nxxx")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	var readErr, last error
	for part, err := range c.Retrieve(t.Context(), Ref{Study: "1"}) {
		if last = err; err == nil {
			_, readErr = io.ReadAll(part)
		}
	}
	if readErr == nil || last == nil {
		t.Errorf("aborted response: reading %v, loop %v", readErr, last)
	}
}

func FuzzParts(f *testing.F) {
	f.Add("multipart/related; boundary=B", []byte(multipartBody("B", "one", "two")))
	f.Add("multipart/related; boundary=B", []byte("--B\n\nx\n--B--"))
	f.Add("application/dicom", []byte("DICM"))
	f.Add("multipart/related; boundary=\"\"", []byte("----\r\n"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		total, failed := 0, false
		for part, err := range parts(contentType, bytes.NewReader(body)) {
			if failed {
				t.Fatal("a part after an error")
			}
			if err != nil {
				failed = true
				continue
			}
			n, err := io.Copy(io.Discard, part)
			total += int(n)
			if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Logf("reading a part: %v", err)
			}
		}
		if total > len(body) {
			t.Fatalf("%d bytes out of %d", total, len(body))
		}
	})
}

func FuzzStoreAnswer(f *testing.F) {
	f.Add([]byte(stowAnswer))
	f.Add([]byte(`{"00081199":{"vr":"SQ","Value":[null,{"00081155":null}]}}`))
	f.Add([]byte(`{"00081199":{"Value":[{"00081155":{"Value":[{"Alphabetic":1}]}}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var payload Dataset
		if decodeJSON(body, &payload) != nil {
			return
		}
		r, err := storeResult(payload)
		if err == nil && len(r.Stored)+len(r.Failed) > len(body) {
			t.Fatalf("%d instances out of %d bytes", len(r.Stored)+len(r.Failed), len(body))
		}
	})
}

func BenchmarkParts(b *testing.B) {
	body := []byte(multipartBody("Boundary", strings.Repeat("\r\n-x", 1<<17), strings.Repeat("z", 1<<19)))
	b.SetBytes(int64(len(body)))
	for range b.N {
		for part, err := range parts("multipart/related; boundary=Boundary", bytes.NewReader(body)) {
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, part); err != nil {
				b.Fatal(err)
			}
		}
	}
}
