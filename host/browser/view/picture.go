package view

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// HeaderSize is that of the header before a picture, big endian:
//
//	0    1         5                  13      15      17        21
//	01   sequence  capture time, ms   width   height  scale     JPEG …
const HeaderSize = 21

const typePicture = 0x01

// A picture is one frame as sent to viewers. Its bytes are immutable.
type picture struct {
	sequence uint32
	frame    page.Frame
	message  []byte

	still bool // taken on request, in better quality

	hidden  sync.Mutex // guards what follows
	tried   bool
	covered []byte // for viewers who only watch; nil once tried: not for them
}

func newPicture(sequence uint32, f page.Frame, still bool) *picture {
	p := &picture{sequence: sequence, frame: f, still: still}
	p.message = encode(sequence, f, f.Data)
	p.frame.Data = p.message[HeaderSize:]
	return p
}

func encode(sequence uint32, f page.Frame, jpeg []byte) []byte {
	b := make([]byte, 0, HeaderSize+len(jpeg))
	b = append(b, typePicture)
	b = binary.BigEndian.AppendUint32(b, sequence)
	b = binary.BigEndian.AppendUint64(b, uint64(max(0, f.At.UnixMilli())))
	b = binary.BigEndian.AppendUint16(b, clamp16(f.Viewport.Width))
	b = binary.BigEndian.AppendUint16(b, clamp16(f.Viewport.Height))
	b = binary.BigEndian.AppendUint32(b, math.Float32bits(float32(f.Scale)))
	return append(b, jpeg...)
}

func clamp16(n int) uint16 { return uint16(min(max(n, 0), math.MaxUint16)) } // #nosec G115 -- clamped

// A pace spaces pictures to a viewer so that their average rate is bounded; the first one after a
// pause goes at once.
type pace struct{ due time.Time }

func (p *pace) wait(now time.Time) time.Duration { return p.due.Sub(now) }

func (p *pace) sent(now time.Time, every time.Duration) {
	if p.due = p.due.Add(every); p.due.Before(now) {
		p.due = now
	}
}

// Bounds of covering.
const (
	// readingAge is how old the reading before a picture may be.
	readingAge   = time.Second
	readingLimit = time.Second
	margin       = 8 // CSS pixels around a box
	maxPixels    = 25_000_000
)

// A reading is where secrets were at some time between from and to.
type reading struct {
	from, to time.Time
	boxes    []page.Box
}

// readings are the latest two, newest first. A still may have been under way when the newest began,
// as is usual on a slow machine; it is then judged by the one before.
type readings [2]reading

// since returns the newest reading that had ended at a time and those after it, newest first, or
// none.
func (r readings) since(at time.Time) []reading {
	for i, x := range r {
		if !x.to.IsZero() && !x.to.After(at) {
			return slices.Clone(r[:i+1])
		}
	}
	return nil
}

// forWatchers returns a picture for viewers who only watch, with secrets covered. A picture is
// taken at neither the time of the reading before it nor of the one after it, so a box that moved
// covers everything between its two places. Without a recent reading before and one after, it
// returns nil and requests another picture.
func (s *broadcast) forWatchers(p *picture) []byte {
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
	at := p.frame.At // by the browser's clock, which is the host's
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

// between returns boxes that cover every position between two readings.
func between(a, b []page.Box) []page.Box {
	if len(a) != len(b) {
		return append(append([]page.Box(nil), a...), b...)
	}
	out := make([]page.Box, 0, len(a))
	for i := range a {
		x, y := min(a[i].X, b[i].X), min(a[i].Y, b[i].Y)
		out = append(out, page.Box{X: x, Y: y, W: max(a[i].X+a[i].W, b[i].X+b[i].W) - x,
			H: max(a[i].Y+a[i].H, b[i].Y+b[i].H) - y})
	}
	return out
}

var errPicture = errors.New("not a picture that can be covered")

// paint covers boxes with one colour, which cannot be undone as a blur could.
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

// area returns a box in pixels of the picture, with a margin. Invalid numbers cover everything.
func area(b page.Box, scale float64, all image.Rectangle) image.Rectangle {
	for _, n := range []float64{b.X, b.Y, b.W, b.H} {
		if math.IsNaN(n) || math.Abs(n) > 1e7 {
			return all
		}
	}
	return image.Rect(int(math.Floor((b.X-margin)*scale)), int(math.Floor((b.Y-margin)*scale)),
		int(math.Ceil((b.X+b.W+margin)*scale)), int(math.Ceil((b.Y+b.H+margin)*scale))).Intersect(all)
}

// fill makes an area grey, together with the pixels that share their colour sample.
func fill(m *image.YCbCr, r image.Rectangle) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			m.Y[m.YOffset(x, y)] = 128
			c := m.COffset(x, y)
			m.Cb[c], m.Cr[c] = 128, 128
		}
	}
}
