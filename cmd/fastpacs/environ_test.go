package main

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"fastpacs/cc"
	"fastpacs/proxy"
)

const someUpstream = "FASTPACS_UPSTREAM=http://127.0.0.1:8042"

// refusal returns why a value is refused; "" if it is not.
func refusal(name, value string) string {
	if _, err := load([]string{someUpstream, name + "=" + value}); err != nil {
		return err.Error()
	}
	return ""
}

func TestEveryVariableIsDescribed(t *testing.T) {
	fields := reflect.TypeFor[config]()
	i := 0
	for v := range allVariables() {
		if i == fields.NumField() {
			t.Fatalf("%s is described and is no field of config", v.name)
		}
		if name := fields.Field(i).Tag.Get("env"); name != v.name {
			t.Fatalf("field %d of config is %s, and what is described there is %s", i, name, v.name)
		}
		if !strings.HasPrefix(v.name, prefix) || !strings.HasSuffix(v.help, ".") || v.allowed == "" || strings.HasSuffix(v.allowed, ".") {
			t.Errorf("%s: incomplete description %+v", v.name, v)
		}
		i++
	}
	if i != fields.NumField() {
		t.Errorf("%s has no description", fields.Field(i).Tag.Get("env"))
	}
}

func TestDefaults(t *testing.T) {
	c, err := load([]string{someUpstream, "HOME=/", "FASTPACS_CC=", "FASTPACS_ADMIN="})
	if err != nil {
		t.Fatal(err)
	}
	want := proxy.DefaultConfig()
	want.Handler.Upstream = "http://127.0.0.1:8042"
	if got := c.proxy(); !reflect.DeepEqual(got, want) {
		t.Errorf("the defaults are\n%+v, want those of the packages,\n%+v", got, want)
	}

	// Written out, the defaults mean the same.
	environ := []string{}
	for name, value := range texts(c) {
		environ = append(environ, name+"="+value)
	}
	again, err := load(environ)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again, c) {
		t.Errorf("the defaults, written out and read again, are\n%+v, want\n%+v", again, c)
	}
}

// TestEveryVariableIsUsed sets each variable to something else than its default
// and expects another configuration for it.
func TestEveryVariableIsUsed(t *testing.T) {
	other := map[string]string{
		"FASTPACS_UPSTREAM":             "https://pacs.example/root",
		"FASTPACS_UPSTREAM_HOST":        "pacs.example:8080",
		"FASTPACS_UPSTREAM_CA":          "/etc/ca.pem",
		"FASTPACS_UPSTREAM_SERVER_NAME": "pacs.example",
		"FASTPACS_READY_PATH":           "/",
		"FASTPACS_LISTEN":               "127.0.0.1:443",
		"FASTPACS_TLS_CERT":             "/etc/tls.crt",
		"FASTPACS_TLS_KEY":              "/etc/tls.key",
		"FASTPACS_TLS_NAMES":            "pacs.example,192.0.2.1",
		"FASTPACS_TLS_MIN_VERSION":      "1.3",
		"FASTPACS_STATE_DIR":            "/tmp",
		"FASTPACS_CC":                   "static",
		"FASTPACS_QUIC_PACKET_SIZE":     "1350",
		"FASTPACS_TRUSTED_PROXIES":      "10.0.0.0/8,fd00::/8",
		"FASTPACS_CORS_ORIGINS":         "https://viewer.example",
		"FASTPACS_REWRITE_FROM":         "http://localhost:8080/dcm4chee-arc",
		"FASTPACS_PUBLIC_URL":           "https://pacs.example",
		"FASTPACS_MAX_REQUEST_SIZE":     "2GiB",
		"FASTPACS_ADMIN":                "off",
		"FASTPACS_LOG_LEVEL":            "DEBUG",
		"FASTPACS_LOG_FORMAT":           "json",
		"FASTPACS_ACCESS_LOG":           "off",
	}
	together := map[string]string{
		"FASTPACS_TLS_CERT":         "FASTPACS_TLS_KEY=/k",
		"FASTPACS_TLS_KEY":          "FASTPACS_TLS_CERT=/c",
		"FASTPACS_CORS_CREDENTIALS": "FASTPACS_CORS_ORIGINS=https://viewer.example",
		"FASTPACS_REWRITE_FROM":     "FASTPACS_REWRITE_URLS=true",
		"FASTPACS_PUBLIC_URL":       "FASTPACS_REWRITE_URLS=true",
	}
	defaults := texts(defaults())
	for v := range allVariables() {
		value, ok := other[v.name]
		if _, highest, limited := v.limits(); !ok && limited {
			value = highest
		} else if !ok && defaults[v.name] == "false" {
			value = "true"
		} else if !ok {
			value = "false"
		}
		base := []string{someUpstream, cmp.Or(together[v.name], "A=b")}
		before, _ := load(base)
		after, err := load(append(base, v.name+"="+value))
		if err != nil {
			t.Errorf("%s=%s: %v", v.name, value, err)
			continue
		}
		if reflect.DeepEqual(before, after) {
			t.Errorf("%s=%s changes nothing", v.name, value)
		}
		if len(v.sets) > 0 && reflect.DeepEqual(before.proxy(), after.proxy()) {
			t.Errorf("%s=%s does not reach the proxy", v.name, value)
		}
	}
}

