package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// wanCell is one link of the matrix.
type wanCell struct {
	Mbps    float64 `json:"rate_mbps"`
	RTTms   float64 `json:"rtt_ms"` // round trip without queues
	LossPct float64 `json:"loss_pct"`
	BDP     float64 `json:"buffer_bdp"`
}

// The matrix.
var (
	wanRates   = []float64{20, 50, 100}
	wanRTTs    = []float64{10, 40, 80, 160}
	wanLosses  = []float64{0, 0.1, 1}
	wanBuffers = []float64{0.25, 1, 4}
)

// wanDefaultCells stand for the matrix: each value of each dimension, and each
// pair of loss and buffer, is there at least once.
var wanDefaultCells = []wanCell{
	{20, 10, 0, 1},
	{20, 40, 0, 4},
	{20, 40, 1, 0.25},
	{20, 80, 0.1, 1},
	{20, 160, 1, 4},
	{50, 10, 0.1, 4},
	{50, 40, 0, 1},
	{50, 40, 0.1, 0.25},
	{50, 80, 0, 0.25},
	{50, 80, 1, 1},
	{50, 160, 0.1, 4},
	{100, 10, 1, 1},
	{100, 40, 0.1, 1},
	{100, 80, 0, 1},
	{100, 80, 1, 4},
	{100, 160, 0, 4},
}

// wanMinBuffer keeps the smallest buffers from being shallower than a sender's
// first flight, 10 packets (RFC 6928).
const wanMinBuffer = 10 * 1500

// bufferBytes is the size of the drop-tail buffer.
func (c wanCell) bufferBytes() int {
	return max(int(c.BDP*c.Mbps*1e6/8*c.RTTms/1e3), wanMinBuffer)
}

func (c wanCell) rtt() time.Duration { return time.Duration(c.RTTms * float64(time.Millisecond)) }

func (c wanCell) String() string {
	return fmt.Sprintf("%g Mb/s, %g ms, %g %% loss, %g BDP", c.Mbps, c.RTTms, c.LossPct, c.BDP)
}

func (c wanCell) spec() string { return fmt.Sprintf("%g/%g/%g/%g", c.Mbps, c.RTTms, c.LossPct, c.BDP) }

func (c wanCell) validate() error {
	switch {
	case !(c.Mbps >= 1 && c.Mbps <= 200):
		return fmt.Errorf("cell %s: the rate must be 1 to 200 Mb/s, which the emulator keeps exactly", c.spec())
	case !(c.RTTms >= 1 && c.RTTms <= 2000):
		return fmt.Errorf("cell %s: the round trip must be 1 to 2000 ms", c.spec())
	case !(c.LossPct >= 0 && c.LossPct <= 20):
		return fmt.Errorf("cell %s: the loss must be 0 to 20 %%", c.spec())
	case !(c.BDP >= 0.01 && c.BDP <= 100):
		return fmt.Errorf("cell %s: the buffer must be 0.01 to 100 BDP", c.spec())
	}
	return nil
}

// parseWANCells reads -cells, or makes the combinations of the other flags.
func parseWANCells(cells, mbps, rtt, loss, buffer string) ([]wanCell, error) {
	matrix := mbps != "" || rtt != "" || loss != "" || buffer != ""
	if matrix && cells != "" {
		return nil, fmt.Errorf("-cells %s: cannot be given together with -mbps, -rtt, -loss or -buffer", cells)
	}
	switch {
	case matrix || cells == "all":
		var lists [4][]float64
		for i, d := range []struct {
			flag, given string
			all         []float64
		}{{"-mbps", mbps, wanRates}, {"-rtt", rtt, wanRTTs}, {"-loss", loss, wanLosses}, {"-buffer", buffer, wanBuffers}} {
			lists[i] = d.all
			if d.given != "" {
				var err error
				if lists[i], err = parseNumbers(d.given, ","); err != nil {
					return nil, fmt.Errorf("%s %s: %w", d.flag, d.given, err)
				}
			}
		}
		return wanMatrix(lists)
	case cells == "" || cells == "default":
		return wanDefaultCells, nil
	}
	var out []wanCell
	for spec := range strings.SplitSeq(cells, ",") {
		v, err := parseNumbers(spec, "/")
		if err != nil || len(v) != 4 {
			return nil, fmt.Errorf("-cells: %q must be MBPS/RTT/LOSS/BDP, such as 100/80/0.1/1", spec)
		}
		c := wanCell{v[0], v[1], v[2], v[3]}
		if err := c.validate(); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func wanMatrix(lists [4][]float64) ([]wanCell, error) {
	var out []wanCell
	for _, rate := range lists[0] {
		for _, rtt := range lists[1] {
			for _, loss := range lists[2] {
				for _, buffer := range lists[3] {
					c := wanCell{rate, rtt, loss, buffer}
					if err := c.validate(); err != nil {
						return nil, err
					}
					out = append(out, c)
				}
			}
		}
	}
	return out, nil
}

func parseNumbers(text, separator string) ([]float64, error) {
	var out []float64
	for s := range strings.SplitSeq(text, separator) {
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a number", s)
		}
		out = append(out, v)
	}
	return out, nil
}
