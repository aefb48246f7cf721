package proxy

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"fastpacs/proxy/quicnet"
)

// Config says what a Server listens on, what it proves to clients and what it
// lets them use up. DefaultConfig gives every default; only Handler needs more.
type Config struct {
	// ListenAddr is the host:port of TCP (HTTP/1.1 and 2) and of UDP (HTTP/3).
	// An empty host means every address of the machine; port 0 any port that is
	// free for both. Default ":8443".
	ListenAddr string
	// HTTP3 serves HTTP/3 on UDP and advertises it. Default true.
	HTTP3 bool
	// AdvertisedPort is the UDP port that clients reach, for Alt-Svc, when a
	// container or a firewall maps it. 0 (default): the listening port.
	AdvertisedPort int
	// AltSvcMaxAge is how long a client that has not yet shown that UDP reaches
	// us may remember HTTP/3 (RFC 7838 ma). Short, so that a network that drops
	// UDP is forgotten soon. 1 s to 30 days, default 5 min.
	AltSvcMaxAge time.Duration
	// AltSvcConfirmedMaxAge is the same for a client that already speaks HTTP/3
	// to us. 1 s to 30 days, default 24 h.
	AltSvcConfirmedMaxAge time.Duration
	// AltSvcClear tells clients to forget HTTP/3 ("Alt-Svc: clear"), the way
	// back when UDP turns out to be blocked. Default false.
	AltSvcClear bool

	// CertFile and KeyFile are PEM files, both or neither. With neither a
	// self-signed certificate is made and kept in StateDir.
	CertFile, KeyFile string
	// StateDir holds what outlives a restart: the self-signed certificate.
	// Default /var/lib/fastpacs. Made with mode 0700 if missing.
	StateDir string
	// SelfSignedNames are the DNS names and IP addresses of the self-signed
	// certificate. Empty (default): the host name, localhost, 127.0.0.1, ::1.
	SelfSignedNames []string
	// MinTLSVersion is "1.2" (default) or "1.3", for TCP; QUIC is always 1.3.
	MinTLSVersion string

	// ReadHeaderTimeout bounds the TLS handshake and the reading of a request's
	// header. 100 ms to 5 min, default 10 s.
	ReadHeaderTimeout time.Duration
	// IdleTimeout closes a TCP connection without requests. 1 s to 1 h, default
	// 2 min. HTTP/3 has QUIC.MaxIdleTimeout.
	IdleTimeout time.Duration
	// DrainTimeout is how long requests in flight may go on once Run's context
	// has ended. 0 to 1 h, default 30 s.
	DrainTimeout time.Duration

	// MaxHeaderBytes bounds a request's header. 4 KiB to 1 MiB, default 64 KiB.
	MaxHeaderBytes int
	// MaxConnections bounds client connections, TCP and QUIC together. 1 to
	// 1,000,000, default 8192.
	MaxConnections int
	// MaxConnectionsPerAddress bounds those of one client address (IPv4) or /64
	// network (IPv6). 1 to 1,000,000, default 1024: a hospital may sit behind one
	// address.
	MaxConnectionsPerAddress int
	// MaxStreamsPerConnection bounds concurrent HTTP/2 requests of a connection.
	// 1 to 10,000, default 128. HTTP/3 has QUIC.MaxIncomingStreams.
	MaxStreamsPerConnection int

	// AdminAddr is the host:port of /metrics, /healthz and /readyz in plain HTTP.
	// Empty: none. Default 127.0.0.1:9464. It has no authentication.
	AdminAddr string
	// ReadyPath is fetched from the upstream by GET to tell whether it answers.
	// Default /system, which is cheap in Orthanc; other archives may answer 404,
	// which counts as reachable.
	ReadyPath string
	// ReadyTimeout bounds that GET. 10 ms to 1 min, default 5 s.
	ReadyTimeout time.Duration
	// ReadyInterval is how often the upstream is asked when nobody asks us.
	// 100 ms to 1 h, default 15 s.
	ReadyInterval time.Duration
	// ReadyCacheTime is how long an answer holds, so that probes of ours cannot
	// load the archive. 0 to 1 min, default 2 s.
	ReadyCacheTime time.Duration

	// AccessLog is off, text or json. Default json.
	AccessLog AccessLogFormat
	// AccessLogQueryValues logs query strings as sent. They hold patient names
	// and numbers. Default false: only the names of parameters are logged.
	AccessLogQueryValues bool
	// SampleInterval is how often congestion controllers are sampled for the
	// metrics. 10 ms to 1 min, default 1 s.
	SampleInterval time.Duration

	QUIC    quicnet.Config
	Handler HandlerConfig
}

// AccessLogFormat is the form of the access log.
type AccessLogFormat string

const (
	AccessLogOff  AccessLogFormat = "off"
	AccessLogText AccessLogFormat = "text"
	AccessLogJSON AccessLogFormat = "json"
)

