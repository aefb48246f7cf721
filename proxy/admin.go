package proxy

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// newAdminServer serves the operator, in plain HTTP and without authentication:
//
//	/         version and what there is
//	/metrics  Prometheus
//	/healthz  200 while the process is alive
//	/readyz   200 while requests can be answered: serving, not draining, and the
//	          upstream answers; 503 with the reason otherwise
func newAdminServer(version string, gatherer prometheus.Gatherer, ready func(*http.Request) error, log *slog.Logger) *http.Server {
	mux := http.NewServeMux()
	text := func(w http.ResponseWriter, status int, line string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, line+"\n")
	}
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, fmt.Sprintf("fastpacs %s\n/metrics\n/healthz\n/readyz", version))
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready(r); err != nil {
			text(w, http.StatusServiceUnavailable, "not ready: "+err.Error())
			return
		}
		text(w, http.StatusOK, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{
		ErrorLog:            newErrorLog(log),
		MaxRequestsInFlight: 4,
		Timeout:             10 * time.Second,
	}))
	return &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      90 * time.Second, // above any probe's timeout
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          newErrorLog(log),
	}
}
