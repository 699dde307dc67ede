package dashboard

import (
	"math"
	"strconv"
	"strings"
)

// Size of a plot, in units of its own picture; the page scales it.
const (
	plotWidth  = 720
	plotHeight = 160
	plotPoints = 2000 // points drawn; more are thinned out
)

// A plot is a picture drawn by the server. It consists of numbers, and texts that the template
// escapes.
type plot struct {
	Label       string // description for screen readers
	Width       int
	Height      int
	Bars        []bar
	Line        string // path of a line through the points
	Area        string // path around the area below the line
	Dots        string // path of the points
	First, Last string // labels of its left and right end
	Top, Bottom string // values of the upper and lower edge
	Linked      bool   // bars lead to pages
}

// A bar is one bar of a plot. Link is an address of the dashboard, or "" for none.
type bar struct {
	X, Y, W, H float64
	Tone       string
	Text, Link string
}

// An amount is the value of a bar.
type amount struct {
	Value      float64
	Tone       string
	Text, Link string
}

// barsOf draws amounts side by side, scaled from zero to the largest.
func barsOf(label string, width, height int, of []amount) plot {
	p := plot{Label: label, Width: width, Height: height}
	top := 0.0
	for _, a := range of {
		top = max(top, a.Value)
	}
	step := float64(width) / float64(max(len(of), 12)) // keeps a few bars narrow
	for i, a := range of {
		h := 0.0
		if top > 0 {
			h = a.Value / top * float64(height)
		}
		if h < 2 && (a.Value > 0 || a.Link != "") {
			h = 2 // stays visible and clickable
		}
		p.Linked = p.Linked || a.Link != ""
		p.Bars = append(p.Bars, bar{round(float64(i)*step + step*.1), round(float64(height) - h), round(step * .8), round(h),
			a.Tone, a.Text, a.Link})
	}
	p.Top, p.Bottom = short(top), "0"
	return p
}

// xy draws points as a line in the order of x, or as dots.
func xy(label string, points [][2]float64, line bool) plot {
	p := plot{Label: label, Width: plotWidth, Height: plotHeight}
	if every := (len(points) + plotPoints - 1) / plotPoints; every > 1 {
		thin := points[:0:0]
		for i := 0; i < len(points); i += every {
			thin = append(thin, points[i])
		}
		points = thin
	}
	if len(points) == 0 {
		return p
	}
	low, high := points[0], points[0]
	for _, at := range points {
		for i, v := range at {
			low[i], high[i] = min(low[i], v), max(high[i], v)
		}
	}
	var path, dots strings.Builder
	for i, at := range points {
		x, y := place(at[0], low[0], high[0])*(plotWidth-8)+4, plotHeight-4-place(at[1], low[1], high[1])*(plotHeight-8)
		word := "L"
		if i == 0 {
			word = "M"
		}
		path.WriteString(word + number(x) + " " + number(y))
		dots.WriteString("M" + number(x-2) + " " + number(y) + "h4")
	}
	if p.Dots = dots.String(); line {
		p.Line, p.Dots = path.String(), ""
	}
	p.First, p.Last, p.Bottom, p.Top = short(low[0]), short(high[0]), short(low[1]), short(high[1])
	return p
}

// place returns the position of v between low and high, from 0 to 1.
func place(v, low, high float64) float64 {
	if high-low <= 0 || math.IsInf(high-low, 0) {
		return .5
	}
	return (v - low) / (high - low)
}

func round(v float64) float64 { return math.Round(v*100) / 100 }
func number(v float64) string { return strconv.FormatFloat(round(v), 'f', -1, 64) }
func finite(v float64) bool   { return !math.IsNaN(v) && !math.IsInf(v, 0) }
func whole(v float64) bool    { return v == math.Trunc(v) && math.Abs(v) < 1e15 }
func short(v float64) string {
	if whole(v) {
		return count(int64(v))
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}
