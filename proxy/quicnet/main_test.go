package quicnet

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fastpacs/internal/selfsign"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const alpn = "quicnet-test"

// deadline bounds every wait of these tests.
const deadline = 60 * time.Second

// testTLSPair configures a server and a client that trusts it.
type testTLSPair struct{ server, client *tls.Config }

func newTestTLS(t testing.TB) testTLSPair {
	t.Helper()
	cert, err := selfsign.New(time.Now(), time.Hour, "pacs.test", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return testTLSPair{
		server: &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{alpn}},
		client: &tls.Config{RootCAs: selfsign.Pool(cert), ServerName: "pacs.test", NextProtos: []string{alpn}},
	}
}

func testSocket(t testing.TB) *net.UDPConn {
	t.Helper()
	pc, err := ListenUDP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	return pc
}
