package proxy

import (
	"errors"
	"net/http"
	"runtime"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the server's Prometheus metrics. Every label value comes from a
// fixed set: a client cannot make new series.
//
//	protocol   h1 h2 h3
//	method     GET HEAD POST PUT PATCH DELETE OPTIONS other
//	code       2xx 3xx 4xx 5xx, 1xx for a switched protocol
//	outcome    see doc.go, and "failed" for a programming error
//	transport  tcp quic
//	limit      total address
type metrics struct {
	requests         *prometheus.CounterVec   // protocol, method, code
	requestBytes     *prometheus.CounterVec   // protocol
	responseBytes    *prometheus.CounterVec   // protocol
	inFlight         *prometheus.GaugeVec     // protocol
	requestSeconds   *prometheus.HistogramVec // protocol
	upstreamSeconds  *prometheus.HistogramVec // protocol
	exchanges        *prometheus.CounterVec   // protocol, outcome
	panics           prometheus.Counter
	connections      *prometheus.GaugeVec   // protocol
	connectionsTotal *prometheus.CounterVec // protocol

	connectionsRefused *prometheus.CounterVec // transport, limit
	handshakeFailures  prometheus.Counter

	certificateExpiry prometheus.Gauge
	upstreamUp        prometheus.Gauge
	udpBuffer         *prometheus.GaugeVec // direction
	buildInfo         *prometheus.GaugeVec // version, goversion

	cc controllerMetrics
}

var protocols = []string{"h1", "h2", "h3"}

func newMetrics(version string) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histograms := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	// From a small answer on a local network to a study over a slow link.
	exchange := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

	m := &metrics{
		requests: counters("fastpacs_http_requests_total",
			"Requests answered, by protocol, method and class of status.", "protocol", "method", "code"),
		requestBytes: counters("fastpacs_http_request_body_bytes_total",
			"Bytes of request bodies read from clients.", "protocol"),
		responseBytes: counters("fastpacs_http_response_body_bytes_total",
			"Bytes of response bodies handed to clients' connections.", "protocol"),
		inFlight: gauges("fastpacs_http_requests_in_flight",
			"Requests being answered now.", "protocol"),
		requestSeconds: histograms("fastpacs_http_request_duration_seconds",
			"Time from a request's header to the end of its response.", exchange, "protocol"),
		upstreamSeconds: histograms("fastpacs_upstream_response_seconds",
			"Time from handing a request to the upstream until the header of its response, a request body between.", exchange, "protocol"),
		exchanges: counters("fastpacs_http_exchanges_total",
			"Exchanges ended, by how: complete, or who broke them off and how.", "protocol", "outcome"),
		panics: counter("fastpacs_http_panics_total",
			"Requests whose handler failed by a programming error."),
		connections: gauges("fastpacs_connections",
			"Client connections open now, by the protocol they negotiated (h3: from the first packet on).", "protocol"),
		connectionsTotal: counters("fastpacs_connections_total",
			"Client connections there have been, by the protocol they negotiated (h3: from the first packet on).", "protocol"),
		connectionsRefused: counters("fastpacs_connections_refused_total",
			"Client connections refused, by transport and by the limit that was reached.", "transport", "limit"),
		handshakeFailures: counter("fastpacs_tls_handshake_failures_total",
			"TCP connections that ended before their TLS handshake was complete."),
		certificateExpiry: gauge("fastpacs_certificate_expiry_timestamp_seconds",
			"End of validity of the certificate in use, in Unix time."),
		upstreamUp: gauge("fastpacs_upstream_up",
			"Whether the upstream answered the last probe (1) or not (0)."),
		udpBuffer: gauges("fastpacs_udp_socket_buffer_bytes",
			"Size of the HTTP/3 socket's buffers as the kernel granted it.", "direction"),
		buildInfo: gauges("fastpacs_build_info",
			"Always 1; says which build runs.", "version", "goversion"),
		cc: newControllerMetrics(),
	}
	m.buildInfo.WithLabelValues(version, runtime.Version()).Set(1)

	// Series exist from the start, so that rates see the first event.
	for _, p := range protocols {
		m.requestBytes.WithLabelValues(p)
		m.responseBytes.WithLabelValues(p)
		m.inFlight.WithLabelValues(p)
		m.requestSeconds.WithLabelValues(p)
		m.upstreamSeconds.WithLabelValues(p)
		m.connections.WithLabelValues(p)
		m.connectionsTotal.WithLabelValues(p)
		for _, o := range slices.Concat(Outcomes[:], []Outcome{outcomeFailed}) {
			m.exchanges.WithLabelValues(p, string(o))
		}
		for _, code := range []string{"2xx", "3xx", "4xx", "5xx"} {
			m.requests.WithLabelValues(p, http.MethodGet, code)
		}
	}
	for _, transport := range []string{"tcp", "quic"} {
		for _, limit := range []refusal{refusedByTotal, refusedByAddress} {
			m.connectionsRefused.WithLabelValues(transport, string(limit))
		}
	}
	return m
}

// register adds the metrics to r, which refuses names it already has.
func (m *metrics) register(r prometheus.Registerer) error {
	collectors := []prometheus.Collector{
		m.requests, m.requestBytes, m.responseBytes, m.inFlight, m.requestSeconds, m.upstreamSeconds,
		m.exchanges, m.panics, m.connections, m.connectionsTotal, m.connectionsRefused,
		m.handshakeFailures, m.certificateExpiry, m.upstreamUp, m.udpBuffer, m.buildInfo,
	}
	var errs []error
	for _, c := range append(collectors, m.cc.collectors()...) {
		errs = append(errs, r.Register(c))
	}
	return errors.Join(errs...)
}

func (m *metrics) connectionOpened(protocol string) {
	m.connections.WithLabelValues(protocol).Inc()
	m.connectionsTotal.WithLabelValues(protocol).Inc()
}

func (m *metrics) connectionClosed(protocol string) {
	m.connections.WithLabelValues(protocol).Dec()
}

func (m *metrics) setUpstreamUp(up bool) {
	v := 0.0
	if up {
		v = 1
	}
	m.upstreamUp.Set(v)
}

// observe counts a finished request.
func (m *metrics) observe(r *record) {
	m.requests.WithLabelValues(r.protocol, r.method, statusClass(r.status)).Inc()
	m.requestSeconds.WithLabelValues(r.protocol).Observe(r.duration.Seconds())
	m.requestBytes.WithLabelValues(r.protocol).Add(float64(r.exchange.RequestBytes))
	m.responseBytes.WithLabelValues(r.protocol).Add(float64(r.exchange.ResponseBytes))
	m.exchanges.WithLabelValues(r.protocol, string(r.exchange.Outcome)).Inc()
	if d := r.exchange.UpstreamTime; d > 0 {
		m.upstreamSeconds.WithLabelValues(r.protocol).Observe(d.Seconds())
	}
}

// statusClass is the class of a final status; an upstream may send any number.
func statusClass(status int) string {
	switch {
	case status < 200:
		return "1xx"
	case status < 300:
		return "2xx"
	case status < 400:
		return "3xx"
	case status < 500:
		return "4xx"
	}
	return "5xx"
}

// methodClass is a method as metrics and logs name it; methods are chosen by
// clients, so any other is "other".
func methodClass(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut,
		http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

// protocolName is the protocol of a request as metrics and logs name it.
func protocolName(r *http.Request) string {
	switch r.ProtoMajor {
	case 3:
		return "h3"
	case 2:
		return "h2"
	}
	return "h1"
}
