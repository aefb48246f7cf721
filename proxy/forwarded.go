package proxy

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwarder tells the archive who asked and how, in the two ways in use:
//
//	Forwarded: for=192.0.2.7;proto=https                  RFC 7239
//	X-Forwarded-For, -Proto, -Host, -Port                 by custom
//
// Forwarded has no host=: the archive gets the client's Host, and Orthanc's
// DICOMweb plugin takes a quoted host= (one with a port must be quoted) with its
// quotes into URLs.
type forwarder struct {
	trusted []netip.Prefix
}

// apply replaces the forwarding headers of out, a copy of in's with or without
// them.
func (f forwarder) apply(in *http.Request, out http.Header) {
	peer := peerAddr(in.RemoteAddr)
	for name := range out {
		if isForwardingHeader(name) {
			delete(out, name)
		}
	}

	scheme := "http"
	if in.TLS != nil {
		scheme = "https"
	}
	client := forwardedClient{scheme: scheme, host: in.Host}
	if f.trusts(peer) {
		client.believe(in.Header)
	}
	last := forwardedElement{{"for", forwardedNode(peer)}, {"proto", scheme}}
	client.elements = append(client.elements, last)
	if peer.IsValid() {
		client.addrs = append(client.addrs, peer.String())
	}

	out.Set("Forwarded", joinForwarded(client.elements))
	if len(client.addrs) > 0 {
		out.Set("X-Forwarded-For", strings.Join(client.addrs, ", "))
	}
	out.Set("X-Forwarded-Proto", client.scheme)
	if client.host != "" {
		out.Set("X-Forwarded-Host", client.host)
	}
	out.Set("X-Forwarded-Port", client.publicPort())
}

func (f forwarder) trusts(peer netip.Addr) bool {
	for _, p := range f.trusted {
		if p.Contains(peer) {
			return true
		}
	}
	return false
}

// publicScheme is the scheme that the client used, as far as we may believe it.
func (f forwarder) publicScheme(in *http.Request) string {
	client := forwardedClient{scheme: "http"}
	if in.TLS != nil {
		client.scheme = "https"
	}
	if f.trusts(peerAddr(in.RemoteAddr)) {
		client.believe(in.Header)
	}
	return client.scheme
}

// isForwardingHeader is true for the headers that say where a request came from,
// with underscores too, which CGI-like archives cannot tell from hyphens.
func isForwardingHeader(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
	return name == "forwarded" || name == "x-real-ip" || name == "x-forwarded" || strings.HasPrefix(name, "x-forwarded-")
}

// forwardedClient is what is known of the client and the proxies before us.
type forwardedClient struct {
	scheme, host string
	port         string // "" if not said
	elements     []forwardedElement
	addrs        []string
}

// believe takes over what a trusted proxy says. What it does not say in one way
// is taken from the other; what cannot be parsed is dropped.
func (c *forwardedClient) believe(h http.Header) {
	for _, list := range h["X-Forwarded-For"] {
		for addr := range strings.SplitSeq(list, ",") {
			if addr = strings.TrimSpace(addr); isForwardedForValue(addr) {
				c.addrs = append(c.addrs, addr)
			}
		}
	}
	proto := strings.ToLower(firstInList(h.Get("X-Forwarded-Proto")))
	saidProto := proto == "http" || proto == "https"
	if saidProto {
		c.scheme = proto
	}
	if host := firstInList(h.Get("X-Forwarded-Host")); validHost(host) {
		c.host = host
	}
	if port := firstInList(h.Get("X-Forwarded-Port")); isPort(port) {
		c.port = port
	}

	if elements, err := parseForwarded(strings.Join(h["Forwarded"], ",")); err == nil && len(elements) > 0 {
		c.elements = elements
		if p := strings.ToLower(elements[0].get("proto")); !saidProto && (p == "http" || p == "https") {
			c.scheme = p
		}
		return
	}
	for i, addr := range c.addrs {
		e := forwardedElement{{"for", forwardedForValue(addr)}}
		if i == 0 && saidProto {
			e = append(e, forwardedPair{"proto", proto})
		}
		c.elements = append(c.elements, e)
	}
	if len(c.addrs) == 0 && saidProto {
		c.elements = append(c.elements, forwardedElement{{"for", "unknown"}, {"proto", proto}})
	}
}

func (c *forwardedClient) publicPort() string {
	if c.port != "" {
		return c.port
	}
	if _, port, err := net.SplitHostPort(c.host); err == nil && isPort(port) {
		return port
	}
	if c.scheme == "https" {
		return "443"
	}
	return "80"
}

func firstInList(s string) string {
	s, _, _ = strings.Cut(s, ",")
	return strings.TrimSpace(s)
}

