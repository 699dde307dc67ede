package app

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// correlations tracks the scope ids of active runs in memory only, as long as the process performs them.
type correlations struct {
	mu  sync.Mutex // guards all, and users and runs of each
	all map[string]*correlation
}

// A correlation is a scope id in use. nil stands for runs without one.
type correlation struct {
	id    string
	turn  chan struct{} // capacity 1: held by the start in progress
	users int           // starts that hold it or wait for it
	runs  map[store.RunID]bool
	set   *correlations
}

// acquire waits until no other start with the scope id is in progress, so that a start sees the outcome of the one
// before. The caller must call leave.
func (s *correlations) acquire(ctx context.Context, id string) (*correlation, error) {
	if id == "" {
		return nil, nil
	}
	s.mu.Lock()
	sc := s.all[id]
	if sc == nil {
		if s.all == nil {
			s.all = map[string]*correlation{}
		}
		sc = &correlation{id: id, turn: make(chan struct{}, 1), runs: map[store.RunID]bool{}, set: s}
		s.all[id] = sc
	}
	sc.users++
	s.mu.Unlock()
	select {
	case sc.turn <- struct{}{}:
		return sc, nil
	case <-ctx.Done():
		s.forget(sc)
		return nil, ctx.Err()
	}
}

func (s *correlations) release(sc *correlation) {
	if sc != nil {
		<-sc.turn
		s.forget(sc)
	}
}

func (s *correlations) forget(sc *correlation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc.users--
	s.drop(sc)
}

// drop removes a scope id that is not in use. The caller holds mu.
func (s *correlations) drop(sc *correlation) {
	if sc.users == 0 && len(sc.runs) == 0 {
		delete(s.all, sc.id)
	}
}

// add makes a run part of the scope until over is called.
func (s *correlations) add(sc *correlation, id store.RunID) (over func()) {
	if sc == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sc.runs[id] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(sc.runs, id)
		s.drop(sc)
	}
}

// free refuses a start that must be the only one of its scope while another run of the scope is active.
func (sc *correlation) free(ctx context.Context, st store.Store, only bool) error {
	if sc == nil || !only {
		return nil
	}
	sc.set.mu.Lock()
	ids := slices.Collect(maps.Keys(sc.runs))
	sc.set.mu.Unlock()
	for _, id := range ids {
		if rec, err := st.Run(ctx, id); err == nil && rec.Status != "active" {
			continue // a caller that saw its end may start the next one
		}
		return host.Refuse("run_already_active", "a run with this scopeId is active").With("activeRunId", string(id))
	}
	return nil
}
