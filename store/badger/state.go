package badger

import (
	"context"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// States implements store.Store. The result is sorted by stream.
func (s *states) States(ctx context.Context, connection store.ConnectionID,
	grant store.GrantID) ([]store.State, error) {
	return listJSON[store.State](ctx, s.disk, stateKey(connection, grant, ""),
		eraseNote(erasedConnection, string(connection)))
}

// Staged implements store.Store. The result is sorted by stream.
func (s *states) Staged(ctx context.Context, id store.RunID) ([]store.State, error) {
	return listJSON[store.State](ctx, s.disk, key(kindStaged, string(id), ""))
}

// ResetState implements store.Store.
func (s *states) ResetState(ctx context.Context, connection store.ConnectionID, grant store.GrantID,
	stream store.Stream) error {
	return s.queue.do(ctx, true, func(g *group) error {
		if err := idle(g, connection); err != nil {
			return err
		}
		if stream != "" {
			return g.remove(stateKey(connection, grant, stream))
		}
		for _, k := range slices.Collect(g.c.base.keys(stateKey(connection, grant, ""), nil, false)) {
			if err := g.remove(k); err != nil {
				return err
			}
		}
		return nil
	})
}

func gapKey(c store.ConnectionID, g store.GrantID, gap store.DetailGap) []byte {
	return key(kindGap, string(c), string(g), gap.Identity())
}

// Gaps implements store.Store. The oldest gap comes first.
func (s *states) Gaps(ctx context.Context, connection store.ConnectionID, grant store.GrantID,
	status string) ([]store.DetailGap, error) {
	kept, err := listJSON[store.KeptGap](ctx, s.disk, key(kindGap, string(connection), string(grant), ""),
		eraseNote(erasedConnection, string(connection)))
	return store.OldestGaps(kept, status), err
}

// Pending implements store.Store.
func (s *states) Pending(ctx context.Context, id store.RunID) ([]store.Interaction, error) {
	prefix := []byte{kindPending}
	if id != "" {
		prefix = key(kindPending, string(id), "")
	}
	all, err := listJSON[store.SealedInteraction](ctx, s.disk, prefix)
	if err != nil {
		return nil, err
	}
	return s.questions.OpenAll(all)
}
