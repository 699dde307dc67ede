package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// forks starts runs that branch off an earlier one.
type forks struct {
	*directory
	runs        *runs
	connections *connectionStore
}

// ForkRun implements host.Runs: it starts a branch of a run that is over, from the cursors as
// of an event of it. A *host.Refusal says conflict with details.runStatus, events_expired,
// validation_error for a fromSeq that the run does not have, replay_unavailable with
// details.reason checkpoint_pruned or module_missing, or why the start was refused.
func (fs *forks) ForkRun(ctx context.Context, q host.ForkRun) (store.Run, error) {
	src, err := fs.forkable(ctx, q)
	if err != nil {
		return store.Run{}, asked(err)
	}
	start := q.Start
	if start.WorkflowID, err = fs.workflowOf(ctx, src); err != nil {
		return store.Run{}, err
	}
	b, err := fs.branchOf(ctx, src, q.FromSeq)
	if err != nil {
		return store.Run{}, err
	}
	moved, err := fs.movedOn(ctx, src, b)
	if err != nil {
		return store.Run{}, err
	}
	start.NoPersist = start.NoPersist || moved // a branch never moves a cursor backwards
	start.Trigger = ""
	start.Request.ForkedFrom = &store.ForkedFrom{RunID: src.ID, FromSeq: q.FromSeq, Mode: "branch"}
	return fs.runs.start(ctx, start, b)
}

// forkable is the source of a branch: a run that is over, with this event.
func (fs *forks) forkable(ctx context.Context, q host.ForkRun) (store.Run, error) {
	src, err := fs.Store.Run(ctx, q.Source)
	switch {
	case err != nil:
		return src, err
	case src.Status == "active":
		status, err := fs.statusOf(ctx, src)
		if err != nil {
			return src, err
		}
		return src, host.Refuse("conflict", "only a run that is over can be forked").With("runStatus", status)
	case src.Pruned:
		return src, host.Refuse("events_expired", "the timeline of this run was deleted")
	}
	head, err := fs.Store.RunHead(ctx, src.ID)
	if err != nil {
		return src, fmt.Errorf("read timeline of %s: %w", src.ID, err)
	}
	if q.FromSeq >= head.Next {
		return src, host.Refuse("validation_error", "fromSeq: the run has no such event").With("fields", []map[string]string{{"path": "fromSeq", "rule": "exists"}})
	}
	return src, fs.stillInstalled(ctx, src.Digest)
}

// statusOf is the status of an active run.
func (fs *forks) statusOf(ctx context.Context, r store.Run) (string, error) {
	live, here := fs.runs.controller.Live(r.ID)
	switch {
	case here && live.Paused:
		return "paused", nil
	case r.Phase == "preparing":
		return "pending", nil
	case r.Phase != "waiting":
		return "running", nil
	}
	open, err := fs.Store.Pending(ctx, r.ID)
	if err != nil {
		return "", fmt.Errorf("list open questions of %s: %w", r.ID, err)
	}
	if len(open) > 0 && (open[0].Kind == abi.KindApproval || open[0].Kind == abi.KindManualAction) {
		return "waiting-approval", nil
	}
	return "waiting-input", nil
}

func unavailable(reason, message string) error {
	return host.Refuse("replay_unavailable", "%s", message).With("reason", reason)
}

// stillInstalled refuses a branch whose module was uninstalled.
func (fs *forks) stillInstalled(ctx context.Context, d store.Digest) error {
	all, err := fs.Store.Connectors(ctx)
	if err != nil {
		return fmt.Errorf("list connectors: %w", err)
	}
	if !slices.ContainsFunc(all, func(c store.Connector) bool { return c.Digest == d }) {
		return unavailable("module_missing", "the module of this run is not installed any more")
	}
	return nil
}

// workflowOf is what a branch runs: the source's connection, or the connector of
// a run whose connection was its own.
func (fs *forks) workflowOf(ctx context.Context, src store.Run) (string, error) {
	c, err := fs.connections.lasting(ctx, src.ConnectionID)
	switch {
	case err == nil && c.Grant != nil && c.Grant.ID != src.GrantID, err == nil && c.Grant == nil && src.GrantID != "":
		return "", unavailable("checkpoint_pruned", "the run kept its cursors under another grant")
	case err == nil || !errors.Is(err, store.ErrNotFound):
		return string(src.ConnectionID), err
	}
	all, err := fs.Store.Connectors(ctx)
	if err != nil {
		return "", fmt.Errorf("list connectors: %w", err)
	}
	for _, c := range all {
		if c.ID == src.ConnectorID && c.Conformance {
			return c.Name, nil
		}
	}
	return "", host.Refuse("connection_not_ready", "the connection of this run was deleted").With("code", "connection_not_found")
}

// A fact is what a branch reads of an event.
type fact struct {
	Cursor    json.RawMessage              `json:"cursor"`
	StateFrom map[store.Stream]store.RunID `json:"state_from"`
	Supplied  bool                         `json:"state_supplied"`
}

// branchOf is the state that a branch begins with: per stream the last cursor that the source
// committed before fromSeq, else the one that it started with. Those are known by the runs
// that committed them.
func (fs *forks) branchOf(ctx context.Context, src store.Run, fromSeq uint64) (branch, error) {
	b := branch{from: map[string]store.RunID{}}
	begun, err := fs.begun(ctx, src.ID)
	if err != nil {
		return b, err
	}
	if begun.Supplied {
		return b, unavailable("checkpoint_pruned", "the run began with a state that was given to it and is not kept")
	}
	for stream, id := range begun.StateFrom {
		b.from[string(stream)] = id
	}
	own, err := fs.committed(ctx, src.ID, fromSeq)
	if err != nil {
		return b, err
	}
	for stream := range own {
		b.from[string(stream)] = src.ID
	}
	current, err := fs.currentStates(ctx, src)
	if err != nil {
		return b, err
	}
	cursors := map[string]json.RawMessage{}
	for stream, id := range b.from {
		if cursors[stream], err = fs.cursorOf(ctx, store.Stream(stream), id, current, own, src.ID); err != nil {
			return b, err
		}
	}
	b.state, err = json.Marshal(cursors)
	return b, err
}

// begun reads run.started. A run that never did began with nothing.
func (fs *forks) begun(ctx context.Context, id store.RunID) (fact, error) {
	var f fact
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

// committed are the cursors that a run committed before an event, as its
// timeline shows them. It reads backwards: cursors are committed at a run's end,
// after everything that its guest did.
func (fs *forks) committed(ctx context.Context, id store.RunID, before uint64) (map[store.Stream]json.RawMessage, error) {
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
				var f fact
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

// currentStates are the cursors of the namespace that the source committed to.
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

// cursorOf is the cursor that a run committed for a stream. The store has it while it is the
// newest; else the timeline of that run does, unless it was deleted or the cursor was too
// large to be shown.
func (fs *forks) cursorOf(ctx context.Context, stream store.Stream, by store.RunID, current map[store.Stream]store.State,
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
	if !ok || cut(cursor) {
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
	return fs.committed(ctx, id, head.Next)
}

// cut reports whether a timeline shows something in the place of a value. A cursor that looks
// like that is taken for it.
func cut(cursor json.RawMessage) bool {
	v, err := strictjson.Parse(cursor, strictjson.ParseOptions{AnyKind: true})
	m, _ := v.Member("truncated")
	yes, _ := m.Bool()
	return err != nil || yes
}

// movedOn reports whether a cursor of the connection is not where the branch starts from.
func (fs *forks) movedOn(ctx context.Context, src store.Run, b branch) (bool, error) {
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
