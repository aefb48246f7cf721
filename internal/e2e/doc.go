// Package e2e holds no code, only the tests and benchmarks of fastpacs as a
// whole: the built program as a child process, between real clients (a browser,
// Go's HTTP/1.1, 2 and 3) and real or misbehaving archives.
//
//	Chromium ─┐                                   ┌─ Orthanc
//	Go client ┼── h1, h2, h3 ──► bin: fastpacs ───┼─ viewer page + Orthanc
//	garbage  ─┘                                   └─ child "upstream" (benchmarks)
//
// The benchmarks measure fastpacs against Caddy, against bare quic-go and
// against no proxy at all, in the same run, and fail where it falls short of its
// bars: `make bench`.
//
// Tests that need a part which is not installed are skipped, unless
// REQUIRE_PARTS=1 is in the environment: then they fail and say what to install.
package e2e
