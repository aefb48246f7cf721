package main

import (
	"log/slog"
	"net/netip"
	"time"

	"fastpacs/cc"
	"fastpacs/proxy"
)

// config is all that the environment can set; variables.go describes each.
type config struct {
	Upstream                string        `env:"FASTPACS_UPSTREAM"`
	UpstreamHost            string        `env:"FASTPACS_UPSTREAM_HOST"`
	UpstreamCA              string        `env:"FASTPACS_UPSTREAM_CA"`
	UpstreamServerName      string        `env:"FASTPACS_UPSTREAM_SERVER_NAME"`
	UpstreamInsecure        bool          `env:"FASTPACS_UPSTREAM_INSECURE"`
	UpstreamResponseTimeout time.Duration `env:"FASTPACS_UPSTREAM_RESPONSE_TIMEOUT"`
	UpstreamIdleTimeout     time.Duration `env:"FASTPACS_UPSTREAM_IDLE_TIMEOUT"`
	UpstreamMaxConnections  int           `env:"FASTPACS_UPSTREAM_MAX_CONNECTIONS"`
	ReadyPath               string        `env:"FASTPACS_READY_PATH"`

	Listen         string        `env:"FASTPACS_LISTEN"`
	HTTP3          bool          `env:"FASTPACS_HTTP3"`
	AdvertisedPort int           `env:"FASTPACS_ADVERTISED_PORT"`
	AltSvcMaxAge   time.Duration `env:"FASTPACS_ALT_SVC_MAX_AGE"`
	AltSvcClear    bool          `env:"FASTPACS_ALT_SVC_CLEAR"`

	TLSCert       string   `env:"FASTPACS_TLS_CERT"`
	TLSKey        string   `env:"FASTPACS_TLS_KEY"`
	TLSNames      []string `env:"FASTPACS_TLS_NAMES"`
	TLSMinVersion string   `env:"FASTPACS_TLS_MIN_VERSION"`
	StateDir      string   `env:"FASTPACS_STATE_DIR"`

	CC               cc.Law        `env:"FASTPACS_CC"`
	QUICIdleTimeout  time.Duration `env:"FASTPACS_QUIC_IDLE_TIMEOUT"`
	QUICPacketSize   uint16        `env:"FASTPACS_QUIC_PACKET_SIZE"`
	QUICProbeMTU     bool          `env:"FASTPACS_QUIC_PROBE_MTU"`
	QUICUploadWindow size          `env:"FASTPACS_QUIC_UPLOAD_WINDOW"`

	TrustedProxies  []netip.Prefix `env:"FASTPACS_TRUSTED_PROXIES"`
	WebSocket       bool           `env:"FASTPACS_WEBSOCKET"`
	CORSOrigins     []string       `env:"FASTPACS_CORS_ORIGINS"`
	CORSCredentials bool           `env:"FASTPACS_CORS_CREDENTIALS"`
	RewriteURLs     bool           `env:"FASTPACS_REWRITE_URLS"`
	RewriteFrom     []string       `env:"FASTPACS_REWRITE_FROM"`
	PublicURL       string         `env:"FASTPACS_PUBLIC_URL"`

	HeaderTimeout            time.Duration `env:"FASTPACS_HEADER_TIMEOUT"`
	IdleTimeout              time.Duration `env:"FASTPACS_IDLE_TIMEOUT"`
	StallTimeout             time.Duration `env:"FASTPACS_STALL_TIMEOUT"`
	DrainTimeout             time.Duration `env:"FASTPACS_DRAIN_TIMEOUT"`
	MaxRequestSize           size          `env:"FASTPACS_MAX_REQUEST_SIZE"`
	MaxHeaderSize            size          `env:"FASTPACS_MAX_HEADER_SIZE"`
	MaxConnections           int           `env:"FASTPACS_MAX_CONNECTIONS"`
	MaxConnectionsPerAddress int           `env:"FASTPACS_MAX_CONNECTIONS_PER_ADDRESS"`

	Admin                string                `env:"FASTPACS_ADMIN"`
	LogLevel             slog.Level            `env:"FASTPACS_LOG_LEVEL"`
	LogFormat            logFormat             `env:"FASTPACS_LOG_FORMAT"`
	AccessLog            proxy.AccessLogFormat `env:"FASTPACS_ACCESS_LOG"`
	AccessLogQueryValues bool                  `env:"FASTPACS_ACCESS_LOG_QUERY_VALUES"`
}

// off stands for no address, since an empty variable means the default.
const off = "off"

