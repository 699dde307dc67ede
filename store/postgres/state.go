package postgres

import (
	"context"

	"github.com/sluicehost/sluice/store"
)

// States implements store.Store. The result is sorted by stream.
func (s *states) States(ctx context.Context, connection store.ConnectionID,
	grant store.GrantID) ([]store.State, error) {
	return list[store.State](ctx, s.db, "select body from state where connection = $1 and permit = $2 order by stream",
		string(connection), string(grant))
}

// Staged implements store.Store. The result is sorted by stream.
func (s *states) Staged(ctx context.Context, id store.RunID) ([]store.State, error) {
	return list[store.State](ctx, s.db, "select body from staged where run = $1 order by stream", string(id))
}

// ResetState implements store.Store.
func (s *states) ResetState(ctx context.Context, connection store.ConnectionID, grant store.GrantID,
	stream store.Stream) error {
	return s.write(ctx, s.owning(connection), func(ctx context.Context, t *tx) error {
		if err := t.idle(ctx, connection); err != nil {
			return err
		}
		_, err := t.exec(ctx, "delete from state where connection = $1 and permit = $2 and ($3 = '' or stream = $3)",
			string(connection), string(grant), string(stream))
		return err
	})
}

// Gaps implements store.Store. The oldest gap comes first.
func (s *states) Gaps(ctx context.Context, connection store.ConnectionID, grant store.GrantID,
	status string) ([]store.DetailGap, error) {
	kept, err := list[store.KeptGap](ctx, s.db, "select body from gap where connection = $1 and permit = $2",
		string(connection), string(grant))
	return store.OldestGaps(kept, status), err
}

// Pending implements store.Store.
func (s *states) Pending(ctx context.Context, id store.RunID) ([]store.Interaction, error) {
	all, err := list[store.SealedInteraction](ctx, s.db,
		"select body from question where ($1 = '' or run = $1) order by run, id", string(id))
	if err != nil {
		return nil, err
	}
	return s.questions.OpenAll(all)
}
