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

// A mark says that an automatic run asked its owner something. One that was
// cleared stays, so that the same question does not set it again.
type mark struct {
	RunID    store.RunID `json:"run_id"`
	Sequence uint64      `json:"sequence"` // of the question's event
	At       time.Time   `json:"at"`
	Cleared  bool        `json:"cleared,omitempty"`
}

// covers reports whether m is about an event of a run or a later one.
func (m mark) covers(run store.RunID, sequence uint64) bool {
	return m.RunID > run || m.RunID == run && m.Sequence >= sequence
}

// NeedsAttention reports whether a connection waits for its owner.
func (s *Scheduler) NeedsAttention(ctx context.Context, id store.ConnectionID) (bool, error) {
	m, _, err := s.readMark(ctx, id)
	if err != nil || m.RunID == "" || m.Cleared {
		return false, err
	}
	runs, err := s.d.Store.Runs(ctx, id, "", lookBack)
	if err != nil {
		return false, fmt.Errorf("list runs of %s: %w", id, err)
	}
	if slices.ContainsFunc(runs, func(r store.Run) bool { return r.ID > m.RunID && !automatic(r) }) {
		return false, s.DismissAttention(ctx, id) // a manual run started
	}
	return true, nil
}

// DismissAttention clears the mark; that there is none is no error.
func (s *Scheduler) DismissAttention(ctx context.Context, id store.ConnectionID) error {
	return s.changeMark(ctx, id, func(m *mark) bool {
		cleared := m.RunID != "" && !m.Cleared
		m.Cleared = true
		return cleared
	})
}

// readMark is the mark of a connection with the revision of its document.
func (s *Scheduler) readMark(ctx context.Context, id store.ConnectionID) (m mark, revision uint64, err error) {
	d, err := s.d.Store.Document(ctx, store.Attention, string(id))
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

// changeMark writes a mark when edit says that it changed.
func (s *Scheduler) changeMark(ctx context.Context, id store.ConnectionID, edit func(*mark) bool) error {
	for try := 1; ; try++ {
		m, revision, err := s.readMark(ctx, id)
		if err != nil || !edit(&m) {
			return err
		}
		data, err := json.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode mark of %s: %w", id, err)
		}
		err = s.d.Store.Write(ctx, store.Write{Kind: store.Attention, ID: string(id), Data: data, If: &revision})
		switch {
		case err == nil:
			s.d.Changed(id)
			return nil
		case !errors.As(err, new(*store.ConflictError)) || try == attempts:
			return fmt.Errorf("save mark of %s: %w", id, err)
		}
	}
}

func automatic(r store.Run) bool { return r.TriggerKind != "manual" }

// eventPage is how many events of a run are read at once.
const eventPage = 200

// heed reads the timeline of an automatic run as far as it goes, for the
// questions in it. Reading it again changes nothing.
func (s *Scheduler) heed(ctx context.Context, run store.Run, o *open) error {
	for {
		events, err := s.d.Store.Events(ctx, run.ID, o.Read, eventPage)
		if err != nil {
			return fmt.Errorf("read events of run %s: %w", run.ID, err)
		}
		for _, e := range events {
			switch {
			case e.Type == "run.interaction_required":
				err = s.changeMark(ctx, run.ConnectionID, func(m *mark) bool {
					known := m.covers(run.ID, e.Sequence)
					*m = mark{RunID: run.ID, Sequence: e.Sequence, At: e.OccurredAt}
					return !known
				})
			case e.Type == "run.interaction_completed" && e.Status == "success":
				err = s.changeMark(ctx, run.ConnectionID, func(m *mark) bool {
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
