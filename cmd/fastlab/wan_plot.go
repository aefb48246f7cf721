package main

import (
	"errors"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// wanFigure is a figure of every peer in every cell.
type wanFigure struct {
	name, title, y string
	value          func(r *wanReport, row *wanRow) float64
}

var wanFigures = []wanFigure{
	{
		"wan-time", "Study time", "times that of a full link",
		func(_ *wanReport, row *wanRow) float64 { return row.Mbps / row.GoodputMbps },
	},
	{
		"wan-queue", "Queue, mean", "ms",
		func(_ *wanReport, row *wanRow) float64 { return max(row.MeanQueueMs, 0.1) },
	},
}

// drawWAN draws a point for each cell and peer, cells from left to right.
func drawWAN(dir string, r *wanReport) error {
	cells := r.cells()
	if len(cells) == 0 {
		return nil
	}
	for _, f := range wanFigures {
		p := newPlot(f.title+" (Mb/s, ms round trip, % loss, BDP of buffer)", "", f.y)
		p.Y.Scale = plot.LogScale{}
		low, high := math.Inf(1), 0.0
		for i, peer := range wanPeers {
			var points plotter.XYs
			for x, cell := range cells {
				row := r.row(cell, peer.Name)
				if row == nil || row.GoodputMbps <= 0 {
					continue
				}
				y := f.value(r, row)
				low, high = min(low, y), max(high, y)
				// Peers stand side by side.
				points = append(points, plotter.XY{X: float64(x) + (float64(i)-float64(len(wanPeers)-1)/2)*0.05, Y: y})
			}
			if len(points) == 0 {
				continue
			}
			s, err := plotter.NewScatter(points)
			if err != nil {
				return err
			}
			s.Color, s.Shape, s.Radius = wanLook(peer)
			p.Add(s)
			p.Legend.Add(peer.Name, s)
		}
		p.Y.Min, p.Y.Max = low/1.3, high*1.3
		p.Y.Tick.Marker = wanTicks(p.Y.Min, p.Y.Max)
		p.X.Min, p.X.Max = -0.6, float64(len(cells))-0.4
		var ticks plot.ConstantTicks
		for x, cell := range cells {
			ticks = append(ticks, plot.Tick{Value: float64(x), Label: strings.ReplaceAll(cell.spec(), "/", "\n")})
		}
		p.X.Tick.Marker = ticks
		p.Legend.Top, p.Legend.Left = false, false
		if err := saveWAN(p, dir, f.name); err != nil {
			return err
		}
	}
	return nil
}

// wanTicks are 1, 2 and 5 times the powers of ten.
func wanTicks(low, high float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	for power := math.Pow(10, math.Floor(math.Log10(low))); power <= high; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * power; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 3, 64)})
			}
		}
	}
	return ticks
}

// wanLook gives a colour to each server and congestion control, and a shape to
// each protocol.
func wanLook(p wanPeer) (color.Color, draw.GlyphDrawer, vg.Length) {
	i := map[wanKind]int{kindFastpacs: 0, kindCaddy: 3, kindNgtcp2: 2}[p.Kind]
	if p.Kind == kindTCP {
		i = map[string]int{"cubic": 1, "bbr": 4, "reno": 5}[p.CC]
	}
	c := color.Color(color.Gray{0x60})
	if i < len(paperColors) {
		c = paperColors[i]
	}
	switch {
	case p.Name == wanSubject:
		return c, draw.CircleGlyph{}, vg.Points(4)
	case p.Protocol == "h1":
		return c, draw.SquareGlyph{}, vg.Points(2.5)
	case p.Protocol == "h2":
		return c, draw.TriangleGlyph{}, vg.Points(2.5)
	case p.CC == "bbr":
		return c, draw.PlusGlyph{}, vg.Points(3)
	case p.CC == "cubic":
		return c, draw.CrossGlyph{}, vg.Points(3)
	}
	return c, draw.RingGlyph{}, vg.Points(2.5)
}

// saveWAN writes DIR/NAME.svg and DIR/NAME.png, with the legend beside the plot.
func saveWAN(p *plot.Plot, dir, name string) error {
	const width, height, legend = 26 * vg.Centimeter, 12 * vg.Centimeter, 4 * vg.Centimeter
	for _, ext := range []string{"svg", "png"} {
		canvas, err := draw.NewFormattedCanvas(width, height, ext)
		if err != nil {
			return err
		}
		all := draw.New(canvas)
		all.SetColor(color.White)
		all.Fill(all.Rectangle.Path())
		entries := p.Legend
		p.Legend = plot.NewLegend()
		p.Draw(draw.Crop(all, 0, -legend, 0, 0))
		p.Legend = entries
		entries.Top = true
		entries.Draw(draw.Crop(all, width-legend, -vg.Points(6), 0, -vg.Points(20)))
		if err := writeTo(canvas, filepath.Join(dir, name+"."+ext)); err != nil {
			return err
		}
	}
	return nil
}

func writeTo(canvas vg.CanvasWriterTo, file string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = canvas.WriteTo(f)
	return err
}
