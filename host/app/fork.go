package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// forks starts runs that branch off earlier ones.
type forks struct {
	*directory
	runs        *runs
	connections *connectionStore
}

// ForkRun implements host.Runs: it starts a branch of a run that is over, from the cursors as of one of its
// events. The error is a *host.Refusal: conflict with details.runStatus, events_expired, validation_error for a
// fromSeq that the run does not have, replay_unavailable with details.reason checkpoint_pruned or
// module_missing, or the refusal of the start.
func (fs *forks) ForkRun(ctx context.Context, q host.ForkRun) (store.Run, error) {
	start, b, err := fs.plan(ctx, q)
	if err != nil {
		return store.Run{}, err
	}
	r, done, err := fs.runs.startElsewhere(ctx, start, func(passed host.StartRun) (verb string, body any) {
		q.Start.At = passed.At
		return verbForkAt, q
	})
	if done || err != nil {
		return r, err
	}
	return fs.runs.start(ctx, start, b)
}

// forkHere starts a branch at the request of another host.
func (fs *forks) forkHere(ctx context.Context, q host.ForkRun) (store.Run, error) {
	start, b, err := fs.plan(ctx, q)
	if err != nil {
		return store.Run{}, err
	}
	return fs.runs.startWith(ctx, start, b)
}

// plan returns the start of a branch, and what it begins with.
func (fs *forks) plan(ctx context.Context, q host.ForkRun) (start host.StartRun, b branch, err error) {
	src, err := fs.forkable(ctx, q)
	if err != nil {
		return start, b, asRefusal(err)
	}
	start = q.Start
	if start.WorkflowID, err = fs.workflowOf(ctx, src); err != nil {
		return start, b, err
	}
	if b, err = fs.branchOf(ctx, src, q.FromSeq); err != nil {
		return start, b, err
	}
	moved, err := fs.hasAdvanced(ctx, src, b)
	if err != nil {
		return start, b, err
	}
	start.NoPersist = start.NoPersist || moved // a branch never moves a cursor backwards
	start.Trigger = ""
	start.Request.ForkedFrom = &store.ForkedFrom{RunID: src.ID, FromSeq: q.FromSeq, Mode: "branch"}
	return start, b, nil
}

// forkable returns the source of a branch. It refuses a run that is active, lacks the event, or whose timeline
// or module is gone.
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
		return src, host.Refuse("validation_error", "fromSeq: the run has no such event").With("fields",
			[]map[string]string{{"path": "fromSeq", "rule": "exists"}})
	}
	return src, fs.stillInstalled(ctx, src.Digest)
}

// statusOf returns the API's status of an active run.
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

// workflowOf returns the workflow id for a branch: the connection of its source or, since each run of a
// conformance connector has its own connection, the name of that connector.
func (fs *forks) workflowOf(ctx context.Context, src store.Run) (string, error) {
	c, err := fs.connections.permanent(ctx, src.ConnectionID)
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
	return "", host.Refuse("connection_not_ready", "the connection of this run was deleted").With("code",
		"connection_not_found")
}
