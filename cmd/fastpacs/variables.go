package main

// variable describes one field of config.
type variable struct {
	name string // FASTPACS_...
	help string // what it is
	// allowed is what it may be. One that is "A to B" is a range, and a test holds
	// it against what the packages take.
	allowed string
	// sets names the settings of the packages that the variable stands for, as
	// their errors do (see blame).
	sets []string
}

// section is a group of variables under a heading.
type section struct {
	heading   string
	variables []variable
}

const (
	aBool    = "true or false"
	aBaseURL = "a URL with http:// or https:// and without query, user or password"
	aListen  = "ADDRESS:PORT or :PORT, with an IP address"
)

// sections is the whole reference of the configuration, in the order of config:
// --help, configs/serve.env and the table in README.md are made from it.
func sections() []section {
	return []section{
		{"The PACS", []variable{
			{
				name: "FASTPACS_UPSTREAM", sets: []string{"Upstream"},
				help:    "Where the PACS serves DICOMweb, such as http://127.0.0.1:8042. The one variable that must be set. A path in it is put in front of the path of every request.",
				allowed: aBaseURL,
			},
			{
				name: "FASTPACS_UPSTREAM_HOST", sets: []string{"UpstreamHost"},
				help:    "Host header for the PACS. Not set: the client's, from which a PACS derives the URLs in its answers.",
				allowed: "a host, perhaps with a port",
			},
			{
				name: "FASTPACS_UPSTREAM_CA", sets: []string{"UpstreamCAFile"},
				help:    "PEM file of the authorities that may vouch for an https PACS. Not set: those of the system.",
				allowed: "a file",
			},
			{
				name: "FASTPACS_UPSTREAM_SERVER_NAME", sets: []string{"UpstreamServerName"},
				help:    "Name to expect in the certificate of an https PACS. Not set: the host of FASTPACS_UPSTREAM.",
				allowed: "a DNS name or an IP address",
			},
			{
				name: "FASTPACS_UPSTREAM_INSECURE", sets: []string{"UpstreamInsecure"},
				help:    "Take any certificate from an https PACS. Only on a network of your own.",
				allowed: aBool,
			},
			{
				name: "FASTPACS_UPSTREAM_RESPONSE_TIMEOUT", sets: []string{"ResponseHeaderTimeout"},
				help:    "How long the PACS may take to begin an answer. Some collect a whole study first.",
				allowed: "1s to 24h",
			},
			{
				name: "FASTPACS_UPSTREAM_IDLE_TIMEOUT", sets: []string{"UpstreamIdleTimeout"},
				help:    "How long an unused connection to the PACS is kept. Keep it below what the PACS keeps: Orthanc closes after 1s. 0s keeps none.",
				allowed: "0s to 1h",
			},
			{
				name: "FASTPACS_UPSTREAM_MAX_CONNECTIONS", sets: []string{"MaxUpstreamConnections"},
				help:    "Connections to the PACS at a time for reading, and as many again for storing. Further requests wait.",
				allowed: "1 to 65536",
			},
			{
				name: "FASTPACS_READY_PATH", sets: []string{"ReadyPath"},
				help:    "Path on the PACS that is fetched by GET to see whether it answers. Any HTTP status below 500 will do.",
				allowed: "a path that begins with /",
			},
		}},
		{"Where clients connect", []variable{
			{
				name: "FASTPACS_LISTEN", sets: []string{"ListenAddr"},
				help:    "TCP for HTTP/1.1 and 2, and UDP with the same number for HTTP/3. Without an address: all addresses of the machine.",
				allowed: aListen,
			},
			{
				name: "FASTPACS_HTTP3", sets: []string{"HTTP3"},
				help:    "Serve HTTP/3, and tell browsers of it by Alt-Svc.",
				allowed: aBool,
			},
			{
				name: "FASTPACS_ADVERTISED_PORT", sets: []string{"AdvertisedPort"},
				help:    "UDP port to tell browsers, when a container or a firewall maps another port to ours. 0: the one listened on.",
				allowed: "0 to 65535",
			},
			{
				name: "FASTPACS_ALT_SVC_MAX_AGE", sets: []string{"AltSvcMaxAge"},
				help:    "How long a browser that came over TCP may remember that there is HTTP/3. Keep it short: on a network that drops UDP it is wrong.",
				allowed: "1s to 720h",
			},
			{
				name: "FASTPACS_ALT_SVC_CLEAR", sets: []string{"AltSvcClear"},
				help:    "Tell browsers to forget HTTP/3: the way back when UDP turns out to be blocked.",
				allowed: aBool,
			},
		}},
		{"Certificate", []variable{
			{
				name: "FASTPACS_TLS_CERT", sets: []string{"CertFile"},
				help:    "PEM file with the certificate and its chain, read again on SIGHUP. Not set: a self-signed certificate is made.",
				allowed: "a file, set together with FASTPACS_TLS_KEY",
			},
			{
				name: "FASTPACS_TLS_KEY", sets: []string{"KeyFile"},
				help:    "PEM file with the private key.",
				allowed: "a file, set together with FASTPACS_TLS_CERT",
			},
			{
				name: "FASTPACS_TLS_NAMES", sets: []string{"SelfSignedNames"},
				help:    "What the self-signed certificate is for. Not set: the host name, localhost, 127.0.0.1 and ::1.",
				allowed: "DNS names or IP addresses, with commas between them",
			},
			{
				name: "FASTPACS_TLS_MIN_VERSION", sets: []string{"MinTLSVersion"},
				help:    "Oldest TLS version for HTTP/1.1 and 2. HTTP/3 always has 1.3.",
				allowed: "1.2 or 1.3",
			},
			{
				name: "FASTPACS_STATE_DIR", sets: []string{"StateDir"},
				help:    "Directory that keeps the self-signed certificate over restarts. Made if missing.",
				allowed: "a directory",
			},
		}},
		{"How it sends", []variable{
			{
				name: "FASTPACS_CC", sets: []string{"quicnet.Law"},
				help:    "Congestion controller of HTTP/3: improved FAST, the static original FAST, or the plain reno of quic-go.",
				allowed: "improved, static or reno",
			},
			{
				name: "FASTPACS_QUIC_IDLE_TIMEOUT", sets: []string{"quicnet.MaxIdleTimeout"},
				help:    "An HTTP/3 connection ends after so long without a packet from the client.",
				allowed: "1s to 1h",
			},
			{
				name: "FASTPACS_QUIC_PACKET_SIZE", sets: []string{"quicnet.InitialPacketSize"},
				help:    "UDP payload to start with, in bytes. 0: 1280, or 1200 where that does not fit.",
				allowed: "0, or 1200 to 1452",
			},
			{
				name: "FASTPACS_QUIC_PROBE_MTU", sets: []string{"quicnet.DisablePathMTUDiscovery"},
				help:    "Find out whether larger packets get through. Turn it off on a path that loses large packets now and then.",
				allowed: aBool,
			},
			{
				name: "FASTPACS_QUIC_UPLOAD_WINDOW", sets: []string{
					"quicnet.InitialStreamReceiveWindow", "quicnet.MaxStreamReceiveWindow",
					"quicnet.InitialConnectionReceiveWindow", "quicnet.MaxConnectionReceiveWindow",
				},
				help:    "What one HTTP/3 upload may have under way. One upload gets at most this much per round trip; one connection can take twice this of memory.",
				allowed: "1MiB to 512MiB",
			},
		}},
		{"What it does to requests", []variable{
			{
				name: "FASTPACS_TRUSTED_PROXIES", sets: []string{"TrustedProxies"},
				help:    "Networks of proxies in front of fastpacs whose Forwarded and X-Forwarded-* headers are believed. From all others they are dropped.",
				allowed: "networks such as 10.0.0.0/8, with commas between them",
			},
			{
				name: "FASTPACS_WEBSOCKET", sets: []string{"AllowWebSocket"},
				help:    "Pass WebSocket connections on (HTTP/1.1 only).",
				allowed: aBool,
			},
			{
				name: "FASTPACS_CORS_ORIGINS", sets: []string{"CORSOrigins"},
				help:    "Origins of viewers on other hosts that may use the PACS. Preflights are then answered by fastpacs. Not set: left to the PACS.",
				allowed: "origins such as https://viewer.example, with commas between them, or * alone",
			},
			{
				name: "FASTPACS_CORS_CREDENTIALS", sets: []string{"CORSCredentials"},
				help:    "Let those viewers send cookies and passwords.",
				allowed: "true or false, true only with FASTPACS_CORS_ORIGINS other than *",
			},
			{
				name: "FASTPACS_REWRITE_URLS", sets: []string{"RewriteURLs"},
				help:    "Replace the URLs of the PACS in its JSON and XML answers, for a PACS that heeds neither Host nor Forwarded.",
				allowed: "true or false, true if FASTPACS_REWRITE_FROM or FASTPACS_PUBLIC_URL is set",
			},
			{
				name: "FASTPACS_REWRITE_FROM", sets: []string{"RewriteFrom"},
				help:    "Further URLs to replace, beyond FASTPACS_UPSTREAM, such as http://localhost:8080/dcm4chee-arc.",
				allowed: "URLs with http:// or https://, with commas between them",
			},
			{
				name: "FASTPACS_PUBLIC_URL", sets: []string{"PublicURL"},
				help:    "What to replace them with. Not set: the host that the client asked for.",
				allowed: aBaseURL,
			},
		}},
		{"Limits", []variable{
			{
				name: "FASTPACS_HEADER_TIMEOUT", sets: []string{"ReadHeaderTimeout"},
				help:    "Time for the TLS handshake, and for the header of a request.",
				allowed: "100ms to 5m",
			},
			{
				name: "FASTPACS_IDLE_TIMEOUT", sets: []string{"IdleTimeout"},
				help:    "A TCP connection without requests is closed after so long.",
				allowed: "1s to 1h",
			},
			{
				name: "FASTPACS_STALL_TIMEOUT", sets: []string{"BodyIdleTimeout"},
				help:    "A transfer in which no byte moves for so long is cut. As a whole a transfer may take any time.",
				allowed: "100ms to 1h",
			},
			{
				name: "FASTPACS_DRAIN_TIMEOUT", sets: []string{"DrainTimeout"},
				help:    "How long transfers may go on after SIGTERM.",
				allowed: "0s to 1h",
			},
			{
				name: "FASTPACS_MAX_REQUEST_SIZE", sets: []string{"MaxRequestBody"},
				help:    "Largest upload; a larger one gets the status 413. 0: any size.",
				allowed: "a number of bytes, or one with KiB, MiB or GiB",
			},
			{
				name: "FASTPACS_MAX_HEADER_SIZE", sets: []string{"MaxHeaderBytes"},
				help:    "Largest header of a request.",
				allowed: "4KiB to 1MiB",
			},
			{
				name: "FASTPACS_MAX_CONNECTIONS", sets: []string{"MaxConnections"},
				help:    "Client connections at a time, TCP and QUIC together.",
				allowed: "1 to 1000000",
			},
			{
				name: "FASTPACS_MAX_CONNECTIONS_PER_ADDRESS", sets: []string{"MaxConnectionsPerAddress"},
				help:    "The same for one IPv4 address or one IPv6 /64 network. A whole hospital may sit behind one address.",
				allowed: "1 to 1000000",
			},
		}},
		{"Watching it", []variable{
			{
				name: "FASTPACS_ADMIN", sets: []string{"AdminAddr"},
				help:    "Where /metrics, /healthz and /readyz are, in plain HTTP without a password: keep it on loopback or a network of your own.",
				allowed: aListen + ", or off",
			},
			{
				name:    "FASTPACS_LOG_LEVEL",
				help:    "Least important messages to log, on standard error.",
				allowed: "DEBUG, INFO, WARN or ERROR",
			},
			{
				name:    "FASTPACS_LOG_FORMAT",
				help:    "Form of those messages.",
				allowed: "text or json",
			},
			{
				name: "FASTPACS_ACCESS_LOG", sets: []string{"AccessLog"},
				help:    "Form of the access log, a line for each request, on standard output.",
				allowed: "json, text or off",
			},
			{
				name: "FASTPACS_ACCESS_LOG_QUERY_VALUES", sets: []string{"AccessLogQueryValues"},
				help:    "Log query values too. They hold names and numbers of patients: leave it off outside a laboratory.",
				allowed: aBool,
			},
		}},
	}
}
