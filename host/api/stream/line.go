package stream

import (
	"encoding/json"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// The bounds of a page.
const (
	pageEvents = 128
	pageBytes  = 256 << 10
)

// A line is an event as frames show it, rendered once for all followers. It is immutable.
type line struct {
	seq        uint64
	typ        timeline.Type
	vocabulary timeline.Vocabulary
	modes      timeline.Modes
	effect     timeline.Effect
	event      store.Event // the original, for folds
	doc        []byte      // RunEventDoc
	chunk      []byte      // ai.message.chunk; only for an output.chunk
}

func render(e store.Event) (line, error) {
	row, _ := timeline.Lookup(timeline.Type(e.Type))
	l := line{seq: e.Sequence, typ: row.Type, vocabulary: row.Vocabulary, modes: row.Modes, effect: row.Snapshot,
		event: e}
	var err error
	if l.doc, err = json.Marshal(timeline.Document(e)); err != nil {
		return l, err
	}
	if l.typ == timeline.OutputChunk {
		l.chunk, err = json.Marshal(timeline.ChunkOf(e))
	}
	return l, err
}

func (l line) size() int { return len(l.doc) + len(l.chunk) + len(l.event.Data) }

// A pager reads a log in pages. It learns the size of events from each page, so that the next one
// stays within its memory bound.
type pager struct{ limit int }

// firstPage is small, since nothing is known yet.
const firstPage = 16

// plan returns how many events to request.
func (p *pager) plan() int {
	if p.limit == 0 {
		p.limit = firstPage
	}
	return p.limit
}

// learn takes the number and size of a page's events.
func (p *pager) learn(n, bytes int) {
	if n > 0 {
		p.limit = max(1, min(pageEvents, 2*p.limit, pageBytes*n/max(bytes, 1)))
	}
}
