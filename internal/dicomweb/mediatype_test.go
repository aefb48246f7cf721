package dicomweb

import (
	"maps"
	"mime"
	"testing"
)

func TestParseMediaType(t *testing.T) {
	type params = map[string]string
	for _, c := range []struct {
		in, mediaType string
		params        params // nil: refused
	}{
		{`application/dicom+json`, "application/dicom+json", params{}},
		{` Application/JSON ; charset=utf-8`, "application/json", params{"charset": "utf-8"}},
		{`multipart/related; type="application/dicom"; boundary=abc`, "multipart/related", params{"type": "application/dicom", "boundary": "abc"}},
		{`multipart/related;type=application/dicom;boundary=a=b`, "multipart/related", params{"type": "application/dicom", "boundary": "a=b"}},
		{`multipart/related; Boundary="a;\"b"; start=x;`, "multipart/related", params{"boundary": `a;"b`, "start": "x"}},
		{`multipart/related; boundary="abc`, "", nil},
		{`multipart/related; boundary="abc\`, "", nil},
		{`multipart`, "", nil},
		{`/x`, "", nil},
		{``, "", nil},
	} {
		mediaType, got, err := parseMediaType(c.in)
		if mediaType != c.mediaType || !maps.Equal(got, c.params) || (err == nil) != (c.params != nil) {
			t.Errorf("parseMediaType(%q) = %q, %q, %v", c.in, mediaType, got, err)
		}
	}
}

// FuzzMediaType: what package mime takes, ours reads in the same way.
func FuzzMediaType(f *testing.F) {
	f.Add(`multipart/related; type="application/dicom"; boundary=abc`)
	f.Add(`a/b;c=d;;e="f\"g"`)
	f.Fuzz(func(t *testing.T, s string) {
		mediaType, params, err := parseMediaType(s)
		theirType, theirs, theirErr := mime.ParseMediaType(s)
		if theirErr != nil || theirs["boundary"] == "" {
			return
		}
		if err != nil || mediaType != theirType {
			t.Fatalf("%q: %q, %v; mime says %q", s, mediaType, err, theirType)
		}
		for name, value := range params {
			if other, ok := theirs[name]; ok && other != value {
				t.Fatalf("%q: %s=%q; mime says %q", s, name, value, other)
			}
		}
	})
}
