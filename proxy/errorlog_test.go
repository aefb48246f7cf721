package proxy

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestErrorLogIsBounded(t *testing.T) {
	var out strings.Builder
	now := time.Now()
	e := &errorLog{
		log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		now: func() time.Time { return now },
	}
	for range 1000 {
		if n, err := e.Write([]byte("http: TLS handshake error\n")); n != 26 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if n := strings.Count(out.String(), "handshake error\""); n != linesPerSecond {
		t.Errorf("%d lines in a second, want %d:\n%s", n, linesPerSecond, out.String())
	}
	now = now.Add(time.Second)
	_, _ = e.Write([]byte("http: another\n"))
	for _, want := range []string{"lines=990", "http: another"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("log lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "level=INFO") {
		t.Error("not at level Debug")
	}
}
