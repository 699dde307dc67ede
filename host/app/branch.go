package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// A branch is the initial state of a run that branches off another. The zero branch is none.
type branch struct {
	state      []byte
	cursorRuns map[string]store.RunID

	automation string // automation_mode of a run that the host starts by itself
}

// A cursorEvent is the part of an event that branches need.
type cursorEvent struct {
	Cursor    json.RawMessage              `json:"cursor"`
	StateFrom map[store.Stream]store.RunID `json:"state_from"`
	Supplied  bool                         `json:"state_supplied"`
}

// branchOf returns the state that a branch begins with: per stream the last cursor that the source committed
// before fromSeq, otherwise the one that the source started with, which is known by the run that committed it.
func (fs *forks) branchOf(ctx context.Context, src store.Run, fromSeq uint64) (branch, error) {
	b := branch{cursorRuns: map[string]store.RunID{}}
	begun, err := fs.startEvent(ctx, src.ID)
	if err != nil {
		return b, err
	}
	if begun.Supplied {
		return b, unavailable("checkpoint_pruned", "the run began with a state that was given to it and is not kept")
	}
	for stream, id := range begun.StateFrom {
		b.cursorRuns[string(stream)] = id
	}
	own, err := fs.committedCursors(ctx, src.ID, fromSeq)
	if err != nil {
		return b, err
	}
	for stream := range own {
		b.cursorRuns[string(stream)] = src.ID
	}
	current, err := fs.currentStates(ctx, src)
	if err != nil {
		return b, err
	}
	cursors := map[string]json.RawMessage{}
	for stream, id := range b.cursorRuns {
		if cursors[stream], err = fs.cursorOf(ctx, store.Stream(stream), id, current, own, src.ID); err != nil {
			return b, err
		}
	}
	b.state, err = json.Marshal(cursors)
	return b, err
}

// startEvent reads the event run.started, the zero value if there is none.
func (fs *forks) startEvent(ctx context.Context, id store.RunID) (cursorEvent, error) {
	var f cursorEvent
	events, err := fs.Store.Events(ctx, id, 0, 1)
	if err != nil {
		return f, fmt.Errorf("read timeline of %s: %w", id, err)
	}
	if len(events) == 0 || events[0].Type != "run.started" {
		return f, nil
	}
	if err := json.Unmarshal(events[0].Data, &f); err != nil {
		return f, fmt.Errorf("read event 0 of %s: %w", id, err)
	}
	return f, nil
}

// committedCursors returns the cursors that a run committed before an event, from its timeline. It reads backwards,
// because cursors are committed at the end of a run, after everything that its guest did.
func (fs *forks) committedCursors(ctx context.Context, id store.RunID,
	before uint64) (map[store.Stream]json.RawMessage, error) {
	out := map[store.Stream]json.RawMessage{}
	for before > 0 {
		events, err := fs.Store.EventsBefore(ctx, id, before, 200)
		if err != nil {
			return nil, fmt.Errorf("read timeline of %s: %w", id, err)
		}
		if len(events) == 0 {
			break
		}
		before = events[0].Sequence
		for _, e := range slices.Backward(events) {
			switch e.Type {
			case "run.state_advanced":
				var f cursorEvent
				if err := json.Unmarshal(e.Data, &f); err != nil {
					return nil, fmt.Errorf("read event %d of %s: %w", e.Sequence, id, err)
				}
				if _, later := out[e.Stream]; !later {
					out[e.Stream] = f.Cursor
				}
			case "run.state_staged", "run.batch_ingested", "run.started":
				return out, nil
			}
		}
	}
	return out, nil
}

// currentStates returns the current cursors of the source's connection and grant.
func (fs *forks) currentStates(ctx context.Context, src store.Run) (map[store.Stream]store.State, error) {
	states, err := fs.Store.States(ctx, src.ConnectionID, src.GrantID)
	if err != nil {
		return nil, fmt.Errorf("load state of %s: %w", src.ConnectionID, err)
	}
	out := map[store.Stream]store.State{}
	for _, st := range states {
		out[st.Stream] = st
	}
	return out, nil
}

// cursorOf returns the cursor that the run by committed for a stream. If it is still the newest, the store has
// it; otherwise it is read from the timeline of that run, unless that was deleted or the cursor was too large to
// be recorded.
func (fs *forks) cursorOf(ctx context.Context, stream store.Stream, by store.RunID,
	current map[store.Stream]store.State,
	own map[store.Stream]json.RawMessage, src store.RunID) (json.RawMessage, error) {
	if c, ok := current[stream]; ok && c.RunID == by {
		return c.Cursor, nil
	}
	all := own
	if by != src {
		var err error
		if all, err = fs.allCommitted(ctx, by); err != nil {
			return nil, err
		}
	}
	cursor, ok := all[stream]
	if !ok || truncated(cursor) {
		return nil, unavailable("checkpoint_pruned", "the checkpoint that the branch would start from is not kept any more")
	}
	return cursor, nil
}

func (fs *forks) allCommitted(ctx context.Context, id store.RunID) (map[store.Stream]json.RawMessage, error) {
	head, err := fs.Store.RunHead(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read timeline of %s: %w", id, err)
	}
	return fs.committedCursors(ctx, id, head.Next)
}

// truncated reports whether a timeline has a placeholder instead of a cursor. A cursor that looks like a
// placeholder counts as one.
func truncated(cursor json.RawMessage) bool {
	v, err := strictjson.Parse(cursor, strictjson.ParseOptions{AnyKind: true})
	m, _ := v.Member("truncated")
	yes, _ := m.Bool()
	return err != nil || yes
}

// hasAdvanced reports whether the connection's cursors differ from those with which the branch begins.
func (fs *forks) hasAdvanced(ctx context.Context, src store.Run, b branch) (bool, error) {
	current, err := fs.currentStates(ctx, src)
	if err != nil {
		return false, err
	}
	begins := map[string]json.RawMessage{}
	if err := json.Unmarshal(b.state, &begins); err != nil {
		return false, fmt.Errorf("read state of a branch: %w", err)
	}
	if len(begins) != len(current) {
		return true, nil
	}
	for stream, cursor := range begins {
		c, ok := current[store.Stream(stream)]
		if !ok || !bytes.Equal(strictjson.AppendCompact(nil, c.Cursor), strictjson.AppendCompact(nil, cursor)) {
			return true, nil
		}
	}
	return false, nil
}