// TestRanges holds the ranges that the reference tells against what is taken.
func TestRanges(t *testing.T) {
	ranges := 0
	for v := range allVariables() {
		lowest, highest, ok := v.limits()
		if !ok {
			continue
		}
		ranges++
		for _, value := range []string{lowest, highest} {
			if why := refusal(v.name, value); why != "" {
				t.Errorf("%s, which is allowed, is refused: %s", value, why)
			}
		}
		for _, value := range []string{next(t, lowest, -1), next(t, highest, 1)} {
			want := fmt.Sprintf("%s=%q: must be from %s to %s", v.name, value, lowest, highest)
			if why := refusal(v.name, value); why != want {
				t.Errorf("the refusal is %q, want %q", why, want)
			}
		}
	}
	if ranges < 10 {
		t.Errorf("only %d variables have ranges", ranges)
	}
}

// next returns the value above (step 1) or below (-1) a number, size or
// duration.
func next(t *testing.T, value string, step int) string {
	if d, err := time.ParseDuration(value); err == nil && value != "0" {
		return (d + time.Duration(step)*time.Millisecond).String()
	}
	var s size
	if err := s.UnmarshalText([]byte(value)); err != nil {
		t.Fatalf("%q is neither a number nor a size nor a duration", value)
	}
	return strconv.FormatInt(int64(s)+int64(step), 10)
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct{ environ, want string }{
		{"", "FASTPACS_UPSTREAM is not set: must be a URL"},
		{"FASTPACS_UPSTREAM=http://u:secret@pacs", `FASTPACS_UPSTREAM="http://u:xxxxx@pacs": must be a URL with http:// or https:// and without query, user or password`},
		{"FASTPACS_UPSTREM=http://a", "FASTPACS_UPSTREM is not a variable of fastpacs: did you mean FASTPACS_UPSTREAM?"},
		{"FASTPACS_=1", "FASTPACS_ is not a variable of fastpacs"},
		{"FASTPACS_CC=cubic", `FASTPACS_CC="cubic": must be improved, static or reno`},
		{"FASTPACS_HTTP3=on", `FASTPACS_HTTP3="on": must be true or false`},
		{"FASTPACS_LISTEN=8443", `FASTPACS_LISTEN="8443": must be ADDRESS:PORT or :PORT, with an IP address`},
		{"FASTPACS_ADMIN=none", `FASTPACS_ADMIN="none": must be ADDRESS:PORT or :PORT, with an IP address, or off`},
		{"FASTPACS_TLS_KEY=/k", "FASTPACS_TLS_CERT is not set: must be a file, set together with FASTPACS_TLS_KEY"},
		{"FASTPACS_TLS_CERT=/c", `FASTPACS_TLS_CERT="/c": must be a file, set together with FASTPACS_TLS_KEY`},
		{"FASTPACS_TLS_NAMES=a,b!", `FASTPACS_TLS_NAMES="a,b!": must be DNS names or IP addresses`},
		{"FASTPACS_TLS_MIN_VERSION=1.1", `FASTPACS_TLS_MIN_VERSION="1.1": must be 1.2 or 1.3`},
		{"FASTPACS_QUIC_PACKET_SIZE=1199", `FASTPACS_QUIC_PACKET_SIZE="1199": must be 0, or 1200 to 1452`},
		{"FASTPACS_QUIC_PACKET_SIZE=1453", `FASTPACS_QUIC_PACKET_SIZE="1453": must be 0, or 1200 to 1452`},
		{"FASTPACS_QUIC_PACKET_SIZE=70000", `FASTPACS_QUIC_PACKET_SIZE="70000": must be 0, or 1200 to 1452`},
		{"FASTPACS_DRAIN_TIMEOUT=30", `FASTPACS_DRAIN_TIMEOUT="30": must be from 0s to 1h`},
		{"FASTPACS_MAX_HEADER_SIZE=64KB", `FASTPACS_MAX_HEADER_SIZE="64KB": must be from 4KiB to 1MiB`},
		{"FASTPACS_TRUSTED_PROXIES=10.0.0.1", `FASTPACS_TRUSTED_PROXIES="10.0.0.1": must be networks such as 10.0.0.0/8`},
		{"FASTPACS_CORS_ORIGINS=viewer.example", `FASTPACS_CORS_ORIGINS="viewer.example": must be origins such as https://viewer.example`},
		{"FASTPACS_CORS_CREDENTIALS=true", `FASTPACS_CORS_CREDENTIALS="true": must be true or false, true only with FASTPACS_CORS_ORIGINS other than *`},
		{"FASTPACS_PUBLIC_URL=https://a", "FASTPACS_REWRITE_URLS is not set: must be true or false, true if FASTPACS_REWRITE_FROM or FASTPACS_PUBLIC_URL is set"},
		{"FASTPACS_LOG_LEVEL=loud", `FASTPACS_LOG_LEVEL="loud": must be DEBUG, INFO, WARN or ERROR`},
		{"FASTPACS_LOG_FORMAT=xml", `FASTPACS_LOG_FORMAT="xml": must be text or json`},
		{"FASTPACS_ACCESS_LOG=combined", `FASTPACS_ACCESS_LOG="combined": must be json, text or off`},
		// All that is wrong is told at once.
		{"FASTPACS_CC=cubic FASTPACS_LISTN=:1 FASTPACS_IDLE_TIMEOUT=x FASTPACS_UPSTREAM=x", `FASTPACS_LISTN is not a variable of fastpacs: did you mean FASTPACS_LISTEN?
FASTPACS_IDLE_TIMEOUT="x": must be from 1s to 1h
FASTPACS_CC="cubic": must be improved, static or reno
FASTPACS_UPSTREAM="x": must be a URL`},
	} {
		environ := strings.Fields(c.environ)
		if !strings.Contains(c.environ, "FASTPACS_UPSTREAM=") && c.environ != "" {
			environ = append(environ, someUpstream)
		}
		_, err := load(environ)
		if err == nil {
			t.Errorf("%q is accepted", c.environ)
			continue
		}
		if !strings.HasPrefix(err.Error(), c.want) || strings.Count(err.Error(), "\n") != strings.Count(c.want, "\n") {
			t.Errorf("%q: the error is\n%s\nwant\n%s...", c.environ, err, c.want)
		}
	}
}

func TestEveryLawIsAllowed(t *testing.T) {
	v, _ := find(func(v variable) bool { return v.name == "FASTPACS_CC" })
	for _, law := range cc.Laws() {
		if why := refusal("FASTPACS_CC", string(law)); why != "" {
			t.Error(why)
		}
		if !strings.Contains(v.allowed, string(law)) {
			t.Errorf("FASTPACS_CC does not tell of %s", law)
		}
	}
}
