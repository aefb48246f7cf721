package proxy

import (
	"net/http"
	"slices"
)

// cors answers for the archive which pages of other origins may use it (the
// Fetch standard's CORS protocol). Without origins it does nothing.
type cors struct {
	origins     []string
	credentials bool
}

func newCORS(cfg HandlerConfig) cors { return cors{cfg.CORSOrigins, cfg.CORSCredentials} }

// preflight answers a preflight from an allowed origin, and tells whether it did.
// Any other request is the archive's.
func (c cors) preflight(w http.ResponseWriter, r *http.Request) bool {
	method := r.Header.Get("Access-Control-Request-Method")
	if r.Method != http.MethodOptions || method == "" || !c.allowed(r) {
		return false
	}
	h := w.Header()
	c.allow(r, h)
	h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", method)
	if headers := r.Header.Get("Access-Control-Request-Headers"); headers != "" {
		h.Set("Access-Control-Allow-Headers", headers)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allow lets an allowed origin read an answer with header h. What the archive
// says about it is replaced: browsers refuse a header that is there twice.
func (c cors) allow(r *http.Request, h http.Header) {
	if len(c.origins) == 0 {
		return
	}
	h.Add("Vary", "Origin")
	if !c.allowed(r) {
		return
	}
	origin := r.Header.Get("Origin")
	if c.origins[0] == "*" {
		origin = "*"
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Del("Access-Control-Allow-Credentials")
	if c.credentials {
		h.Set("Access-Control-Allow-Credentials", "true")
	}
	if h.Get("Access-Control-Expose-Headers") == "" {
		h.Set("Access-Control-Expose-Headers", "Content-Length, Content-Location, ETag, Link, Location, Warning")
	}
}

func (c cors) allowed(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && len(c.origins) > 0 && (c.origins[0] == "*" || slices.Contains(c.origins, origin))
}
