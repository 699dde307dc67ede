package stream

import (
	"strconv"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
)

// Bounds of a batch.
const (
	batchEvents = 1000
	batchBytes  = 256 << 10
)

// A batch collects events until its window ends.
type batch struct {
	docs  [][]byte
	bytes int
	last  uint64
	end   time.Time // of the window
}

// add adds a line. The first one opens the window.
func (b *batch) add(l line, window time.Duration) {
	if len(b.docs) == 0 {
		b.end = time.Now().Add(window)
	}
	b.docs, b.bytes, b.last = append(b.docs, l.doc), b.bytes+len(l.doc), l.seq
}

func (b *batch) full() bool { return len(b.docs) >= batchEvents || b.bytes >= batchBytes }

func (b *batch) due() bool { return len(b.docs) > 0 && !time.Now().Before(b.end) }

// wait returns the time until the window ends, or 0 without one.
func (b *batch) wait() time.Duration {
	if len(b.docs) == 0 {
		return 0
	}
	return max(time.Until(b.end), Soon)
}

// flush sends one batch frame unless it would be empty.
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
