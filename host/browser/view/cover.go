package view

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of covering (B220).
const (
	// readingAge is how old the reading before a picture may be.
	readingAge   = time.Second
	readingLimit = time.Second
	margin       = 8 // CSS pixels around a box
	maxPixels    = 25_000_000
)

// A reading is where secrets were, at a time between its two times.
type reading struct {
	from, to time.Time
	boxes    []page.Box
}

// readings are the two latest, the newest first. The next still may have been
// under way when the newest began, and on a slow machine every one is: it is
// judged by the one before.
type readings [2]reading

// since are the newest reading that had ended at a time and those after it, the
// newest first; none when no reading had.
func (r readings) since(at time.Time) []reading {
	for i, x := range r {
		if !x.to.IsZero() && !x.to.After(at) {
			return slices.Clone(r[:i+1])
		}
	}
	return nil
}

// forWatchers is a picture as those get it who only watch: with what is secret
// covered. A picture shows neither the moment of the reading before it nor of the
// one after it, so a box that moved covers all that lies between its two places;
// without a recent reading before it, or any after it, the picture is not shown.
// It returns nil then, and another picture has been asked for.
func (s *stage) forWatchers(p *picture) []byte {
	p.hidden.Lock()
	defer p.hidden.Unlock()
	if p.tried {
		return p.covered
	}
	p.tried = true
	ctx, cancel := context.WithTimeout(s.ctx, readingLimit)
	defer cancel()
	now := reading{from: time.Now()}
	var err error
	if now.boxes, err = s.screen.Secrets(ctx, s.r.surface.Sealed()); err != nil {
		s.another(castPause)
		return nil
	}
	now.to = time.Now()
	s.mu.Lock()
	at := p.frame.At // of the browser's clock, which is the host's
	known := s.readings.since(at)
	s.readings = readings{now, s.readings[0]}
	s.mu.Unlock()
	if len(known) == 0 || at.Sub(known[len(known)-1].from) > readingAge || now.to.Before(at) {
		s.another(0)
		return nil
	}
	boxes := now.boxes
	for _, x := range known {
		boxes = between(x.boxes, boxes)
	}
	if len(boxes) == 0 {
		p.covered = p.message
		return p.covered
	}
	covered, err := paint(p.frame, boxes)
	if err != nil {
		s.another(castPause)
		return nil
	}
	p.covered = encode(p.sequence, p.frame, covered)
	return p.covered
}

// between are boxes that hold every place on the way from one reading to another.
func between(a, b []page.Box) []page.Box {
	if len(a) != len(b) {
		return append(append([]page.Box(nil), a...), b...)
	}
	out := make([]page.Box, 0, len(a))
	for i := range a {
		x, y := min(a[i].X, b[i].X), min(a[i].Y, b[i].Y)
		out = append(out, page.Box{X: x, Y: y, W: max(a[i].X+a[i].W, b[i].X+b[i].W) - x, H: max(a[i].Y+a[i].H, b[i].Y+b[i].H) - y})
	}
	return out
}

var errPicture = errors.New("not a picture that can be covered")

// paint covers boxes with one colour: a blur that gives nothing back.
func paint(f page.Frame, boxes []page.Box) ([]byte, error) {
	c, err := jpeg.DecodeConfig(bytes.NewReader(f.Data))
	if err != nil || c.Width <= 0 || c.Height <= 0 || c.Width*c.Height > maxPixels {
		return nil, errPicture
	}
	decoded, err := jpeg.Decode(bytes.NewReader(f.Data))
	if err != nil {
		return nil, errPicture
	}
	out, ok := decoded.(draw.Image)
	if !ok {
		rgba := image.NewRGBA(decoded.Bounds())
		if y, isY := decoded.(*image.YCbCr); isY {
			for _, b := range boxes {
				fill(y, area(b, f.Scale, y.Bounds()))
			}
			return encodeJPEG(y)
		}
		draw.Draw(rgba, rgba.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
		out = rgba
	}
	for _, b := range boxes {
		draw.Draw(out, area(b, f.Scale, out.Bounds()), image.NewUniform(color.Gray{Y: 128}), image.Point{}, draw.Src)
	}
	return encodeJPEG(out)
}

func encodeJPEG(m image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := jpeg.Encode(&b, m, &jpeg.Options{Quality: controlQuality})
	return b.Bytes(), err
}

// area is a box in pixels of the picture, with a margin. Numbers that are none
// cover everything.
func area(b page.Box, scale float64, all image.Rectangle) image.Rectangle {
	for _, n := range []float64{b.X, b.Y, b.W, b.H} {
		if math.IsNaN(n) || math.Abs(n) > 1e7 {
			return all
		}
	}
	return image.Rect(int(math.Floor((b.X-margin)*scale)), int(math.Floor((b.Y-margin)*scale)),
		int(math.Ceil((b.X+b.W+margin)*scale)), int(math.Ceil((b.Y+b.H+margin)*scale))).Intersect(all)
}

// fill makes an area grey, and the pixels that share their colour with it.
func fill(m *image.YCbCr, r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			m.Y[m.YOffset(x, y)] = 128
			c := m.COffset(x, y)
			m.Cb[c], m.Cr[c] = 128, 128
		}
	}
}
