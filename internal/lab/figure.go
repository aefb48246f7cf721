package lab

import (
	"fmt"
	"math"
	"strconv"
)

// Figure is a measured number; NaN, null in JSON, stands for one that does not
// exist (never reached, or meaningless in this scenario).
type Figure float64

// None is the Figure that does not exist.
func None() Figure { return Figure(math.NaN()) }

// Exists reports whether f is a number.
func (f Figure) Exists() bool { return !math.IsNaN(float64(f)) && !math.IsInf(float64(f), 0) }

func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.Exists() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(f), 'g', 6, 64), nil
}

func (f *Figure) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = None()
		return nil
	}
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("lab: figure %s: %w", b, err)
	}
	*f = Figure(v)
	return nil
}

// Format prints f with the given decimals, or a dash.
func (f Figure) Format(decimals int) string {
	if !f.Exists() {
		return "-"
	}
	return strconv.FormatFloat(float64(f), 'f', decimals, 64)
}
