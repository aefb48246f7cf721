package main

import (
	"fmt"
	"image/color"
	"path/filepath"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"fastpacs/cc/ccsim"
)

// paperFigure is a figure of rates over time, named as the article numbers them.
// Ours beside them have names of their own.
type paperFigure struct {
	name       string
	experiment int
	law        ccsim.ExperimentLaw
	until      time.Duration // 0: all
}

var paperFigures = []paperFigure{
	{"figure2-exp1-alg1", 1, ccsim.Alg1, 0},
	{"figure3-exp2-alg1", 2, ccsim.Alg1, 0},
	{"figure4-exp3-alg1", 3, ccsim.Alg1, 0},
	{"figure5-exp5-alg2", 5, ccsim.Alg2, 0},
	{"figure6-exp6-alg3", 6, ccsim.Alg3, 0},
	{"figure7-exp7-alg1", 7, ccsim.Alg1, 0},
	{"figure8-exp7-alg3", 7, ccsim.Alg3, 0},
	{"exp1-improved", 1, ccsim.Improved, 0},
	{"exp2-improved", 2, ccsim.Improved, 0},
	{"exp7-improved", 7, ccsim.Improved, 0},
}

// Colours that people with colour blindness tell apart (Okabe and Ito).
var paperColors = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff},
	{0xd5, 0x5e, 0x00, 0xff},
	{0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff},
}

const paperPoints = 1500 // most points of a line

// drawPaper draws the figures of the experiments that were run.
func drawPaper(dir string, cells []*paperCell) error {
	for _, f := range paperFigures {
		for _, cell := range cells {
			if cell.experiment.Number == f.experiment && cell.law == f.law {
				if err := f.draw(dir, cell); err != nil {
					return fmt.Errorf("%s: %w", f.name, err)
				}
			}
		}
	}
	return drawSweep(dir, cells)
}

func (f paperFigure) draw(dir string, cell *paperCell) error {
	p := newPlot(fmt.Sprintf("Experiment %d, %s: %.0f Mb/s", f.experiment, lawTitle(cell.law), cell.experiment.FairRate(1)*8/1e6),
		"time (s)", "rate (thousand packets/s)")
	r := cell.outcomes[0].Result
	step := max(len(r.Link)/paperPoints, 1)
	for i := range r.Flows {
		var line plotter.XYs
		for j := 0; j < len(r.Link); j += step {
			if s := &r.Flows[i].Samples[j]; s.Running {
				line = append(line, plotter.XY{X: r.Link[j].At.Seconds(), Y: s.Rate() / float64(r.Config.Flows[i].Packet) / 1e3})
			}
		}
		if len(line) == 0 {
			continue
		}
		l, err := plotter.NewLine(line)
		if err != nil {
			return err
		}
		l.Color, l.Width = paperColors[i%len(paperColors)], vg.Points(1.2)
		p.Add(l)
		p.Legend.Add(fmt.Sprintf("flow %d", i+1), l)
	}
	if err := addShare(p, cell); err != nil {
		return err
	}
	return savePlot(p, dir, f.name)
}

// addShare draws the equal share of the flows that run.
func addShare(p *plot.Plot, cell *paperCell) error {
	e, third := &cell.experiment, cell.experiment.Duration.Seconds()/3
	var share plotter.XYs
	for i, o := range cell.outcomes {
		y := e.FairRate(o.Flows) / e.FairRate(1) * e.Capacity / 1e3
		from, to := float64(i)*third, float64(i+1)*third
		if !e.Joins {
			from, to = 0, e.Duration.Seconds()
		}
		share = append(share, plotter.XY{X: from, Y: y}, plotter.XY{X: to, Y: y})
	}
	l, err := plotter.NewLine(share)
	if err != nil {
		return err
	}
	l.Color, l.Width, l.Dashes = color.Gray{0x60}, vg.Points(0.8), []vg.Length{vg.Points(4), vg.Points(3)}
	p.Add(l)
	p.Legend.Add("equal share", l)
	return nil
}

// drawSweep draws Experiment 4: convergence over rho, a line for each link.
func drawSweep(dir string, cells []*paperCell) error {
	p := newPlot("Experiment 4, Algorithm 1: where slow start ends", "rho = theta c / (N alpha)", "convergence (s)")
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max = 0.01, 1
	lines := map[float64]plotter.XYs{}
	var links []*ccsim.Experiment
	for _, cell := range cells {
		e := &cell.experiment
		if e.Number != 4 || cell.law != ccsim.Alg1 || cell.outcomes[0].Convergence == nil {
			continue
		}
		if lines[e.Capacity] == nil {
			links = append(links, e)
		}
		lines[e.Capacity] = append(lines[e.Capacity], plotter.XY{X: e.Rho(), Y: cell.outcomes[0].Convergence.Seconds()})
	}
	if len(links) == 0 {
		return nil
	}
	for i, e := range links {
		l, points, err := plotter.NewLinePoints(lines[e.Capacity])
		if err != nil {
			return err
		}
		l.Color, l.Width = paperColors[i%len(paperColors)], vg.Points(1.2)
		points.Color, points.Shape = l.Color, draw.CircleGlyph{}
		p.Add(l, points)
		p.Legend.Add(fmt.Sprintf("%.0f Mb/s, %d flows, alpha %.0f", e.FairRate(1)*8/1e6, e.Flows, e.Alpha), l, points)
	}
	return savePlot(p, dir, "exp4-sweep")
}

func lawTitle(law ccsim.ExperimentLaw) string {
	switch law {
	case ccsim.Alg1:
		return "Algorithm 1"
	case ccsim.Alg2:
		return "Algorithm 2"
	case ccsim.Alg3:
		return "Algorithm 3"
	}
	return "production law, paced"
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = vg.Points(6)
	p.X.Padding, p.Y.Padding = 0, 0
	p.Y.Min = 0
	p.Legend.Top = true
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.Gray{0xdd}, color.Gray{0xdd}
	p.Add(grid)
	return p
}

// savePlot writes DIR/NAME.svg and DIR/NAME.png.
func savePlot(p *plot.Plot, dir, name string) error {
	p.Y.Max *= 1.35 // room for the legend
	for _, ext := range []string{".svg", ".png"} {
		if err := p.Save(16*vg.Centimeter, 10*vg.Centimeter, filepath.Join(dir, name+ext)); err != nil {
			return err
		}
	}
	return nil
}
