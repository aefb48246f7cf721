package quicnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
)

func TestHTTPRoundTrip(t *testing.T) {
	stls, ctls := testTLS(t)
	pc := testSocket(t)
	cfg := DefaultConfig()
	cfg.Controllers = &Controllers{}
	srv := &HTTPServer{
		TLS:    stls,
		Config: cfg,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p, ok := PathOf(r.Context()); !ok || p.Remote == nil {
				t.Error("no path for a request")
			}
			_, _ = io.Copy(w, r.Body)
		}),
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(pc) }()
	tr, err := NewHTTPTransport(ctls, DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	tr.DialAddr = func(context.Context, string) (net.Addr, error) { return pc.LocalAddr(), nil }
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	resp, err := (&http.Client{Transport: tr}).Post("https://pacs.test/", "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || !bytes.Equal(got, body) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	t.Log(cfg.Controllers.Len(), cfg.Controllers.Totals())
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}
