package main

import (
	"fmt"
	"io"
	"log/slog"
)

// logFormat is the form of log messages.
type logFormat string

const (
	logText logFormat = "text"
	logJSON logFormat = "json"
)

// UnmarshalText reads text or json.
func (f *logFormat) UnmarshalText(text []byte) error {
	switch v := logFormat(text); v {
	case logText, logJSON:
		*f = v
		return nil
	}
	return fmt.Errorf("must be %s or %s", logText, logJSON)
}

// logger writes messages of at least level to w.
func (f logFormat) logger(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if f == logJSON {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
