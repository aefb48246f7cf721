package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// fetchByNgtcp2 has ngtcp2's client fetch the study from its server, as files.
// Its time includes the start of the client's process; what came is compared
// afterwards.
func (b *wanBench) fetchByNgtcp2(ctx context.Context, peer wanPeer) (result wanFetchResult, err error) {
	server, err := b.servers.startNgtcp2(ctx, peer.CC, b.parallel)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, server.stop()) }()
	dir, err := os.MkdirTemp(b.servers.dir, "download-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args := []string{
		"-q", "--no-quic-dump", "--no-http-dump", "--exit-on-all-streams-close", "--download=" + dir,
		b.net.Server.Addr().String(), strconv.Itoa(wanNgtcp2Port),
	}
	for _, uid := range slices.Sorted(maps.Keys(b.sums)) {
		args = append(args, "https://"+b.servers.addr(wanNgtcp2Port)+b.instances()+"/"+uid)
	}
	limit, cancel := context.WithTimeout(ctx, b.limit)
	defer cancel()
	began := time.Now()
	client, err := startIn(b.net.Client, "gtlsclient", exec.Command(b.servers.ngtcp2.client, args...))
	if err != nil {
		return result, err
	}
	err = client.wait(limit)
	result.Seconds = time.Since(began).Seconds()
	result.Stopped = errors.Is(limit.Err(), context.DeadlineExceeded)
	if stopErr := client.stop(); stopErr != nil && !result.Stopped {
		return result, stopErr
	}
	if err != nil && !result.Stopped {
		return result, err
	}
	return result, b.checkDownload(dir, &result)
}

// checkDownload counts what came, and compares the files that are whole.
func (b *wanBench) checkDownload(dir string, result *wanFetchResult) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		result.Bytes += int64(len(content))
		sum := sha256.Sum256(content)
		if b.sums[f.Name()] == hex.EncodeToString(sum[:]) {
			result.Instances++
		} else if !result.Stopped {
			return fmt.Errorf("gtlsclient: instance %s came back different (%d bytes)", f.Name(), len(content))
		}
	}
	if !result.Stopped && result.Instances != b.slices {
		return fmt.Errorf("gtlsclient: %d of %d instances came", result.Instances, b.slices)
	}
	return nil
}
