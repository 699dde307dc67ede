package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// firstOutOfOrder is the number of the first piece outside of the order of the journal. An event that reports a full
// disk overtakes commits that have their pieces already, so it gets a piece of its own. The piece holds the
// stall, or an empty one once the stall is over.
const firstOutOfOrder = 1 << 62

// stallPiece returns the piece of the event that reports a stall.
func (h *history) stallPiece(s *stall) []store.JournalPiece {
	if !h.resumable || !h.enabled() {
		return nil
	}
	h.outOfOrder++
	return h.newestStallPiece(s)
}

// stallEndPiece returns the piece of the event that ends a stall.
func (h *history) stallEndPiece() []store.JournalPiece {
	if !h.resumable || !h.enabled() || h.outOfOrder == 0 {
		return nil
	}
	return h.newestStallPiece(&stall{})
}

// newestStallPiece returns the newest piece outside of the order.
func (h *history) newestStallPiece(s *stall) []store.JournalPiece {
	b, err := json.Marshal(stallReport{s.shown, s.message})
	if err != nil {
		h.disable("what it waits for cannot be kept")
		return nil
	}
	n := firstOutOfOrder + h.outOfOrder - 1
	return []store.JournalPiece{{N: n, Data: h.sealer.seal(n, append(make([]byte, pieceBytes16), b...))}}
}

type stallReport struct {
	ID      string `json:"id"` // "" for a stall that is over
	Message string `json:"message"`
}

// readOutOfOrder reads the pieces outside of the order when a run is resumed.
func (h *history) readOutOfOrder(ctx context.Context) error {
	for {
		n := firstOutOfOrder + h.outOfOrder
		piece, err := h.deps.Store.Journal(ctx, h.id, n)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		var latest stallReport
		if err == nil {
			_, b, damaged := h.sealer.open(n, piece)
			if err = damaged; err == nil {
				err = json.Unmarshal(b, &latest)
			}
		}
		if err != nil {
			return fmt.Errorf("read what is beside the journal: %w", err)
		}
		h.outOfOrder, h.reportedStall = h.outOfOrder+1, nil
		if latest.ID != "" {
			h.reportedStall = &stall{message: latest.Message, shown: latest.ID}
		}
	}
}