// defaults are those of the packages.
func defaults() config {
	p := proxy.DefaultConfig()
	return config{
		Upstream:                p.Handler.Upstream,
		UpstreamHost:            p.Handler.UpstreamHost,
		UpstreamCA:              p.Handler.UpstreamCAFile,
		UpstreamServerName:      p.Handler.UpstreamServerName,
		UpstreamInsecure:        p.Handler.UpstreamInsecure,
		UpstreamResponseTimeout: p.Handler.ResponseHeaderTimeout,
		UpstreamIdleTimeout:     p.Handler.UpstreamIdleTimeout,
		UpstreamMaxConnections:  p.Handler.MaxUpstreamConnections,
		ReadyPath:               p.ReadyPath,

		Listen:         p.ListenAddr,
		HTTP3:          p.HTTP3,
		AdvertisedPort: p.AdvertisedPort,
		AltSvcMaxAge:   p.AltSvcMaxAge,
		AltSvcClear:    p.AltSvcClear,

		TLSCert:       p.CertFile,
		TLSKey:        p.KeyFile,
		TLSNames:      p.SelfSignedNames,
		TLSMinVersion: p.MinTLSVersion,
		StateDir:      p.StateDir,

		CC:               p.QUIC.Law,
		QUICIdleTimeout:  p.QUIC.MaxIdleTimeout,
		QUICPacketSize:   p.QUIC.InitialPacketSize,
		QUICProbeMTU:     !p.QUIC.DisablePathMTUDiscovery,
		QUICUploadWindow: size(p.QUIC.MaxStreamReceiveWindow),

		TrustedProxies:  p.Handler.TrustedProxies,
		WebSocket:       p.Handler.AllowWebSocket,
		CORSOrigins:     p.Handler.CORSOrigins,
		CORSCredentials: p.Handler.CORSCredentials,
		RewriteURLs:     p.Handler.RewriteURLs,
		RewriteFrom:     p.Handler.RewriteFrom,
		PublicURL:       p.Handler.PublicURL,

		HeaderTimeout:            p.ReadHeaderTimeout,
		IdleTimeout:              p.IdleTimeout,
		StallTimeout:             p.Handler.BodyIdleTimeout,
		DrainTimeout:             p.DrainTimeout,
		MaxRequestSize:           size(p.Handler.MaxRequestBody),
		MaxHeaderSize:            size(p.MaxHeaderBytes),
		MaxConnections:           p.MaxConnections,
		MaxConnectionsPerAddress: p.MaxConnectionsPerAddress,

		Admin:                p.AdminAddr,
		LogLevel:             slog.LevelInfo,
		LogFormat:            logText,
		AccessLog:            p.AccessLog,
		AccessLogQueryValues: p.AccessLogQueryValues,
	}
}

// proxy returns what c means for the proxy, not validated.
func (c config) proxy() proxy.Config {
	p := proxy.DefaultConfig()
	p.Handler.Upstream = c.Upstream
	p.Handler.UpstreamHost = c.UpstreamHost
	p.Handler.UpstreamCAFile = c.UpstreamCA
	p.Handler.UpstreamServerName = c.UpstreamServerName
	p.Handler.UpstreamInsecure = c.UpstreamInsecure
	p.Handler.ResponseHeaderTimeout = c.UpstreamResponseTimeout
	p.Handler.UpstreamIdleTimeout = c.UpstreamIdleTimeout
	p.Handler.MaxUpstreamConnections = c.UpstreamMaxConnections
	p.ReadyPath = c.ReadyPath

	p.ListenAddr = c.Listen
	p.HTTP3 = c.HTTP3
	p.AdvertisedPort = c.AdvertisedPort
	p.AltSvcMaxAge = c.AltSvcMaxAge
	p.AltSvcClear = c.AltSvcClear

	p.CertFile = c.TLSCert
	p.KeyFile = c.TLSKey
	p.SelfSignedNames = c.TLSNames
	p.MinTLSVersion = c.TLSMinVersion
	p.StateDir = c.StateDir

	p.QUIC.Law = c.CC
	p.QUIC.MaxIdleTimeout = c.QUICIdleTimeout
	p.QUIC.InitialPacketSize = c.QUICPacketSize
	p.QUIC.DisablePathMTUDiscovery = !c.QUICProbeMTU
	p.QUIC.MaxStreamReceiveWindow = uint64(c.QUICUploadWindow)
	p.QUIC.MaxConnectionReceiveWindow = 2 * uint64(c.QUICUploadWindow)

	p.Handler.TrustedProxies = c.TrustedProxies
	p.Handler.AllowWebSocket = c.WebSocket
	p.Handler.CORSOrigins = c.CORSOrigins
	p.Handler.CORSCredentials = c.CORSCredentials
	p.Handler.RewriteURLs = c.RewriteURLs
	p.Handler.RewriteFrom = c.RewriteFrom
	p.Handler.PublicURL = c.PublicURL

	p.ReadHeaderTimeout = c.HeaderTimeout
	p.IdleTimeout = c.IdleTimeout
	p.Handler.BodyIdleTimeout = c.StallTimeout
	p.DrainTimeout = c.DrainTimeout
	p.Handler.MaxRequestBody = int64(c.MaxRequestSize)
	p.MaxHeaderBytes = int(min(c.MaxHeaderSize, gib)) // above any that is allowed, within any int
	p.MaxConnections = c.MaxConnections
	p.MaxConnectionsPerAddress = c.MaxConnectionsPerAddress

	p.AdminAddr = c.Admin
	if c.Admin == off {
		p.AdminAddr = ""
	}
	p.AccessLog = c.AccessLog
	p.AccessLogQueryValues = c.AccessLogQueryValues
	return p
}
