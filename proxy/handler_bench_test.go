package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"
)

func benchmarkGET(b *testing.B, f front) {
	b.ReportAllocs()
	for b.Loop() {
		res, err := f.client.Get(f.url)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != 200 {
			b.Fatal(res.StatusCode, n, err)
		}
		b.SetBytes(n)
	}
}

func plainFront(b *testing.B, h http.Handler) front {
	s := httptest.NewServer(h)
	tr := &http.Transport{DisableCompression: true}
	b.Cleanup(func() {
		tr.CloseIdleConnections()
		s.Close()
	})
	return front{"h1", s.URL, clientOf(tr)}
}

// BenchmarkSmallGET is a small answer from the archive, and what each way of
// passing it on adds. stock is a bare httputil.ReverseProxy.
func BenchmarkSmallGET(b *testing.B) {
	archive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/dicom+json")
		_, _ = io.WriteString(w, `[{"00080005":{"vr":"CS","Value":["ISO_IR 100"]}}]`)
	})
	up := newTestUpstream(b, archive)
	target, _ := url.Parse(up)
	b.Run("direct", func(b *testing.B) { benchmarkGET(b, plainFront(b, archive)) })
	b.Run("stock", func(b *testing.B) {
		tr := &http.Transport{}
		defer tr.CloseIdleConnections()
		benchmarkGET(b, plainFront(b, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: tr}))
	})
	h := newBenchHandler(b, up)
	b.Run("h1", func(b *testing.B) { benchmarkGET(b, plainFront(b, h)) })
	b.Run("h1-tls", func(b *testing.B) { benchmarkGET(b, newHTTP1Front(b, h)) })
	b.Run("h2", func(b *testing.B) { benchmarkGET(b, newHTTP2Front(b, h)) })
	b.Run("h3", func(b *testing.B) { benchmarkGET(b, newHTTP3Front(b, h)) })
}

func newBenchHandler(b *testing.B, up string) *Handler {
	cfg := DefaultHandlerConfig()
	cfg.Upstream = up
	h, err := NewHandler(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(h.CloseIdleConnections)
	return h
}

// BenchmarkLargeGET is a body of 256 MiB from memory: served by the front itself
// and through the Handler.
func BenchmarkLargeGET(b *testing.B) {
	const size = 256 << 20
	block := bytes.Repeat([]byte("0123456789abcdef"), 64<<10/16)
	archive := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for range size / len(block) {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	h := newBenchHandler(b, newTestUpstream(b, archive))
	for _, tt := range []struct {
		name  string
		front func(testing.TB, http.Handler) front
	}{
		{"h1", func(_ testing.TB, h http.Handler) front { return plainFront(b, h) }},
		{"h1-tls", newHTTP1Front},
		{"h2", newHTTP2Front},
		{"h3", newHTTP3Front},
	} {
		b.Run("direct/"+tt.name, func(b *testing.B) { benchmarkGET(b, tt.front(b, archive)) })
		b.Run("proxied/"+tt.name, func(b *testing.B) { benchmarkGET(b, tt.front(b, h)) })
	}
}

// BenchmarkLargePOST is an upload of 64 MiB with known length over HTTP/1.1.
func BenchmarkLargePOST(b *testing.B) {
	const size = 64 << 20
	h := newBenchHandler(b, newTestUpstream(b, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n)
	}))
	f := plainFront(b, h)
	b.SetBytes(size)
	for b.Loop() {
		r, _ := http.NewRequestWithContext(context.Background(), "POST", f.url, io.LimitReader(new(pattern), size))
		r.ContentLength = size
		res, err := f.client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		_ = res.Body.Close()
	}
}
