package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// HandlerConfig says where the archive is and what may be done to an exchange.
// DefaultHandlerConfig gives every default; only Upstream has none.
type HandlerConfig struct {
	// Upstream is the base URL of the archive, http or https, perhaps with a path
	// that is put in front of every request's: "http://127.0.0.1:8042".
	Upstream string
	// UpstreamHost is the Host header sent upstream. Empty (default): the
	// client's, from which archives derive the URLs they answer with.
	UpstreamHost string
	// UpstreamCAFile is a PEM file of the authorities that may vouch for an https
	// upstream. Empty (default): those of the system.
	UpstreamCAFile string
	// UpstreamServerName is the name to expect in an https upstream's
	// certificate. Empty (default): the host of Upstream.
	UpstreamServerName string
	// UpstreamInsecure accepts any certificate of an https upstream. Default false.
	UpstreamInsecure bool

	// DialTimeout bounds connecting to the upstream, and then its TLS handshake.
	// 100 ms to 1 min, default 5 s.
	DialTimeout time.Duration
	// ResponseHeaderTimeout bounds the wait for an answer to begin, once the
	// request has been sent: archives may collect a whole study first. 1 s to
	// 24 h, default 10 min.
	ResponseHeaderTimeout time.Duration
	// BodyIdleTimeout cuts an exchange when the side that should send or take the
	// next byte of a body has not done so for that long. 100 ms to 1 h, default
	// 5 min, since QUIC and TCP report a reader's progress only now and then.
	BodyIdleTimeout time.Duration
	// UpstreamIdleTimeout is how long an unused upstream connection is kept. 0 to
	// 1 h, 0 keeps none; default 900 ms, as Orthanc closes them after 1 s.
	UpstreamIdleTimeout time.Duration
	// MaxUpstreamConnections bounds connections to the upstream for requests that
	// may be repeated, and again for those that may not; further requests wait. 1
	// to 65536, default 256.
	MaxUpstreamConnections int
	// MaxRequestBody is the largest request body, in bytes; larger ones get a 413.
	// 0 (default): no limit.
	MaxRequestBody int64

	// TrustedProxies are the networks of clients whose Forwarded and
	// X-Forwarded-* headers are believed and extended. Default none: they are
	// dropped.
	TrustedProxies []netip.Prefix
	// AllowWebSocket passes "Upgrade: websocket" on HTTP/1.1. Default false.
	AllowWebSocket bool

	// CORSOrigins are the origins ("https://viewer.example", or "*" alone) whose
	// pages may use the archive: preflights are answered here, without asking the
	// upstream. Default none: OPTIONS and CORS headers pass as they are.
	CORSOrigins []string
	// CORSCredentials lets those pages send cookies and authorization; not with
	// "*". Default false.
	CORSCredentials bool

	// RewriteURLs replaces the archive's own base URLs in bodies of type
	// application/dicom+json, application/json and application/dicom+xml and in
	// Location and Content-Location, for archives that do not honour Host and
	// Forwarded. Default false. Bodies are then asked for without compression.
	RewriteURLs bool
	// RewriteFrom are more base URLs of the archive, beyond Upstream and the
	// client's own host with Upstream's path: "http://localhost:8080/dcm4chee-arc".
	RewriteFrom []string
	// PublicURL replaces them. Empty (default): scheme and Host of the request.
	PublicURL string
}

// DefaultHandlerConfig returns the defaults. Upstream is still needed.
func DefaultHandlerConfig() HandlerConfig {
	return HandlerConfig{
		DialTimeout:            5 * time.Second,
		ResponseHeaderTimeout:  10 * time.Minute,
		BodyIdleTimeout:        5 * time.Minute,
		UpstreamIdleTimeout:    900 * time.Millisecond,
		MaxUpstreamConnections: 256,
	}
}

