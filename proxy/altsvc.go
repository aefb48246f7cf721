package proxy

import (
	"fmt"
	"net/http"
	"time"
)

// altSvc is the Alt-Svc header (RFC 7838) by which clients find HTTP/3.
//
// It is short-lived on HTTP/1.1 and 2: such a client may sit behind a network
// that drops UDP. A client that already speaks HTTP/3 has shown that UDP works,
// so there it lives longer, and the client starts with HTTP/3 next time.
type altSvc struct {
	overTCP, overQUIC string // header values; empty: no header
}

func newAltSvc(cfg Config, listeningPort int) altSvc {
	if cfg.AltSvcClear {
		return altSvc{overTCP: "clear", overQUIC: "clear"}
	}
	if !cfg.HTTP3 {
		return altSvc{}
	}
	port := listeningPort
	if cfg.AdvertisedPort != 0 {
		port = cfg.AdvertisedPort
	}
	value := func(maxAge time.Duration) string {
		return fmt.Sprintf(`h3=":%d"; ma=%d`, port, int64(maxAge/time.Second))
	}
	return altSvc{overTCP: value(cfg.AltSvcMaxAge), overQUIC: value(cfg.AltSvcConfirmedMaxAge)}
}

// set puts the header for a response over protocol into h, in place of the
// upstream's own, which names a port of the upstream.
func (a altSvc) set(h http.Header, protocol string) {
	v := a.overTCP
	if protocol == "h3" {
		v = a.overQUIC
	}
	if v == "" {
		h.Del("Alt-Svc")
		return
	}
	h["Alt-Svc"] = []string{v}
}
