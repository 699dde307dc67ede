package view

import (
	"encoding/binary"
	"math"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// HeaderSize is that of the header before a picture (B215), big endian:
//
//	0    1         5                  13      15      17        21
//	01   sequence  capture time, ms   width   height  scale     JPEG …
const HeaderSize = 21

const typePicture = 0x01

// A picture is one frame as it goes to viewers. Its bytes are not changed.
type picture struct {
	sequence uint32
	frame    page.Frame
	message  []byte

	still bool // taken for its own sake, in better quality

	hidden  sync.Mutex // guards what follows
	tried   bool
	covered []byte // for those who only watch; nil once tried: it is not for them
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

// pace is when the next picture may go to a viewer, so that there are so many a
// second on average, and the first after a rest goes at once (B219).
type pace struct{ due time.Time }

func (p *pace) wait(now time.Time) time.Duration { return p.due.Sub(now) }

func (p *pace) sent(now time.Time, every time.Duration) {
	if p.due = p.due.Add(every); p.due.Before(now) {
		p.due = now
	}
}
