package ctstudy

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

const (
	fieldOfView    = 360.0 // mm, square
	sliceThickness = 1.0   // mm

	minHU, maxHU = -1024, 3071 // range of a 12-bit scanner
)

// ellipse is a region of the phantom in coordinates of -1 to 1 across the
// field of view (x to the patient's left, y to the back), filled with hu.
type ellipse struct {
	x, y, rx, ry float64
	hu           int
}

// contains reports whether the point lies inside.
func (e ellipse) contains(x, y float64) bool {
	dx, dy := (x-e.x)/e.rx, (y-e.y)/e.ry
	// The conversions forbid fused multiply-adds, whose rounding would make the
	// bytes depend on the processor.
	return float64(dx*dx)+float64(dy*dy) < 1
}

var body = ellipse{0, 0, 0.85, 0.6, 40}

// organs lists what lies in the body at z (-1 feet side, 1 head side); later
// ones cover earlier ones.
func organs(z float64) []ellipse {
	lung := 0.28 * math.Sqrt(max(0.05, 1-float64(z*z)))
	return []ellipse{
		{-0.38, 0, lung, 0.38, -850},       // right lung
		{0.38, 0, lung, 0.38, -850},        // left lung
		{-0.1 * z, -0.15, 0.15, 0.17, 120}, // heart and great vessels, contrast-filled
		{0, 0.4, 0.09, 0.09, 700},          // vertebra
	}
}

const (
	airNoise  = 6  // HU, standard deviation outside the body
	bodyNoise = 18 // HU, inside
)

// pixels renders one slice as little-endian signed 16-bit Hounsfield units.
func pixels(cfg Config, number int) []byte {
	size := cfg.Size
	z := 2*(float64(number)-0.5)/float64(cfg.Slices) - 1
	inside := organs(z)
	rng := rand.NewPCG(cfg.Seed, uint64(number))
	out := make([]byte, 2*size*size)
	at := 0
	var noise noise
	for row := range size {
		y := 2*(float64(row)+0.5)/float64(size) - 1
		for col := range size {
			x := 2*(float64(col)+0.5)/float64(size) - 1
			hu, sigma := -1000, airNoise
			if body.contains(x, y) {
				hu, sigma = body.hu, bodyNoise
				for i := range inside {
					if inside[i].contains(x, y) {
						hu = inside[i].hu
					}
				}
			}
			v := min(max(hu+noise.next(rng, sigma), minHU), maxHU)
			binary.LittleEndian.PutUint16(out[at:], uint16(int16(v)))
			at += 2
		}
	}
	return out
}

// noise draws integers that are close to normal: the sum of four uniform bytes
// (mean 510, variance 4*(256^2-1)/12), two draws from each random word.
type noise struct {
	word uint64
	left int // draws left in word
}

// fourBytesSigma is the standard deviation of the sum of four uniform bytes.
const fourBytesSigma = 147.8

func (n *noise) next(src *rand.PCG, sigma int) int {
	if n.left == 0 {
		n.word, n.left = src.Uint64(), 2
	}
	w := uint32(n.word)
	n.word >>= 32
	n.left--
	sum := int(w&0xff + w>>8&0xff + w>>16&0xff + w>>24)
	// Scaled in 1/1024 and rounded to nearest.
	scale := int(1024 * float64(sigma) / fourBytesSigma)
	return ((sum-510)*scale + 512) >> 10
}
