package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

func newWANReport(c wanConfig) *wanReport {
	return &wanReport{
		Machine: wanMachine{
			Date:      time.Now(),
			Command:   strings.Join(append([]string{"fastlab", "wan"}, c.args...), " "),
			Kernel:    readLine("/proc/sys/kernel/osrelease"),
			CPU:       cpuModel(),
			CPUs:      runtime.NumCPU(),
			Go:        runtime.Version(),
			Peers:     map[string]string{},
			LoadStart: loadAverage(),
		},
		Slices: c.slices, Parallel: c.parallel, RunsEach: c.runs, LimitS: c.limit.Seconds(), Seed: c.seed,
	}
}

func readLine(file string) string {
	b, _ := os.ReadFile(file) // told as empty
	first, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(first)
}

func loadAverage() string {
	fields := strings.Fields(readLine("/proc/loadavg"))
	return strings.Join(fields[:min(3, len(fields))], " ")
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // told as empty
	for line := range strings.Lines(string(b)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// firstLine is the first line that a program prints.
func firstLine(ctx context.Context, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}

// caddyVersion is what the Go command wrote into the program, with the version of
// its QUIC.
func caddyVersion(file string) string {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	version := info.Main.Version
	for _, dep := range info.Deps {
		switch dep.Path {
		case "github.com/caddyserver/caddy/v2":
			version = dep.Version
		case "github.com/quic-go/quic-go":
			version += " (quic-go " + dep.Version + ")"
		}
	}
	return version
}

// ngtcp2Version is what the package manager knows: the programs do not tell.
func ngtcp2Version(ctx context.Context) string {
	return firstLine(ctx, "dpkg-query", "-W", "-f", "${Version}", "ngtcp2-server")
}

// cpuTimes are those of all processors since the machine started, in ticks.
type cpuTimes struct{ busy, total int64 }

func readCPUTimes() (c cpuTimes, err error) {
	fields := strings.Fields(readLine("/proc/stat")) // cpu user nice system idle iowait irq softirq steal ...
	if len(fields) < 9 || fields[0] != "cpu" {
		return c, fmt.Errorf("/proc/stat begins with %q", fields)
	}
	for i, f := range fields[1:9] { // guests are counted as users already
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return c, fmt.Errorf("/proc/stat: %w", err)
		}
		c.total += v
		if i != 3 && i != 4 {
			c.busy += v
		}
	}
	return c, nil
}

// busySince is the share of processor time that was used since before, in percent.
func (c cpuTimes) busySince(before cpuTimes) float64 {
	return 100 * float64(c.busy-before.busy) / float64(max(c.total-before.total, 1))
}
