package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"fastpacs/proxy/quicnet"
)

// protocols are what fastpacs speaks with clients.
var protocols = []string{"h1", "h2", "h3"}

// client returns a client of f that speaks one protocol and no other. Its
// connections end with the test.
func (f *fastpacs) client(tb testing.TB, protocol string) *http.Client {
	tb.Helper()
	return newClient(tb, protocol, f.leaf)
}

func newClient(tb testing.TB, protocol string, leaf *x509.Certificate) *http.Client {
	tb.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	conf := &tls.Config{RootCAs: roots}
	if protocol == "h3" {
		t, err := quicnet.NewHTTPTransport(conf, quicnet.DefaultConfig())
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() {
			if err := t.Close(); err != nil {
				tb.Error(err)
			}
		})
		return &http.Client{Transport: t}
	}
	t := &http.Transport{
		TLSClientConfig:     conf,
		Protocols:           new(http.Protocols),
		DisableCompression:  true,
		MaxIdleConnsPerHost: 128,
		TLSHandshakeTimeout: 10 * time.Second,
	}
	t.Protocols.SetHTTP1(protocol == "h1")
	t.Protocols.SetHTTP2(protocol == "h2")
	tb.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

// answer is a whole response.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// fetch sends a request and reads the whole answer.
func fetch(ctx context.Context, c *http.Client, method, url string, header http.Header, body io.Reader) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return answer{}, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := c.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("%s %s: %s, then after %d bytes: %w", method, url, resp.Status, len(b), err)
	}
	return answer{resp.StatusCode, resp.Header, b}, nil
}

func get(ctx context.Context, c *http.Client, url string) (answer, error) {
	return fetch(ctx, c, http.MethodGet, url, nil, nil)
}
