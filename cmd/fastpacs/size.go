package main

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes, written as a whole number with an optional unit:
// B, KiB, MiB or GiB (powers of 1024).
type size int64

const (
	kib size = 1 << 10
	mib size = 1 << 20
	gib size = 1 << 30
)

var sizeUnits = []struct {
	suffix string
	bytes  size
}{{"GiB", gib}, {"MiB", mib}, {"KiB", kib}, {"B", 1}}

var errSize = errors.New("must be a whole number of bytes, or one with KiB, MiB or GiB")

// UnmarshalText reads what String writes, and a plain number of bytes.
func (s *size) UnmarshalText(text []byte) error {
	number, unit := string(text), size(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	// ParseUint takes neither a sign nor, in base 10, an underscore.
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || n > uint64(math.MaxInt64/unit) {
		return errSize
	}
	*s = size(n) * unit
	return nil
}

// String writes the size with the largest unit that divides it.
func (s size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
