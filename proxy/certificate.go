package proxy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fastpacs/internal/selfsign"
)

const (
	selfSignedFile     = "selfsigned.pem"     // certificate and key, mode 0600, in StateDir
	selfSignedValidity = 397 * 24 * time.Hour // what browsers accept at most
	renewBefore        = 30 * 24 * time.Hour
	renewCheckInterval = 12 * time.Hour
)

// certificates holds the server's certificate: the configured one, or a
// self-signed one kept in the state directory. Handshakes read it while it is
// replaced.
type certificates struct {
	certFile, keyFile string
	stateDir          string
	names             []string // of a self-signed certificate
	now               func() time.Time
	log               *slog.Logger
	onLoad            func(notAfter time.Time)

	loading sync.Mutex // one load at a time
	current atomic.Pointer[tls.Certificate]
}

func (c *certificates) selfSigned() bool { return c.certFile == "" }

// get is a tls.Config.GetCertificate.
func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cert := c.current.Load(); cert != nil {
		return cert, nil
	}
	return nil, errors.New("proxy: no certificate loaded")
}

// load reads (or makes) the certificate and puts it into use. On an error the
// one in use stays.
func (c *certificates) load() error {
	c.loading.Lock()
	defer c.loading.Unlock()

	read := c.readConfigured
	if c.selfSigned() {
		read = c.readSelfSigned
	}
	cert, err := read()
	if err != nil {
		return err
	}
	old := c.current.Swap(&cert)
	c.onLoad(cert.Leaf.NotAfter)
	if old != nil && bytes.Equal(old.Certificate[0], cert.Certificate[0]) {
		c.log.Info("certificate unchanged", "not_after", cert.Leaf.NotAfter)
		return nil
	}
	fingerprint, spki := Fingerprints(cert.Leaf)
	c.log.Info("certificate in use",
		"self_signed", c.selfSigned(),
		"names", certNames(cert.Leaf),
		"not_after", cert.Leaf.NotAfter,
		"sha256", fingerprint,
		"spki_sha256", spki)
	if now := c.now(); now.After(cert.Leaf.NotAfter) || now.Before(cert.Leaf.NotBefore) {
		c.log.Warn("certificate is outside its validity; clients will refuse it",
			"not_before", cert.Leaf.NotBefore, "not_after", cert.Leaf.NotAfter)
	}
	return nil
}

func (c *certificates) readConfigured() (tls.Certificate, error) {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("proxy: loading certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	return withLeaf(cert)
}

// readSelfSigned reuses the kept certificate while it has the wanted names and
// time left, and makes another otherwise.
func (c *certificates) readSelfSigned() (tls.Certificate, error) {
	path := filepath.Join(c.stateDir, selfSignedFile)
	cert, err := readKeptCertificate(path)
	switch {
	case err == nil && !sameNames(cert.Leaf, c.names):
		c.log.Info("self-signed certificate has other names; making another", "path", path, "names", c.names)
	case err == nil && c.now().Add(renewBefore).After(cert.Leaf.NotAfter):
		c.log.Info("self-signed certificate is near its end; making another", "path", path, "not_after", cert.Leaf.NotAfter)
	case err == nil:
		return cert, nil
	case errors.Is(err, fs.ErrNotExist):
	default:
		c.log.Warn("kept self-signed certificate cannot be used; making another", "path", path, "error", err)
	}

	cert, err = selfsign.New(c.now(), selfSignedValidity, c.names...)
	if err != nil {
		return tls.Certificate{}, err
	}
	if err := keepCertificate(path, cert); err != nil {
		return tls.Certificate{}, err
	}
	return cert, nil
}

// maxKeptCertificate is far above what we write (about 1 KiB).
const maxKeptCertificate = 64 << 10

// readKeptCertificate reads what keepCertificate wrote. The key must not be
// readable by others; if it is, it may have leaked and is not used again.
func readKeptCertificate(path string) (tls.Certificate, error) {
	info, err := os.Stat(path)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("proxy: reading kept certificate: %w", err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return tls.Certificate{}, fmt.Errorf("proxy: %s has mode %04o, its key may have been read by others", path, perm)
	}
	if info.Size() > maxKeptCertificate {
		return tls.Certificate{}, fmt.Errorf("proxy: %s has %d bytes, more than %d", path, info.Size(), maxKeptCertificate)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("proxy: reading kept certificate: %w", err)
	}
	return parseKeptCertificate(text)
}

func parseKeptCertificate(text []byte) (tls.Certificate, error) {
	cert, err := tls.X509KeyPair(text, text)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("proxy: parsing kept certificate: %w", err)
	}
	return withLeaf(cert)
}

// keepCertificate writes certificate and key into one file, so that they can
// never be of two makes, by way of a temporary file, so that a crash leaves
// either the old or the new.
func keepCertificate(path string, cert tls.Certificate) error {
	key, ok := cert.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("proxy: keeping certificate: key is a %T, not ECDSA", cert.PrivateKey)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("proxy: keeping certificate: %w", err)
	}
	var text bytes.Buffer
	for _, b := range []*pem.Block{
		{Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		{Type: "PRIVATE KEY", Bytes: der},
	} {
		if err := pem.Encode(&text, b); err != nil {
			return fmt.Errorf("proxy: keeping certificate: %w", err)
		}
	}
	if err := writeFileAtomically(path, text.Bytes()); err != nil {
		return fmt.Errorf("proxy: keeping certificate: %w", err)
	}
	return nil
}

// writeFileAtomically makes path hold data with mode 0600, whole and on disk,
// or leaves it as it was.
func writeFileAtomically(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, filepath.Base(path)+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already once renamed
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func withLeaf(cert tls.Certificate) (tls.Certificate, error) {
	if cert.Leaf == nil {
		leaf, err := x509.ParseCertificate(cert.Certificate[0])
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("proxy: parsing certificate: %w", err)
		}
		cert.Leaf = leaf
	}
	return cert, nil
}

// Fingerprints returns the SHA-256 of a certificate in hexadecimal, as browsers
// show it, and that of its public key in base64 (RFC 7469), as Chromium's
// --ignore-certificate-errors-spki-list takes it.
func Fingerprints(leaf *x509.Certificate) (certificate, spki string) {
	c := sha256.Sum256(leaf.Raw)
	k := sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
	return strings.ToUpper(hex.EncodeToString(c[:])), base64.StdEncoding.EncodeToString(k[:])
}

func certNames(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// sameNames reports whether leaf is for exactly names, in any order.
func sameNames(leaf *x509.Certificate, names []string) bool {
	normal := func(names []string) []string {
		out := make([]string, 0, len(names))
		for _, n := range names {
			if ip := net.ParseIP(n); ip != nil {
				n = ip.String()
			}
			out = append(out, n)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(normal(certNames(leaf)), normal(names))
}

// minTLSVersion is the version number of a configured name.
func minTLSVersion(name string) (uint16, error) {
	switch name {
	case "1.2":
		return tls.VersionTLS12, nil
	case "1.3":
		return tls.VersionTLS13, nil
	}
	return 0, fmt.Errorf("proxy: unknown TLS version %q", name)
}