// DefaultConfig returns the defaults. Handler still needs its upstream.
func DefaultConfig() Config {
	return Config{
		ListenAddr:            ":8443",
		HTTP3:                 true,
		AltSvcMaxAge:          5 * time.Minute,
		AltSvcConfirmedMaxAge: 24 * time.Hour,

		StateDir:      "/var/lib/fastpacs",
		MinTLSVersion: "1.2",

		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		DrainTimeout:      30 * time.Second,

		MaxHeaderBytes:           64 << 10,
		MaxConnections:           8192,
		MaxConnectionsPerAddress: 1024,
		MaxStreamsPerConnection:  128,

		AdminAddr:      "127.0.0.1:9464",
		ReadyPath:      "/system",
		ReadyTimeout:   5 * time.Second,
		ReadyInterval:  15 * time.Second,
		ReadyCacheTime: 2 * time.Second,

		AccessLog:      AccessLogJSON,
		SampleInterval: time.Second,

		QUIC:    quicnet.DefaultConfig(),
		Handler: DefaultHandlerConfig(),
	}
}

// FieldError is a setting that cannot be used.
type FieldError struct {
	Field   string // name in Config
	Value   string // as given
	Allowed string // what would be right
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s: %q is not allowed: must be %s", e.Field, e.Value, e.Allowed)
}

// Validate returns every setting that cannot be used, each as a *FieldError
// joined into one error, or nil. It does not look at the machine: files and
// ports are tried by New and Run.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, field string, value any, allowed string) {
		if !ok {
			errs = append(errs, &FieldError{field, fmt.Sprint(value), allowed})
		}
	}
	between := func(field string, value, lo, hi time.Duration) {
		check(lo <= value && value <= hi, field, value, fmt.Sprintf("%v to %v", lo, hi))
	}
	within := func(field string, value, lo, hi int) {
		check(lo <= value && value <= hi, field, value, fmt.Sprintf("%d to %d", lo, hi))
	}
	const day = 24 * time.Hour

	check(validHostPort(c.ListenAddr), "ListenAddr", c.ListenAddr, "host:port with a numeric port, the host empty or an IP address")
	within("AdvertisedPort", c.AdvertisedPort, 0, 65535)
	between("AltSvcMaxAge", c.AltSvcMaxAge, time.Second, 30*day)
	between("AltSvcConfirmedMaxAge", c.AltSvcConfirmedMaxAge, time.Second, 30*day)

	check((c.CertFile == "") == (c.KeyFile == ""), "CertFile and KeyFile", c.CertFile+" and "+c.KeyFile, "both set or both empty")
	check(c.CertFile != "" || c.StateDir != "", "StateDir", c.StateDir, "a directory, since there is no CertFile")
	for _, n := range c.SelfSignedNames {
		check(validCertName(n), "SelfSignedNames", n, "DNS names or IP addresses")
	}
	_, err := minTLSVersion(c.MinTLSVersion)
	check(err == nil, "MinTLSVersion", c.MinTLSVersion, "1.2 or 1.3")

	between("ReadHeaderTimeout", c.ReadHeaderTimeout, 100*time.Millisecond, 5*time.Minute)
	between("IdleTimeout", c.IdleTimeout, time.Second, time.Hour)
	between("DrainTimeout", c.DrainTimeout, 0, time.Hour)

	within("MaxHeaderBytes", c.MaxHeaderBytes, 4<<10, 1<<20)
	within("MaxConnections", c.MaxConnections, 1, 1_000_000)
	within("MaxConnectionsPerAddress", c.MaxConnectionsPerAddress, 1, 1_000_000)
	within("MaxStreamsPerConnection", c.MaxStreamsPerConnection, 1, 10_000)

	check(c.AdminAddr == "" || validHostPort(c.AdminAddr), "AdminAddr", c.AdminAddr, "empty, or host:port with a numeric port, the host empty or an IP address")
	check(strings.HasPrefix(c.ReadyPath, "/") && !strings.ContainsAny(c.ReadyPath, "?#"), "ReadyPath", c.ReadyPath, "a path that begins with /, without query")
	between("ReadyTimeout", c.ReadyTimeout, 10*time.Millisecond, time.Minute)
	between("ReadyInterval", c.ReadyInterval, 100*time.Millisecond, time.Hour)
	between("ReadyCacheTime", c.ReadyCacheTime, 0, time.Minute)

	check(c.AccessLog == AccessLogOff || c.AccessLog == AccessLogText || c.AccessLog == AccessLogJSON,
		"AccessLog", c.AccessLog, "off, text or json")
	between("SampleInterval", c.SampleInterval, 10*time.Millisecond, time.Minute)

	errs = append(errs, c.QUIC.Validate(), c.Handler.Validate())
	return errors.Join(errs...)
}

// validHostPort accepts an IP address or nothing as the host: a name would
// leave open which of its addresses is meant.
func validHostPort(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return false
	}
	if host == "" {
		return true
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}

// validCertName accepts an IP address or a DNS name of letters, digits,
// hyphens, underscores and dots, perhaps with a first label "*".
func validCertName(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return !strings.Contains(s, "%") // a zone means nothing to a client
	}
	if len(s) == 0 || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimPrefix(s, "*."), ".") {
		if len(label) == 0 || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, b := range []byte(label) {
			if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '-' && b != '_' {
				return false
			}
		}
	}
	return true
}

// defaultCertNames are the names by which this machine may be reached at all.
func defaultCertNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if h, err := os.Hostname(); err == nil && h != "localhost" && validCertName(h) {
		names = append([]string{h}, names...)
	}
	return names
}
