package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

func version(args, _ []string, stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintln(stderr, "usage: fastpacs version")
		return exitUsage
	}
	b := versionOf()
	fmt.Fprintf(stdout, "fastpacs %s (%squic-go %s, %s, %s/%s)\n", b.version, b.commit, b.quicGo, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}

// build is what the go command recorded about this binary.
type build struct {
	version string // of the module: a tag, or (devel)
	commit  string // "commit HASH, ", or nothing
	quicGo  string // version of quic-go
}

func versionOf() build {
	b := build{version: "(devel)", quicGo: "unknown"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.version = cmp.Or(info.Main.Version, b.version)
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.commit = "commit " + s.Value + ", "
		}
	}
	for _, m := range info.Deps {
		if m.Path == "github.com/quic-go/quic-go" {
			b.quicGo = m.Version
		}
	}
	return b
}
