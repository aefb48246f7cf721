package main

import (
	"math"
	"testing"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"0": 0, "1": 1, "512B": 512, "1023": 1023, "64KiB": 64 << 10, "32MiB": 32 << 20, "2GiB": 2 << 30,
		"8589934591GiB": 8589934591 << 30, "9223372036854775807": math.MaxInt64,
	} {
		var got size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("size %q = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "B", "KiB", "-1", "+1", "1.5MiB", "1_000", "1kb", "64KB", "64 KiB", "64kib", "0x10",
		"8589934592GiB", "9223372036854775808", "64KiBB",
	} {
		got := size(7)
		if err := got.UnmarshalText([]byte(text)); err == nil || got != 7 {
			t.Errorf("size %q = %d, %v; want an error and no change", text, got, err)
		}
	}
	for s, want := range map[size]string{
		0: "0", 1: "1", 1000: "1000", 1024: "1KiB", 1536: "1536", 65536: "64KiB", 32 << 20: "32MiB", 3 << 30: "3GiB",
	} {
		if got := s.String(); got != want {
			t.Errorf("String of %d = %q, want %q", int64(s), got, want)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"0", "64KiB", "1GiB", "9223372036854775807", "512B", "-1", "1.5MiB"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s size
		if s.UnmarshalText([]byte(text)) != nil {
			return
		}
		if s < 0 {
			t.Fatalf("size %q = %d, below 0", text, int64(s))
		}
		var again size
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Fatalf("size %q writes as %q, which reads as %d, %v", text, s, int64(again), err)
		}
	})
}
