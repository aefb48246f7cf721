package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// upgrading answers an Upgrade request with 101 and then echoes.
func upgrading(c net.Conn, r *bufio.Reader) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	if u := req.Header.Get("Upgrade"); u != "" {
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+u+"\r\n\r\n")
		_, _ = io.Copy(c, r)
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
}

func TestG03Upgrade(t *testing.T) {
	up := newRawUpstream(t, upgrading)
	for _, tt := range []struct {
		name    string
		allow   bool
		header  string
		upgrade bool
	}{
		{"h2c", false, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", false},
		{"h2c, websocket allowed", true, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", false},
		{"list", true, "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", false},
		{"websocket", false, "Connection: Upgrade\r\nUpgrade: websocket\r\n", false},
		{"websocket allowed", true, "Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n", true},
		{"not in Connection", true, "Upgrade: websocket\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHandlerUnderTest(t, up, func(c *HandlerConfig) { c.AllowWebSocket = tt.allow })
			c := newRawClient(t, h)
			c.send(t, "GET /ws HTTP/1.1\r\nHost: pacs.test\r\n"+tt.header+"\r\n")
			head := c.readHead(t)
			if got := strings.HasPrefix(head, "HTTP/1.1 101 "); got != tt.upgrade {
				t.Fatalf("%q", head)
			}
			if !tt.upgrade {
				return
			}
			c.send(t, "hello")
			b := make([]byte, 5)
			if _, err := io.ReadFull(c.r, b); err != nil || string(b) != "hello" {
				t.Errorf("%q %v", b, err)
			}
			_ = c.Close()
			h.wantOutcome(t, OutcomeComplete)
		})
	}
}

// A websocket on which nothing moves is ended.
func TestWebSocketStall(t *testing.T) {
	h := newHandlerUnderTest(t, newRawUpstream(t, upgrading), func(c *HandlerConfig) {
		c.AllowWebSocket, c.BodyIdleTimeout = true, 100*time.Millisecond
	})
	c := newRawClient(t, h)
	c.send(t, "GET /ws HTTP/1.1\r\nHost: pacs.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	c.readHead(t)
	if _, err := c.r.ReadByte(); err != io.EOF {
		t.Errorf("%v", err)
	}
}
