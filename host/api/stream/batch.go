package stream

import (
	"strconv"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
)

// The bounds of a batch.
const (
	batchEvents = 1000
	batchBytes  = 256 << 10
)

// A batch is what waits for the end of a window.
type batch struct {
	docs  [][]byte
	bytes int
	last  uint64
	end   time.Time // of the window
}

// add opens the window with the first event.
func (b *batch) add(l line, window time.Duration) {
	if len(b.docs) == 0 {
		b.end = time.Now().Add(window)
	}
	b.docs, b.bytes, b.last = append(b.docs, l.doc), b.bytes+len(l.doc), l.seq
}

func (b *batch) full() bool { return len(b.docs) >= batchEvents || b.bytes >= batchBytes }

func (b *batch) due() bool { return len(b.docs) > 0 && !time.Now().Before(b.end) }

// wait returns the time to the end of the window, 0 when there is none.
func (b *batch) wait() time.Duration {
	if len(b.docs) == 0 {
		return 0
	}
	return max(time.Until(b.end), Soon)
}

// flush sends one batch frame, if there is anything to send.
func (b *batch) flush(out *Out) error {
	if len(b.docs) == 0 {
		return nil
	}
	data := make([]byte, 0, b.bytes+len(b.docs)+1)
	for i, d := range b.docs {
		data = append(append(data, "[,"[min(i, 1)]), d...)
	}
	id := strconv.FormatUint(b.last, 10)
	*b = batch{}
	return out.Event(id, string(timeline.Batch), append(data, ']'))
}
