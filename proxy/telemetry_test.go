package proxy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// What telemetry adds to a request, the access log's line included.
func BenchmarkTelemetry(b *testing.B) {
	h := &telemetry{
		next: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			tellRecord(r, Exchange{Outcome: OutcomeComplete, UpstreamTime: 1, ResponseBytes: 1000})
		}),
		metrics: newMetrics("test"),
		access:  newAccessLog(AccessLogJSON, false, io.Discard),
		log:     slog.New(slog.DiscardHandler),
		running: new(atomic.Int64),
	}
	r := httptest.NewRequest(http.MethodGet, "/dicom-web/studies/1.2.840.113619.2.55/series?limit=10&PatientName=x", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discardWriter{}, r)
	}
}

// A status that came before the final one is not the status of the response,
// and Alt-Svc belongs to the final one.
func TestStatusWriter(t *testing.T) {
	for name, tt := range map[string]struct {
		write  func(http.ResponseWriter)
		status int
	}{
		"explicit":   {func(w http.ResponseWriter) { w.WriteHeader(404); w.WriteHeader(500) }, 404},
		"interim":    {func(w http.ResponseWriter) { w.WriteHeader(103); w.WriteHeader(204) }, 204},
		"switching":  {func(w http.ResponseWriter) { w.WriteHeader(101) }, 101},
		"body alone": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "x") }, 200},
		"flush":      {func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }, 200},
		"nothing":    {func(http.ResponseWriter) {}, 0},
	} {
		rec := httptest.NewRecorder()
		w := &statusWriter{ResponseWriter: rec, altSvc: altSvc{overTCP: "clear"}, protocol: "h2"}
		tt.write(w)
		if w.status != tt.status {
			t.Errorf("%s: status %d, want %d", name, w.status, tt.status)
		}
		if got := rec.Header().Get("Alt-Svc"); (got == "clear") != (tt.status != 0) {
			t.Errorf("%s: Alt-Svc %q", name, got)
		}
	}
}
