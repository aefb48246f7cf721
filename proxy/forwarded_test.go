package proxy

import (
	"crypto/tls"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// Rows W01, W02 and W04 of the field cases.
func TestForwardedHeaders(t *testing.T) {
	f := forwarder{trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}}
	for _, tt := range []struct {
		name, remote, host string
		tls                bool
		in                 http.Header
		want               map[string]string
	}{
		{
			name: "plain", remote: "192.0.2.7:1234", host: "pacs.example", tls: true,
			want: map[string]string{
				"Forwarded": "for=192.0.2.7;proto=https", "X-Forwarded-For": "192.0.2.7",
				"X-Forwarded-Proto": "https", "X-Forwarded-Host": "pacs.example", "X-Forwarded-Port": "443",
			},
		}, {
			name: "IPv6 and port", remote: "[2001:db9::1%eth0]:1234", host: "pacs.example:8443", tls: true,
			want: map[string]string{
				"Forwarded": `for="[2001:db9::1]";proto=https`, "X-Forwarded-For": "2001:db9::1",
				"X-Forwarded-Proto": "https", "X-Forwarded-Host": "pacs.example:8443", "X-Forwarded-Port": "8443",
			},
		}, {
			name: "IPv4 within IPv6, no TLS", remote: "[::ffff:192.0.2.7]:1", host: "[::1]",
			want: map[string]string{
				"Forwarded": "for=192.0.2.7;proto=http", "X-Forwarded-For": "192.0.2.7",
				"X-Forwarded-Proto": "http", "X-Forwarded-Host": "[::1]", "X-Forwarded-Port": "80",
			},
		}, {
			name: "untrusted", remote: "192.0.2.7:1", host: "pacs.example", tls: true,
			in: http.Header{
				"Forwarded": {"for=1.2.3.4;host=evil.example;proto=http"}, "X-Forwarded-For": {"1.2.3.4"}, "X-Forwarded-Host": {"evil.example"},
				"X-Forwarded-Proto": {"http"}, "X-Forwarded-Port": {"1"}, "X-Forwarded-Prefix": {"/x"}, "X-Real-Ip": {"1.2.3.4"}, "X_forwarded_for": {"1.2.3.4"},
			},
			want: map[string]string{
				"Forwarded": "for=192.0.2.7;proto=https", "X-Forwarded-For": "192.0.2.7",
				"X-Forwarded-Proto": "https", "X-Forwarded-Host": "pacs.example", "X-Forwarded-Port": "443",
			},
		}, {
			name: "trusted, X-Forwarded", remote: "10.1.2.3:1", host: "inner",
			in: http.Header{
				"X-Forwarded-For": {"192.0.2.7, 2001:db8::9"}, "X-Forwarded-Proto": {"HTTPS"}, "X-Forwarded-Host": {"pacs.example:8443"},
			},
			want: map[string]string{
				"Forwarded": `for=192.0.2.7;proto=https, for="[2001:db8::9]", for=10.1.2.3;proto=http`, "X-Forwarded-For": "192.0.2.7, 2001:db8::9, 10.1.2.3",
				"X-Forwarded-Proto": "https", "X-Forwarded-Host": "pacs.example:8443", "X-Forwarded-Port": "8443",
			},
		}, {
			name: "trusted, only proto", remote: "10.1.2.3:1", host: "pacs.example",
			in: http.Header{"X-Forwarded-Proto": {"https"}},
			want: map[string]string{
				"Forwarded": "for=unknown;proto=https, for=10.1.2.3;proto=http", "X-Forwarded-For": "10.1.2.3",
				"X-Forwarded-Proto": "https", "X-Forwarded-Host": "pacs.example", "X-Forwarded-Port": "443",
			},
		}, {
			name: "trusted, Forwarded", remote: "[2001:db8::1]:1", host: "pacs.example",
			in: http.Header{"Forwarded": {`For="[2001:db9::7]:4711";Proto=HTTPS;host="pacs.example:8443";by=203.0.113.1`, "for=_hidden;host=h"}},
			want: map[string]string{
				"Forwarded":       `for="[2001:db9::7]:4711";proto=https;by=203.0.113.1, for=_hidden;host=h, for="[2001:db8::1]";proto=http`,
				"X-Forwarded-For": "2001:db8::1", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "pacs.example", "X-Forwarded-Port": "443",
			},
		}, {
			name: "trusted, malformed", remote: "10.1.2.3:1", host: "pacs.example",
			in: http.Header{"Forwarded": {`for="1.2.3.4`}, "X-Forwarded-Proto": {"gopher"}, "X-Forwarded-Port": {"x"}, "X-Forwarded-Host": {`a"b`}, "X-Forwarded-For": {`<script>, 192.0.2.7`}},
			want: map[string]string{
				"Forwarded": "for=192.0.2.7, for=10.1.2.3;proto=http", "X-Forwarded-For": "192.0.2.7, 10.1.2.3",
				"X-Forwarded-Proto": "http", "X-Forwarded-Host": "pacs.example", "X-Forwarded-Port": "80",
			},
		}, {
			name: "no address", remote: "@", host: "",
			want: map[string]string{"Forwarded": "for=unknown;proto=http", "X-Forwarded-Proto": "http", "X-Forwarded-Port": "80"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &http.Request{RemoteAddr: tt.remote, Host: tt.host, Header: tt.in}
			if tt.tls {
				in.TLS = new(tls.ConnectionState)
			}
			out := tt.in.Clone()
			if out == nil {
				out = http.Header{}
			}
			f.apply(in, out)
			got := map[string]string{}
			for k, v := range out {
				got[k] = strings.Join(v, "|")
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %v\nwant %v", got, tt.want)
			}
		})
	}
}

func TestParseForwardedRefuses(t *testing.T) {
	for _, s := range []string{"for", "for=", "=x", "for=a b", `for="a`, `for="a"b`, "for=a;for=b", "for=[::1]", "for =a", "for=\x01", `for="\`} {
		if e, err := parseForwarded(s); err == nil {
			t.Errorf("%q: %v", s, e)
		}
	}
	if _, err := parseForwarded(strings.Repeat("for=a,", maxForwardedElements+1)); err == nil {
		t.Error("endless chain accepted")
	}
	for _, s := range []string{"", ",", " , ;,", "for=a , ;for=b;"} {
		if _, err := parseForwarded(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func FuzzForwarded(f *testing.F) {
	for _, s := range []string{"", "for=192.0.2.7;proto=https", `for="[2001:db8::1]:80";host="a:1";by=_x, for=unknown`, `ext="a\"b\\";Proto=HTTP`, ",;,", `for="`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		elements, err := parseForwarded(s)
		if err != nil {
			return
		}
		out := joinForwarded(elements)
		if strings.ContainsAny(out, "\r\n\x00") {
			t.Fatalf("%q became %q, which is no header value", s, out)
		}
		again, err := parseForwarded(out)
		if err != nil {
			t.Fatalf("%q became %q: %v", s, out, err)
		}
		if third := joinForwarded(again); third != out {
			t.Fatalf("%q became %q and then %q", s, out, third)
		}
		for _, e := range again {
			if strings.ContainsAny(e.get("host"), `":`) {
				t.Fatalf("quoted host in %q", out)
			}
		}
	})
}
