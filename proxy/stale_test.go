package proxy

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// An archive that closes idle connections quickly, as Orthanc does, must cost no
// request: 1000 one after the other, with a pause around the archive's timeout now
// and then, and 64 at once.
func TestStaleUpstreamConnections(t *testing.T) {
	for _, protocol := range []string{"h2", "h3"} {
		t.Run(protocol, func(t *testing.T) {
			const idle = 20 * time.Millisecond
			back := httptest.NewUnstartedServer(http.HandlerFunc(fakeArchive))
			back.Config.IdleTimeout = idle
			var opened int
			var mu sync.Mutex
			back.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					mu.Lock()
					opened++
					mu.Unlock()
				}
			}
			back.Start()
			defer back.Close()
			rs := startServer(t, http.NotFoundHandler(), func(c *Config) { c.Handler.Upstream = back.URL })
			c := rs.client(protocol)

			ask := func() {
				res, err := c.Get(rs.url("/n/1000"))
				if err != nil {
					t.Errorf("GET: %v", err)
					return
				}
				defer func() { _ = res.Body.Close() }()
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != http.StatusOK || string(body) != strings.Repeat("x", 1000) {
					t.Errorf("GET: %d, %d bytes, %v", res.StatusCode, len(body), err)
				}
			}
			pause := time.NewTimer(0)
			defer pause.Stop()
			for i := range 1000 {
				if i%20 == 0 { // the archive is about to close the connection
					<-pause.C
					pause.Reset(idle + time.Duration(i%7-3)*time.Millisecond)
					<-pause.C
					pause.Reset(0)
				}
				ask()
			}
			var all sync.WaitGroup
			for range 64 {
				all.Go(func() {
					for range 5 {
						ask()
					}
				})
			}
			all.Wait()
			if n := rs.metric("fastpacs_http_requests_total", "protocol="+protocol, "code=5xx"); n != 0 {
				t.Errorf("%v answers of class 5xx, want none", n)
			}
			mu.Lock()
			defer mu.Unlock()
			if opened < 5 {
				t.Errorf("the archive saw %d connections: it closed none", opened)
			}
			t.Logf("the archive saw %d connections", opened)
		})
	}
}
