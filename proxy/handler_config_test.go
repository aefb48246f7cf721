package proxy

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestHandlerConfigValidate(t *testing.T) {
	valid := DefaultHandlerConfig()
	valid.Upstream = "http://127.0.0.1:8042"
	if err := valid.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		field string
		set   func(*HandlerConfig)
	}{
		{"Upstream", func(c *HandlerConfig) { c.Upstream = "" }},
		{"Upstream", func(c *HandlerConfig) { c.Upstream = "127.0.0.1:8042" }},
		{"Upstream", func(c *HandlerConfig) { c.Upstream = "ftp://pacs" }},
		{"Upstream", func(c *HandlerConfig) { c.Upstream = "http://:8042" }},
		{"Upstream", func(c *HandlerConfig) { c.Upstream = "http://pacs/?a=b" }},
		{"Upstream", func(c *HandlerConfig) { c.Upstream = "http://user:secret@pacs/" }},
		{"Upstream", func(c *HandlerConfig) { c.Upstream = "http://pacs/#x" }},
		{"UpstreamHost", func(c *HandlerConfig) { c.UpstreamHost = "a b" }},
		{"DialTimeout", func(c *HandlerConfig) { c.DialTimeout = 0 }},
		{"DialTimeout", func(c *HandlerConfig) { c.DialTimeout = time.Hour }},
		{"ResponseHeaderTimeout", func(c *HandlerConfig) { c.ResponseHeaderTimeout = 0 }},
		{"BodyIdleTimeout", func(c *HandlerConfig) { c.BodyIdleTimeout = time.Millisecond }},
		{"UpstreamIdleTimeout", func(c *HandlerConfig) { c.UpstreamIdleTimeout = -1 }},
		{"MaxUpstreamConnections", func(c *HandlerConfig) { c.MaxUpstreamConnections = 0 }},
		{"MaxRequestBody", func(c *HandlerConfig) { c.MaxRequestBody = -1 }},
		{"TrustedProxies", func(c *HandlerConfig) { c.TrustedProxies = []netip.Prefix{{}} }},
		{"CORSOrigins", func(c *HandlerConfig) { c.CORSOrigins = []string{"viewer.example"} }},
		{"CORSOrigins", func(c *HandlerConfig) { c.CORSOrigins = []string{"https://viewer.example/"} }},
		{"CORSOrigins", func(c *HandlerConfig) { c.CORSOrigins = []string{"*", "https://viewer.example"} }},
		{"CORSCredentials", func(c *HandlerConfig) { c.CORSOrigins, c.CORSCredentials = []string{"*"}, true }},
		{"CORSCredentials", func(c *HandlerConfig) { c.CORSCredentials = true }},
		{"RewriteFrom", func(c *HandlerConfig) { c.RewriteURLs, c.RewriteFrom = true, []string{"orthanc"} }},
		{"PublicURL", func(c *HandlerConfig) { c.RewriteURLs, c.PublicURL = true, `https://a"b` }},
		{"RewriteURLs", func(c *HandlerConfig) { c.PublicURL = "https://pacs.example" }},
	} {
		c := valid
		tt.set(&c)
		err := c.Validate()
		var field *FieldError
		if !errors.As(err, &field) || field.Field != tt.field || field.Allowed == "" {
			t.Errorf("%s: %v", tt.field, err)
		}
		if _, err := NewHandler(c, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: NewHandler took it", tt.field)
		}
	}
}

func TestUpstreamCAFile(t *testing.T) {
	c := DefaultHandlerConfig()
	c.Upstream = "https://127.0.0.1:1"
	for name, make := range map[string]func(string) error{
		"missing": func(string) error { return nil },
		"empty":   func(p string) error { return os.WriteFile(p, []byte("no certificate"), 0o600) },
	} {
		c.UpstreamCAFile = filepath.Join(t.TempDir(), name)
		if err := make(c.UpstreamCAFile); err != nil {
			t.Fatal(err)
		}
		if _, err := NewHandler(c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "UpstreamCAFile") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