func isPort(s string) bool {
	if len(s) == 0 || len(s) > 5 {
		return false
	}
	for _, b := range []byte(s) {
		if b < '0' || b > '9' {
			return false
		}
	}
	return true
}

// isForwardedForValue accepts the addresses, names and ports that proxies put
// into X-Forwarded-For.
func isForwardedForValue(s string) bool { return validHost(s) }

// peerAddr is the address in an http.Request's RemoteAddr, without zone and not
// as an IPv4 address within IPv6. It is invalid if there is none.
func peerAddr(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap().WithZone("")
}

// forwardedNode is an address as a node of RFC 7239 section 6, not yet quoted.
func forwardedNode(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "unknown"
	case a.Is6():
		return "[" + a.String() + "]"
	default:
		return a.String()
	}
}

// forwardedForValue is an entry of X-Forwarded-For as a node (RFC 7239 section
// 7.4).
func forwardedForValue(s string) string {
	if a, err := netip.ParseAddr(s); err == nil {
		return forwardedNode(a.WithZone(""))
	}
	return s
}

// forwardedElement is one hop of a Forwarded header.
type forwardedElement []forwardedPair

type forwardedPair struct{ name, value string } // name in lower case, value without quotes

func (e forwardedElement) get(name string) string {
	for _, p := range e {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

func (e forwardedElement) has(name string) bool {
	return slices.ContainsFunc(e, func(p forwardedPair) bool { return p.name == name })
}

// maxForwardedElements bounds what a trusted proxy, or a loop, can make us keep.
const maxForwardedElements = 100

var errForwarded = errors.New("malformed Forwarded header")

// parseForwarded parses a Forwarded header (RFC 7239 section 4):
//
//	Forwarded   = 1#element           element = pair *( ";" pair ), each optional
//	pair        = token "=" ( token / quoted-string )
func parseForwarded(s string) ([]forwardedElement, error) {
	var elements []forwardedElement
	var e forwardedElement
	end := func() error {
		if len(e) > 0 {
			elements = append(elements, e)
			e = nil
		}
		if len(elements) > maxForwardedElements {
			return errForwarded
		}
		return nil
	}
	for {
		s = strings.TrimLeft(s, " \t")
		switch {
		case s == "":
			return elements, end()
		case s[0] == ',':
			if err := end(); err != nil {
				return nil, err
			}
			s = s[1:]
			continue
		case s[0] == ';':
			s = s[1:]
			continue
		}
		var p forwardedPair
		if p.name, s = cutToken(s); p.name == "" || !strings.HasPrefix(s, "=") {
			return nil, errForwarded
		}
		p.name = strings.ToLower(p.name)
		s = s[1:]
		if strings.HasPrefix(s, `"`) {
			var ok bool
			if p.value, s, ok = cutQuoted(s); !ok {
				return nil, errForwarded
			}
		} else if p.value, s = cutToken(s); p.value == "" {
			return nil, errForwarded
		}
		if e.has(p.name) {
			return nil, errForwarded // a parameter may occur once
		}
		e = append(e, p)
		if s = strings.TrimLeft(s, " \t"); s != "" && s[0] != ',' && s[0] != ';' {
			return nil, errForwarded
		}
	}
}

// cutToken splits s after its leading token (RFC 9110 section 5.6.2).
func cutToken(s string) (token, rest string) {
	i := 0
	for i < len(s) && isTokenByte(s[i]) {
		i++
	}
	return s[:i], s[i:]
}

func isTokenByte(b byte) bool {
	return isAlphanumeric(b) || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
}

// cutQuoted splits s after its leading quoted-string, without quotes and
// backslashes (RFC 9110 section 5.6.4).
func cutQuoted(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), s[i+1:], true
		case c == '\\' && i+1 < len(s):
			i++
			c = s[i]
			fallthrough
		default:
			if c < ' ' && c != '\t' || c == 0x7f {
				return "", "", false
			}
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// joinForwarded writes elements as a Forwarded header. proto is written in lower
// case and a host= that would need quotes is left out, both for Orthanc's sake.
func joinForwarded(elements []forwardedElement) string {
	var b strings.Builder
	for _, e := range elements {
		first := true
		for _, p := range e {
			token, rest := cutToken(p.value)
			quote := token == "" || rest != ""
			if p.name == "host" && quote {
				continue
			}
			if p.name == "proto" {
				p.value = strings.ToLower(p.value)
			}
			switch {
			case !first:
				b.WriteByte(';')
			case b.Len() > 0:
				b.WriteString(", ")
			}
			first = false
			b.WriteString(p.name)
			b.WriteByte('=')
			if quote {
				writeQuoted(&b, p.value)
			} else {
				b.WriteString(p.value)
			}
		}
	}
	return b.String()
}

func writeQuoted(b *strings.Builder, s string) {
	b.WriteByte('"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	b.WriteByte('"')
}
