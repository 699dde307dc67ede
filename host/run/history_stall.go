package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// firstBeside is the number of the first piece that is not in the order of the journal. What tells of a full
// disk goes to the store before commits that have their pieces already, so it is kept beside them: one
// piece for each such event, which is sealed with the stall until that is over, and with nothing from then on.
const firstBeside = 1 << 62

// overtaken is the piece that goes with the event of a stall.
func (h *history) overtaken(s *stall) []store.JournalPiece {
	if !h.resumable || !h.keeps() {
		return nil
	}
	h.beside++
	return h.tells(s)
}

// goesOn is the piece that goes with the end of the stall.
func (h *history) goesOn() []store.JournalPiece {
	if !h.resumable || !h.keeps() || h.beside == 0 {
		return nil
	}
	return h.tells(&stall{})
}

// tells is the newest piece beside the journal.
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
	ID      string `json:"id"` // "" once it is over
	Message string `json:"message"`
}

// readBeside counts the events that overtook others before the run was put down.
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
