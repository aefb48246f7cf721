package proxy

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestQueryNames(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                    "",
		"PatientName=DOE%5EJOHN&limit=10":     "PatientName,limit",
		"00100020=4711&00081030.00080100=x":   "00100020,00081030.00080100",
		"DOE":                                 "*",
		"DOE%5EJOHN=1":                        "*",
		"accept=multipart/related;type=DOE":   "accept",
		"a=b=DOE&&include-field=00100010":     "a,include-field",
		"=DOE":                                "*",
		strings.Repeat("x", 65) + "=1":        "*",
		strings.Repeat("includefield=1&", 99): strings.TrimSuffix(strings.Repeat("includefield,", 19), ",") + ",...",
	} {
		if got := queryNames(raw); got != want {
			t.Errorf("queryNames(%q) = %q, want %q", raw, got, want)
		}
	}
}

func TestRedactPath(t *testing.T) {
	for path, want := range map[string]string{
		"":                                "",
		"/dicom-web/studies/1.2.840.1":    "/dicom-web/studies/1.2.840.1",
		"/a//b/":                          "/a//b/",
		"/studies;PatientName=DOE/series": "/studies*/series",
		"/studies/PatientName=DOE":        "/studies/PatientName*",
		"/studies%3FPatientName%3DDOE/x":  "/studies*/x",
		"/studies%3fPatientName=DOE/x":    "/studies*/x",
		"/" + strings.Repeat("9", 600):    "/" + strings.Repeat("9", 511) + "...",
		"/a%2Fb":                          "/a%2Fb",
	} {
		if got := redactPath(path); got != want {
			t.Errorf("redactPath(%q) = %q, want %q", path, got, want)
		}
	}
}

// Whatever a client sends, a value never shows and the line stays short.
func FuzzQueryNames(f *testing.F) {
	for _, s := range []string{"PatientName=DOE", "a=b;c=d&e", "&&=&%", "x=\n&y=\xff"} {
		f.Add(s, "DOE^JOHN")
	}
	f.Fuzz(func(t *testing.T, raw, value string) {
		got := queryNames(raw)
		if len(got) > maxLoggedQuery+4 {
			t.Errorf("%d bytes of names from %d", len(got), len(raw))
		}
		for name := range strings.SplitSeq(got, ",") {
			if got != "" && name != hidden && name != "..." && !plainName(name) {
				t.Errorf("queryNames(%q) shows %q", raw, name)
			}
		}
		// The value of a parameter makes no difference, so it cannot show.
		value = strings.ReplaceAll(value, "&", "")
		if a, b := queryNames("PatientName="+value), "PatientName"; a != b {
			t.Errorf("queryNames shows %q, want %q", a, b)
		}
	})
}

func FuzzRedactPath(f *testing.F) {
	for _, s := range []string{"/studies/1.2.3", "/a;b=c/d%3Fe", "//", "%3", "/\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		got := redactPath(path)
		if len(got) > maxLoggedPath+len("...")+strings.Count(path, "/")+1 {
			t.Errorf("%d bytes from %d", len(got), len(path))
		}
		if strings.ContainsAny(got, "=;") || strings.Contains(strings.ToUpper(got), "%3F") {
			t.Errorf("redactPath(%q) = %q shows where a value begins", path, got)
		}
		if utf8.ValidString(path) && len(path) <= maxLoggedPath && !utf8.ValidString(got) {
			t.Errorf("redactPath(%q) = %q breaks a character", path, got)
		}
		if again := redactPath(got); len(path) <= maxLoggedPath && again != got {
			t.Errorf("redactPath(%q) = %q, and again %q", path, got, again)
		}
	})
}
