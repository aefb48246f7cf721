package proxy

import (
	"net/http"
	"testing"
	"time"
)

// Q01, Q02.
func TestAltSvc(t *testing.T) {
	base := DefaultConfig()
	base.AltSvcMaxAge = 5 * time.Minute
	base.AltSvcConfirmedMaxAge = 24 * time.Hour
	for _, tt := range []struct {
		name      string
		change    func(*Config)
		tcp, quic string
	}{
		{"listening port", func(*Config) {}, `h3=":8443"; ma=300`, `h3=":8443"; ma=86400`},
		{"advertised port", func(c *Config) { c.AdvertisedPort = 443 }, `h3=":443"; ma=300`, `h3=":443"; ma=86400`},
		{"clear", func(c *Config) { c.AltSvcClear = true }, "clear", "clear"},
		{"clear without HTTP/3", func(c *Config) { c.AltSvcClear, c.HTTP3 = true, false }, "clear", "clear"},
		{"no HTTP/3", func(c *Config) { c.HTTP3 = false }, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := base
			tt.change(&cfg)
			a := newAltSvc(cfg, 8443)
			for protocol, want := range map[string]string{"h1": tt.tcp, "h2": tt.tcp, "h3": tt.quic} {
				h := http.Header{"Alt-Svc": {`h3=":1"`, `h2="other:2"`}}
				a.set(h, protocol)
				if got := h.Get("Alt-Svc"); got != want || len(h["Alt-Svc"]) > 1 {
					t.Errorf("%s: Alt-Svc = %q, want %q once", protocol, h["Alt-Svc"], want)
				}
			}
		})
	}
}
