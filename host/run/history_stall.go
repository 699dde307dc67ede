package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// firstBeside is the number of the first piece outside of the order of the journal. An event that reports a full
// disk overtakes commits that have their pieces already, so it gets a piece of its own. The piece holds the
// stall, or an empty one once the stall is over.
const firstBeside = 1 << 62

// overtaken returns the piece of the event that reports a stall.
func (h *history) overtaken(s *stall) []store.JournalPiece {
	if !h.resumable || !h.keeps() {
		return nil
	}
	h.beside++
	return h.tells(s)
}

// goesOn returns the piece of the event that ends a stall.
func (h *history) goesOn() []store.JournalPiece {
	if !h.resumable || !h.keeps() || h.beside == 0 {
		return nil
	}
	return h.tells(&stall{})
}

// tells returns the newest piece outside of the order.
func (h *history) tells(s *stall) []store.JournalPiece {
	b, err := json.Marshal(toldStall{s.shown, s.message})
	if err != nil {
		h.give("what it waits for cannot be kept")
		return nil
	}
	n := firstBeside + h.beside - 1
	return []store.JournalPiece{{N: n, Data: h.sealer.seal(n, append(make([]byte, pieceBytes16), b...))}}
}

type toldStall struct {
	ID      string `json:"id"` // "" for a stall that is over
	Message string `json:"message"`
}

// readBeside reads the pieces outside of the order when a run is resumed.
func (h *history) readBeside(ctx context.Context) error {
	for {
		n := firstBeside + h.beside
		piece, err := h.deps.Store.Journal(ctx, h.id, n)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		var told toldStall
		if err == nil {
			_, b, damaged := h.sealer.open(n, piece)
			if err = damaged; err == nil {
				err = json.Unmarshal(b, &told)
			}
		}
		if err != nil {
			return fmt.Errorf("read what is beside the journal: %w", err)
		}
		h.beside, h.stood = h.beside+1, nil
		if told.ID != "" {
			h.stood = &stall{message: told.Message, shown: told.ID}
		}
	}
}
