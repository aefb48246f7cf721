//go:build !linux

package main

import (
	"context"
	"errors"
	"io"
)

var errWANLinux = errors.New("needs Linux: network namespaces and TUN devices; `fastlab suite` compares congestion controls anywhere")

func wanPossible() error { return errWANLinux }

func (c wanConfig) run(context.Context, *progress) (*wanReport, error) { return nil, errWANLinux }

func runWANEndpoint(context.Context, []string, io.Reader, io.Writer, io.Writer) int { return exitUsage }
