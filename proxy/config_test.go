package proxy

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func validConfig() Config {
	cfg := DefaultConfig()
	cfg.Handler.Upstream = "http://127.0.0.1:8042"
	return cfg
}

func TestDefaultConfigIsValid(t *testing.T) {
	if err := validConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigValidate(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"ListenAddr":               func(c *Config) { c.ListenAddr = "8443" },
		"AdvertisedPort":           func(c *Config) { c.AdvertisedPort = 65536 },
		"AltSvcMaxAge":             func(c *Config) { c.AltSvcMaxAge = 0 },
		"AltSvcConfirmedMaxAge":    func(c *Config) { c.AltSvcConfirmedMaxAge = 31 * 24 * time.Hour },
		"CertFile and KeyFile":     func(c *Config) { c.CertFile = "cert.pem" },
		"StateDir":                 func(c *Config) { c.StateDir = "" },
		"SelfSignedNames":          func(c *Config) { c.SelfSignedNames = []string{"pacs.test", "https://pacs.test"} },
		"MinTLSVersion":            func(c *Config) { c.MinTLSVersion = "1.1" },
		"ReadHeaderTimeout":        func(c *Config) { c.ReadHeaderTimeout = 0 },
		"IdleTimeout":              func(c *Config) { c.IdleTimeout = 2 * time.Hour },
		"DrainTimeout":             func(c *Config) { c.DrainTimeout = -1 },
		"MaxHeaderBytes":           func(c *Config) { c.MaxHeaderBytes = 100 },
		"MaxConnections":           func(c *Config) { c.MaxConnections = 0 },
		"MaxConnectionsPerAddress": func(c *Config) { c.MaxConnectionsPerAddress = -1 },
		"MaxStreamsPerConnection":  func(c *Config) { c.MaxStreamsPerConnection = 0 },
		"AdminAddr":                func(c *Config) { c.AdminAddr = "localhost:9464" },
		"ReadyPath":                func(c *Config) { c.ReadyPath = "system" },
		"ReadyTimeout":             func(c *Config) { c.ReadyTimeout = 0 },
		"ReadyInterval":            func(c *Config) { c.ReadyInterval = 0 },
		"ReadyCacheTime":           func(c *Config) { c.ReadyCacheTime = time.Hour },
		"AccessLog":                func(c *Config) { c.AccessLog = "xml" },
		"SampleInterval":           func(c *Config) { c.SampleInterval = 0 },
		"Upstream":                 func(c *Config) { c.Handler.Upstream = "" },
	} {
		cfg := validConfig()
		change(&cfg)
		err := cfg.Validate()
		fe, ok := errors.AsType[*FieldError](err)
		if !ok || fe.Field != field || fe.Allowed == "" || !strings.Contains(err.Error(), fe.Value) {
			t.Errorf("%s: %v, want an error of that field with its value and what is allowed", field, err)
		}
		if _, err := New(cfg, Options{}); err == nil {
			t.Errorf("%s: New took it", field)
		}
	}
	cfg := validConfig()
	cfg.QUIC.MaxIncomingStreams = 0
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "MaxIncomingStreams") {
		t.Errorf("QUIC: %v", err)
	}
	cfg.MaxHeaderBytes, cfg.ReadyPath = 0, ""
	if err := cfg.Validate(); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three bad settings: %v, want a line for each", err)
	}
}

func TestValidHostPort(t *testing.T) {
	for s, want := range map[string]bool{
		":8443": true, "127.0.0.1:0": true, "[::1]:65535": true, "[fe80::1%eth0]:1": true,
		"": false, ":": false, ":https": false, "host:1": false, ":65536": false, ":-1": false, ":+1": false, ":01": false,
		"1.2.3.4": false, "::1:1": false, "[::1]": false,
	} {
		if got := validHostPort(s); got != want {
			t.Errorf("validHostPort(%q) = %v", s, got)
		}
	}
}

func TestValidCertName(t *testing.T) {
	for s, want := range map[string]bool{
		"pacs": true, "pacs.example": true, "*.pacs.example": true, "192.0.2.1": true, "::1": true, "my_host-1": true,
		"": false, "*": false, "a..b": false, "-a": false, "a-": false, "a b": false, "a:1": false, "fe80::1%eth0": false,
		"a.*": false, "pacs.example.": false, strings.Repeat("a", 64): false, strings.Repeat("a.", 127): false,
	} {
		if got := validCertName(s); got != want {
			t.Errorf("validCertName(%q) = %v", s, got)
		}
	}
	for _, n := range defaultCertNames() {
		if !validCertName(n) {
			t.Errorf("default name %q is not valid", n)
		}
	}
}

func FuzzValidHostPort(f *testing.F) {
	for _, s := range []string{":8443", "[::1]:0", "a:b", "[", "1.2.3.4:99999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if validHostPort(s) && (strings.ContainsAny(s, " /\n") && !strings.Contains(s, "%")) {
			t.Errorf("accepted %q", s)
		}
	})
}

func FuzzValidCertName(f *testing.F) {
	for _, s := range []string{"pacs.test", "*.x", "::1", "1.2.3.4", "a..b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if validCertName(s) && (len(s) > 253 || strings.ContainsAny(s, " /\n,=%\x00")) {
			t.Errorf("accepted %q", s)
		}
	})
}
