package quicnet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"fastpacs/cc"
)

func TestDefaultConfig(t *testing.T) {
	qc, err := DefaultConfig().prepare()
	if err != nil {
		t.Fatal(err)
	}
	// 1 Gb/s over 100 ms keeps 12.5 MB on the way.
	if qc.MaxStreamReceiveWindow < 32<<20 || qc.MaxConnectionReceiveWindow < 64<<20 {
		t.Errorf("receive windows of %d and %d bytes", qc.MaxStreamReceiveWindow, qc.MaxConnectionReceiveWindow)
	}
	if qc.Allow0RTT || qc.EnableDatagrams {
		t.Error("0-RTT or datagrams are on")
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   string // empty: valid
	}{
		{"reno", func(c *Config) { c.Law = cc.LawReno }, ""},
		{"static", func(c *Config) { c.Law = cc.LawStatic }, ""},
		{"no law", func(c *Config) { c.Law = "" }, `Law is "": must be one of [improved static reno]`},
		{"unknown law", func(c *Config) { c.Law = "cubic" }, `Law is "cubic": must be one of`},
		{"short handshake", func(c *Config) { c.HandshakeTimeout = time.Millisecond }, "HandshakeTimeout is 1ms: must be 100ms to 1m"},
		{"short idle", func(c *Config) { c.MaxIdleTimeout = 0 }, "MaxIdleTimeout is 0s: must be 1s to 1h"},
		{"long keep-alive", func(c *Config) { c.KeepAlivePeriod = 16 * time.Second }, "KeepAlivePeriod is 16s: must be 0 to half of MaxIdleTimeout (15s)"},
		{"negative keep-alive", func(c *Config) { c.KeepAlivePeriod = -1 }, "KeepAlivePeriod is -1ns"},
		{"small window", func(c *Config) { c.MaxStreamReceiveWindow = 1 }, "MaxStreamReceiveWindow is 1: must be 65536 to 1073741824 bytes"},
		{"large window", func(c *Config) { c.MaxConnectionReceiveWindow = 1 << 31 }, "MaxConnectionReceiveWindow is 2147483648"},
		{"stream above connection", func(c *Config) { c.MaxStreamReceiveWindow = 65 << 20 }, "at most MaxConnectionReceiveWindow (67108864 bytes)"},
		{"initial above maximum", func(c *Config) { c.InitialStreamReceiveWindow = 33 << 20 }, "at most MaxStreamReceiveWindow"},
		{"initial connection above maximum", func(c *Config) { c.InitialConnectionReceiveWindow = 65 << 20 }, "InitialConnectionReceiveWindow is 68157440: must be at most"},
		{"no streams", func(c *Config) { c.MaxIncomingStreams = 0 }, "MaxIncomingStreams is 0: must be 1 to 65536"},
		{"retry always", func(c *Config) { c.RetryAbove = 0 }, ""},
		{"negative retry", func(c *Config) { c.RetryAbove = -1 }, "RetryAbove is -1: must be 0 to 65536"},
		{"small packets", func(c *Config) { c.InitialPacketSize = 1199 }, "InitialPacketSize is 1199: must be 0 or 1200 to 1452 bytes"},
		{"large packets", func(c *Config) { c.InitialPacketSize = 1453 }, "InitialPacketSize is 1453"},
		{"largest packets", func(c *Config) { c.InitialPacketSize = 1452 }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := DefaultConfig()
			tc.change(&c)
			err := c.Validate()
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want an error that says %q", err, tc.want)
			}
		})
	}
	c := Config{}
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "quicnet: ") < 5 {
		t.Errorf("a zero Config: want an error for each field, got %v", err)
	}
	if _, err := Listen(nil, nil, c); err == nil {
		t.Error("Listen takes an invalid Config")
	}
}

func TestUnknownLayoutIsRefused(t *testing.T) {
	unknown := errors.New("quichook: made for v0.65.0, linked with v0.66.0")
	c := DefaultConfig()
	for _, law := range cc.Laws() {
		c.Law = law
		if err := c.checkHook(nil); err != nil {
			t.Errorf("%s is refused with the hook in place: %v", law, err)
		}
		err := c.checkHook(unknown)
		if law == cc.LawReno {
			if err != nil {
				t.Errorf("reno needs no hook: %v", err)
			}
			continue
		}
		if !errors.Is(err, unknown) || !strings.Contains(err.Error(), "FASTPACS_CC=reno") {
			t.Errorf("%s without the hook: %v", law, err)
		}
	}
	c.Law = cc.LawReno
	c.NewController = func(bool, int64, cc.RTTSource) cc.Controller { return nil }
	if err := c.checkHook(unknown); !errors.Is(err, unknown) {
		t.Errorf("NewController without the hook: %v", err)
	}
}
