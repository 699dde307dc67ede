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

// A line is an event as frames show it, rendered once for all who follow. It is
// never changed.
type line struct {
	seq        uint64
	typ        timeline.Type
	vocabulary timeline.Vocabulary
	modes      timeline.Modes
	effect     timeline.Effect
	event      store.Event // what it was made of, for who folds
	doc        []byte      // RunEventDoc
	chunk      []byte      // ai.message.chunk, of an output.chunk alone
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

// A pager reads a log in pages. It learns from each how large events are, so
// that the next takes no more memory than a page may have.
type pager struct{ limit int }

// firstPage is small, for nothing is known yet.
const firstPage = 16

// plan returns how many events to ask for.
func (p *pager) plan() int {
	if p.limit == 0 {
		p.limit = firstPage
	}
	return p.limit
}

// learn takes the number and size of the events of a page.
func (p *pager) learn(n, bytes int) {
	if n > 0 {
		p.limit = max(1, min(pageEvents, 2*p.limit, pageBytes*n/max(bytes, 1)))
	}
}
