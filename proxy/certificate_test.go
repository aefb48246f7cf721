package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fastpacs/internal/selfsign"
)

// testCertificates returns a self-signed store on a clock that *now sets, and
// its log.
func testCertificates(t *testing.T, dir string, now *time.Time, names ...string) (*certificates, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	return &certificates{
		stateDir: dir, names: names,
		now:    func() time.Time { return *now },
		log:    slog.New(slog.NewTextHandler(&log, nil)),
		onLoad: func(time.Time) {},
	}, &log
}

func mustLoad(t *testing.T, c *certificates) *x509.Certificate {
	t.Helper()
	if err := c.load(); err != nil {
		t.Fatal(err)
	}
	cert, err := c.get(nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Leaf
}

func TestSelfSignedIsKeptAndReused(t *testing.T) {
	now := time.Now()
	dir := filepath.Join(t.TempDir(), "state", "deep")
	c, log := testCertificates(t, dir, &now, "pacs.test", "192.0.2.1")
	first := mustLoad(t, c)

	fingerprint, spki := Fingerprints(first)
	for _, want := range []string{"sha256=" + fingerprint, spki} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, log)
		}
	}
	if raw, err := base64.StdEncoding.DecodeString(spki); err != nil || len(raw) != 32 || len(fingerprint) != 64 {
		t.Errorf("fingerprints %q and %q are not of SHA-256", fingerprint, spki)
	}
	for _, name := range []string{"pacs.test", "192.0.2.1"} {
		if err := first.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}

	info, err := os.Stat(filepath.Join(dir, selfSignedFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %04o, want 0600", info.Mode().Perm())
	}
	if d, err := os.Stat(dir); err != nil || d.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v %v, want mode 0700", d.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v (%v), want the one file", entries, err)
	}

	// Another process, names in another order and case of address.
	c, _ = testCertificates(t, dir, &now, "192.0.2.1", "pacs.test")
	if again := mustLoad(t, c); !again.Equal(first) {
		t.Error("the kept certificate was not used again")
	}
}

func TestSelfSignedIsRemade(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, c *certificates, now *time.Time, file string)
		remade bool
	}{
		{"a day later", func(_ *testing.T, _ *certificates, now *time.Time, _ string) { *now = now.Add(24 * time.Hour) }, false},
		{"31 days before its end", func(_ *testing.T, _ *certificates, now *time.Time, _ string) {
			*now = now.Add(selfSignedValidity - 31*24*time.Hour)
		}, false},
		{"29 days before its end", func(_ *testing.T, _ *certificates, now *time.Time, _ string) {
			*now = now.Add(selfSignedValidity - 29*24*time.Hour)
		}, true},
		{"other names", func(_ *testing.T, c *certificates, _ *time.Time, _ string) { c.names = []string{"other.test"} }, true},
		{"damaged", func(t *testing.T, _ *certificates, _ *time.Time, file string) { write(t, file, "rubbish", 0o600) }, true},
		{"too large", func(t *testing.T, _ *certificates, _ *time.Time, file string) {
			write(t, file, strings.Repeat("x", maxKeptCertificate+1), 0o600)
		}, true},
		{"read by others", func(t *testing.T, _ *certificates, _ *time.Time, file string) {
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Now()
			dir := t.TempDir()
			c, _ := testCertificates(t, dir, &now, "pacs.test")
			before := mustLoad(t, c)
			tt.change(t, c, &now, filepath.Join(dir, selfSignedFile))
			after := mustLoad(t, c)
			if remade := !after.Equal(before); remade != tt.remade {
				t.Errorf("remade: %v, want %v", remade, tt.remade)
			}
			if again := mustLoad(t, c); !again.Equal(after) {
				t.Error("made another one at the next load")
			}
		})
	}
}

func TestSelfSignedNeedsAStateDir(t *testing.T) {
	now := time.Now()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "", 0o600)
	c, _ := testCertificates(t, file, &now, "pacs.test")
	if err := c.load(); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("load with a file as the state directory: %v, want an error that names it", err)
	}
}

func TestConfiguredCertificateReload(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	first := writePair(t, certFile, keyFile, time.Now())

	now := time.Now()
	c, log := testCertificates(t, "", &now)
	c.certFile, c.keyFile = certFile, keyFile
	if got := mustLoad(t, c); !got.Equal(first.Leaf) {
		t.Fatal("another certificate than the configured one")
	}
	write(t, certFile, "half a fi", 0o600)
	if err := c.load(); err == nil || !strings.Contains(err.Error(), certFile) {
		t.Errorf("load of a broken file: %v, want an error that names it", err)
	}
	if got, _ := c.get(nil); !got.Leaf.Equal(first.Leaf) {
		t.Error("a failed load changed the certificate")
	}
	second := writePair(t, certFile, keyFile, time.Now().Add(-48*time.Hour)) // has ended
	if got := mustLoad(t, c); !got.Equal(second.Leaf) {
		t.Error("load did not take the new certificate")
	}
	if !strings.Contains(log.String(), "outside its validity") {
		t.Errorf("no warning of a certificate that has ended:\n%s", log)
	}
}

func TestNoCertificateYet(t *testing.T) {
	if cert, err := new(certificates).get(nil); err == nil {
		t.Errorf("get before load = %v, want an error", cert)
	}
}

func FuzzParseKeptCertificate(f *testing.F) {
	cert, err := selfsign.New(time.Now(), time.Hour, "pacs.test")
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), selfSignedFile)
	if err := keepCertificate(path, cert); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		cert, err := parseKeptCertificate(text)
		if (err == nil) != (cert.Leaf != nil && cert.PrivateKey != nil) {
			t.Errorf("certificate %v with error %v", cert, err)
		}
	})
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// writePair makes a certificate for pacs.test and 127.0.0.1, valid for a day
// from about now, and writes it into two PEM files.
func writePair(t testing.TB, certFile, keyFile string, now time.Time) tls.Certificate {
	t.Helper()
	cert, err := selfsign.New(now, 24*time.Hour, "pacs.test", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "both.pem")
	if err := keepCertificate(whole, cert); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	i := strings.Index(string(text), "-----BEGIN PRIVATE KEY")
	write(t, certFile, string(text[:i]), 0o600)
	write(t, keyFile, string(text[i:]), 0o600)
	return cert
}
