package app

import (
	"context"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// state implements host.State.
type state struct {
	*directory
	connections *connectionStore
	attention   attention
}

var _ host.State = (*state)(nil)

// ResetState implements host.State. grant is the id of a namespace, or the shown id of the current grant.
func (ss *state) ResetState(ctx context.Context, id store.ConnectionID, grant store.GrantID,
	stream store.Stream) error {
	c, err := ss.connections.permanent(ctx, id)
	if err != nil {
		return asRefusal(err)
	}
	if string(grant) == grantRef(c.Grant) {
		grant = ""
		if c.Grant != nil {
			grant = c.Grant.ID
		}
	}
	e := by(ctx, audit.Event{Action: audit.StateReset, Target: string(id), Outcome: audit.Done})
	if stream != "" {
		e.Details = append(e.Details, audit.Stream(string(stream)))
	}
	return asRefusal(ss.audited(e, func() error { return ss.Store.ResetState(ctx, id, grant, stream) }))
}

// DismissAttention implements host.State.
func (ss *state) DismissAttention(ctx context.Context, id store.ConnectionID) error {
	if _, err := ss.connections.permanent(ctx, id); err != nil {
		return asRefusal(err)
	}
	e := by(ctx, audit.Event{Action: audit.ConnectionChanged, Target: string(id), Outcome: audit.Done,
		Details: []audit.Detail{audit.Code("attention_dismissed")}})
	return asRefusal(ss.audited(e, func() error {
		return ss.attention.DismissAttention(ctx, id)
	}))
}

// attention keeps the marks of connections that need their owner's attention.
type attention interface {
	NeedsAttention(ctx context.Context, id store.ConnectionID) (bool, error)
	// DismissAttention clears the mark. It is no error if there is none.
	DismissAttention(ctx context.Context, id store.ConnectionID) error
}
