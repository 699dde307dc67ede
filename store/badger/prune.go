package badger

import (
	"context"

	"github.com/sluicehost/sluice/store"
)

// Prune implements store.Store.
func (s *Store) Prune(ctx context.Context, id store.RunID) error {
	s.whole.RLock()
	defer s.whole.RUnlock()
	err := s.do(ctx, false, func(g *group) error {
		var r store.Run
		if ok, err := g.getJSON(key(kindRun, string(id)), &r); err != nil || !ok {
			return missing(err, "run %s", id)
		}
		head, _, err := getHead(g, id)
		if err != nil || r.Pruned {
			return err
		}
		if !head.ended {
			return &store.ActiveError{RunID: id}
		}
		r.Pruned = true
		g.put(being(erasedRun, string(id)), newValue(0))
		return g.putJSON(key(kindRun, string(id)), r)
	})
	if err != nil {
		return err
	}
	return s.pruneRun(ctx, string(id))
}

// pruneRun deletes the events of a run whose timeline goes, the last one first.
func (s *Store) pruneRun(ctx context.Context, id string) error {
	prefix := key(kindEvent, id, "")
	err := s.inSteps(ctx, func(r reader, after []byte, most int) [][]byte {
		return r.somebackwards(prefix, after, most)
	}, (*group).remove)
	if err != nil {
		return err
	}
	return s.unnote(ctx, being(erasedRun, id))
}