// Validate returns every setting that cannot be used, each as a *FieldError
// joined into one error, or nil. It does not look at files or the network.
func (c HandlerConfig) Validate() error {
	var errs []error
	check := func(ok bool, field string, value any, allowed string) {
		if !ok {
			errs = append(errs, &FieldError{field, fmt.Sprint(value), allowed})
		}
	}
	between := func(field string, value, lo, hi time.Duration) {
		check(lo <= value && value <= hi, field, value, fmt.Sprintf("%v to %v", lo, hi))
	}
	const baseURL = "an http or https URL with a host and without query, fragment, user or quotes"

	_, err := parseBaseURL(c.Upstream)
	check(err == nil, "Upstream", c.Upstream, baseURL)
	check(c.UpstreamHost == "" || validHost(c.UpstreamHost), "UpstreamHost", c.UpstreamHost, "empty or a host, perhaps with a port")

	between("DialTimeout", c.DialTimeout, 100*time.Millisecond, time.Minute)
	between("ResponseHeaderTimeout", c.ResponseHeaderTimeout, time.Second, 24*time.Hour)
	between("BodyIdleTimeout", c.BodyIdleTimeout, 100*time.Millisecond, time.Hour)
	between("UpstreamIdleTimeout", c.UpstreamIdleTimeout, 0, time.Hour)
	check(1 <= c.MaxUpstreamConnections && c.MaxUpstreamConnections <= 65536, "MaxUpstreamConnections", c.MaxUpstreamConnections, "1 to 65536")
	check(c.MaxRequestBody >= 0, "MaxRequestBody", c.MaxRequestBody, "0 (no limit) or a number of bytes")

	for _, p := range c.TrustedProxies {
		check(p.IsValid(), "TrustedProxies", p, "networks such as 10.0.0.0/8 or fd00::/8")
	}
	for _, o := range c.CORSOrigins {
		check(validOrigin(o) || o == "*" && len(c.CORSOrigins) == 1, "CORSOrigins", o, `origins such as https://viewer.example, or "*" alone`)
		check(o != "*" || !c.CORSCredentials, "CORSCredentials", c.CORSCredentials, `false while CORSOrigins is "*"`)
	}
	check(len(c.CORSOrigins) > 0 || !c.CORSCredentials, "CORSCredentials", c.CORSCredentials, "false without CORSOrigins")

	for _, u := range c.RewriteFrom {
		_, err := parseBaseURL(u)
		check(err == nil, "RewriteFrom", u, baseURL)
	}
	if c.PublicURL != "" {
		_, err := parseBaseURL(c.PublicURL)
		check(err == nil, "PublicURL", c.PublicURL, "empty or "+baseURL)
	}
	check(c.RewriteURLs || len(c.RewriteFrom) == 0 && c.PublicURL == "", "RewriteURLs", c.RewriteURLs, "true, since RewriteFrom or PublicURL is set")
	return errors.Join(errs...)
}

// parseBaseURL parses a URL that others are appended to or replaced by. What it
// accepts can stand in JSON strings and XML attributes without being escaped,
// apart from slashes.
func parseBaseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("scheme is neither http nor https")
	case u.Hostname() == "" || !validHost(u.Host):
		return nil, errors.New("host is missing or malformed")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("user, query or fragment is not possible here")
	case strings.ContainsAny(s, "\"'<>&\\ #"):
		return nil, errors.New("quotes and spaces are not possible here")
	}
	return u, nil
}

// validHost accepts a host with or without port, of the characters that names,
// addresses and ports are made of.
func validHost(s string) bool {
	if len(s) == 0 || len(s) > 300 {
		return false
	}
	for _, b := range []byte(s) {
		if !isAlphanumeric(b) && !strings.ContainsRune("-._:[]", rune(b)) {
			return false
		}
	}
	return true
}

func validOrigin(s string) bool {
	u, err := parseBaseURL(s)
	return err == nil && u.Path == ""
}

func isAlphanumeric(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}
