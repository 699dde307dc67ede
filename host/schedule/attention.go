package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// marks records which connections need their owner.
type marks struct{ store Store }

// A mark says that an automatic run asked its owner something. A cleared mark is kept, so that the
// same question does not set it again.
type mark struct {
	RunID    store.RunID `json:"run_id"`
	Sequence uint64      `json:"sequence"` // of the question's event
	At       time.Time   `json:"at"`
	Cleared  bool        `json:"cleared,omitempty"`
}

// covers reports whether m is about this event of a run or a later one.
func (m mark) covers(run store.RunID, sequence uint64) bool {
	return m.RunID > run || m.RunID == run && m.Sequence >= sequence
}

// NeedsAttention reports whether a connection waits for its owner.
func (ms *marks) NeedsAttention(ctx context.Context, id store.ConnectionID) (bool, error) {
	m, _, err := ms.read(ctx, id)
	if err != nil || m.RunID == "" || m.Cleared {
		return false, err
	}
	runs, err := ms.store.Runs(ctx, id, "", lookBack)
	if err != nil {
		return false, fmt.Errorf("list runs of %s: %w", id, err)
	}
	if slices.ContainsFunc(runs, func(r store.Run) bool { return r.ID > m.RunID && !automatic(r) }) {
		return false, ms.DismissAttention(ctx, id) // a manual run started
	}
	return true, nil
}

// DismissAttention clears the mark. A missing mark is no error.
func (ms *marks) DismissAttention(ctx context.Context, id store.ConnectionID) error {
	return ms.change(ctx, id, func(m *mark) bool {
		cleared := m.RunID != "" && !m.Cleared
		m.Cleared = true
		return cleared
	})
}

// read returns the mark of a connection and the revision of its document.
func (ms *marks) read(ctx context.Context, id store.ConnectionID) (m mark, revision uint64, err error) {
	d, err := ms.store.Document(ctx, store.Attention, string(id))
	if errors.Is(err, store.ErrNotFound) {
		return m, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(d.Data, &m)
	}
	if err != nil {
		err = fmt.Errorf("read mark of %s: %w", id, err)
	}
	return m, d.Revision, err
}

// change writes a mark if edit reports that it changed it.
func (ms *marks) change(ctx context.Context, id store.ConnectionID, edit func(*mark) bool) error {
	for try := 1; ; try++ {
		m, revision, err := ms.read(ctx, id)
		if err != nil || !edit(&m) {
			return err
		}
		data, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode mark of %s: %w", id, err)
		}
		err = ms.store.Write(ctx, store.Write{Kind: store.Attention, ID: string(id), Data: data, If: &revision})
		switch {
		case err == nil:
			return nil
		case !errors.As(err, new(*store.ConflictError)) || try == attempts:
			return fmt.Errorf("save mark of %s: %w", id, err)
		}
	}
}

func automatic(r store.Run) bool { return r.TriggerKind != "manual" }

// eventPage is how many events of a run are read at once.
const eventPage = 200

// follow reads the new events of an automatic run and sets or clears the mark by the questions in
// them. Reading an event again changes nothing.
func (ms *marks) follow(ctx context.Context, run store.Run, o *openTick) error {
	for {
		events, err := ms.store.Events(ctx, run.ID, o.Read, eventPage)
		if err != nil {
			return fmt.Errorf("read events of run %s: %w", run.ID, err)
		}
		for _, e := range events {
			switch {
			case e.Type == "run.interaction_required":
				err = ms.change(ctx, run.ConnectionID, func(m *mark) bool {
					known := m.covers(run.ID, e.Sequence)
					*m = mark{RunID: run.ID, Sequence: e.Sequence, At: e.OccurredAt}
					return !known
				})
			case e.Type == "run.interaction_completed" && e.Status == "success":
				err = ms.change(ctx, run.ConnectionID, func(m *mark) bool {
					clears := m.RunID != "" && !m.Cleared && !m.covers(run.ID, e.Sequence)
					m.Cleared = true
					return clears
				})
			}
			if err != nil {
				return err
			}
			o.Read = e.Sequence + 1
		}
		if len(events) < eventPage {
			return nil
		}
	}
}
