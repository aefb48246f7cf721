package proxy

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
)

// planted are the ways in which a patient's data can come with a request.
var planted = []string{"DOE^JOHN", "DOE%5EJOHN", "DOE", "MRN-4711", "c2VjcmV0"}

// askWithPatient sends requests that name a patient everywhere, to every kind of
// end.
func askWithPatient(t *testing.T, rs *runningServer, protocol string) {
	t.Helper()
	c := rs.client(protocol)
	for _, tt := range []struct{ method, target, body string }{
		{"GET", "/studies?PatientName=DOE%5EJOHN&PatientID=MRN-4711&limit=3", ""},
		{"GET", "/studies?00100010=DOE^JOHN;00100020=MRN-4711", ""},
		{"GET", "/studies?DOE%5EJOHN", ""},
		{"GET", "/studies/PatientName=DOE%5EJOHN/series", ""},
		{"GET", "/studies;PatientID=MRN-4711/series", ""},
		{"POST", "/studies?PatientName=DOE", "DOE^JOHN"},
		{"GET", "/truncated?PatientName=DOE", ""},
		{"GET", "/redirect?PatientName=DOE", ""},
		{"PROPFIND", "/studies?PatientName=DOE", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, rs.url(tt.target), strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "pacs.test"
		req.Header.Set("Authorization", "Basic c2VjcmV0")
		req.Header.Set("Cookie", "patient=MRN-4711")
		req.Header.Set("Referer", "https://viewer.test/?PatientName=DOE^JOHN")
		req.Header.Set("User-Agent", "viewer (DOE^JOHN)")
		req.Header.Set("X-Patient", "DOE^JOHN")
		req.Header.Set("Forwarded", `for="DOE"`)
		res, err := c.Do(req)
		if err != nil {
			continue // the broken ones
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

func patientArchive(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Patient", "DOE^JOHN")
	switch r.URL.Path {
	case "/truncated":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "DOE^JOHN")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "/redirect":
		w.Header().Set("Location", "/studies?PatientName=DOE^JOHN")
		w.WriteHeader(http.StatusSeeOther)
	default:
		_, _ = io.WriteString(w, "DOE^JOHN")
	}
}

func TestNoPatientDataInLogsAndMetrics(t *testing.T) {
	for _, format := range []AccessLogFormat{AccessLogText, AccessLogJSON} {
		rs := startServer(t, http.HandlerFunc(patientArchive), func(c *Config) { c.AccessLog = format })
		for _, p := range protocols {
			askWithPatient(t, rs, p)
		}
		// An archive that is not there has errors of its own to log.
		down := startServer(t, http.HandlerFunc(patientArchive), func(c *Config) {
			c.AccessLog, c.Handler.Upstream = format, "http://127.0.0.1:1"
		})
		for _, p := range protocols {
			askWithPatient(t, down, p)
		}
		for _, s := range []*runningServer{rs, down} {
			eventually(t, "all requests logged", func() bool { return strings.Count(s.access.String(), "\n") >= 3*9 })
			for what, text := range map[string]string{"process log": s.log.String(), "access log": s.access.String(), "metrics": s.metrics()} {
				if len(text) == 0 {
					t.Errorf("%s is empty", what)
				}
				for _, secret := range planted {
					if i := strings.Index(text, secret); i >= 0 {
						t.Errorf("%s has %q: ...%s...", what, secret, text[max(0, i-200):min(len(text), i+100)])
					}
				}
			}
		}
	}
}

// metrics returns all metrics as text.
func (rs *runningServer) metrics() string {
	rs.t.Helper()
	families, err := rs.registry.Gather()
	if err != nil {
		rs.t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			rs.t.Fatal(err)
		}
	}
	return b.String()
}

func TestAccessLogLine(t *testing.T) {
	for _, tt := range []struct {
		values bool
		query  string
	}{{false, "PatientName,limit"}, {true, "PatientName=DOE&limit=3"}} {
		rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.AccessLogQueryValues = tt.values })
		for _, protocol := range protocols {
			c := rs.client(protocol)
			lines := strings.Count(rs.access.String(), "\n")
			res, err := c.Post(rs.url("/echo?PatientName=DOE&limit=3"), "text/plain", strings.NewReader("12345"))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
			eventually(t, "a line", func() bool { return strings.Count(rs.access.String(), "\n") > lines })
			all := strings.Split(strings.TrimSpace(rs.access.String()), "\n")

			var line map[string]any
			if err := json.Unmarshal([]byte(all[len(all)-1]), &line); err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]any{
				"proto": protocol, "method": "POST", "path": "/echo", "query": tt.query,
				"status": 200.0, "bytes_in": 5.0, "bytes_out": 5.0,
			} {
				if line[key] != want {
					t.Errorf("%s: %s = %v, want %v", protocol, key, line[key], want)
				}
			}
			for _, key := range []string{"seconds", "upstream_seconds"} {
				if v, ok := line[key].(float64); !ok || v <= 0 || v > patience.Seconds() {
					t.Errorf("%s: %s = %v", protocol, key, line[key])
				}
			}
			if remote, ok := line["remote"].(string); !ok || !strings.HasPrefix(remote, "127.0.0.1:") {
				t.Errorf("%s: remote = %v", protocol, line["remote"])
			}
			keys := make([]string, 0, len(line))
			for k := range line {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			want := []string{"bytes_in", "bytes_out", "method", "path", "proto", "query", "remote", "seconds", "status", "time", "upstream_seconds"}
			if !slices.Equal(keys, want) {
				t.Errorf("%s: a line of %v, want %v", protocol, keys, want)
			}
		}
	}
}

func TestAccessLogTellsOfBrokenExchanges(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(patientArchive))
	for _, p := range protocols {
		res, err := rs.client(p).Get(rs.url("/truncated"))
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: a truncated body ended cleanly", p)
		}
		eventually(t, p+" logged", func() bool {
			return strings.Contains(rs.access.String(), `"proto":"`+p+`"`) && strings.Contains(rs.access.String(), `"outcome":"upstream_truncated"`)
		})
		if n := rs.metric("fastpacs_http_exchanges_total", "protocol="+p, "outcome=upstream_truncated"); n != 1 {
			t.Errorf("%s: %v truncated exchanges, want 1", p, n)
		}
	}
}

func TestAccessLogOff(t *testing.T) {
	rs := startServer(t, http.HandlerFunc(fakeArchive), func(c *Config) { c.AccessLog = AccessLogOff })
	rs.get(rs.client("h2"), rs.url("/"))
	rs.stop()
	if err := <-rs.done; err != nil {
		t.Fatal(err)
	}
	if got := rs.access.String(); got != "" {
		t.Errorf("an access log of %q", got)
	}
}
