package badger

import (
	"context"
	"sync"

	"github.com/sluicehost/sluice/store"
)

// visible is what readers see: everything up to the newest commit that is durable and in the witness.
type visible struct {
	sync.RWMutex // guards the other fields and what streams show to readers
	commit       uint64
	pinned       map[uint64]int        // number of snapshots of each commit
	streams      map[streamKey]*stream // those that the committer has in memory
	idle         idleStreams
}

// pin keeps what the newest commit needs until unpin. If also is not nil, it runs before a newer commit is shown.
func (v *visible) pin(also func()) (commit uint64) {
	v.Lock()
	defer v.Unlock()
	v.pinned[v.commit]++
	if also != nil {
		also()
	}
	return v.commit
}

// repin pins a commit that is already pinned.
func (v *visible) repin(commit uint64) uint64 {
	v.Lock()
	defer v.Unlock()
	v.pinned[commit]++
	return commit
}

func (v *visible) unpin(commit uint64) {
	v.Lock()
	defer v.Unlock()
	if v.pinned[commit]--; v.pinned[commit] == 0 {
		delete(v.pinned, commit)
	}
}

func (v *visible) newest() uint64 {
	v.RLock()
	defer v.RUnlock()
	return v.commit
}

// oldest returns the oldest pinned commit, or the newest commit if none is pinned.
func (v *visible) oldest() uint64 {
	v.RLock()
	defer v.RUnlock()
	oldest := v.commit
	for commit := range v.pinned {
		oldest = min(oldest, commit)
	}
	return oldest
}

// change runs fn while no reader accesses v.
func (v *visible) change(fn func()) {
	v.Lock()
	defer v.Unlock()
	fn()
}

// publish makes a durable group visible and wakes those who watch its runs.
func (s *disk) publish(g *group) {
	s.visible.change(func() {
		for _, publish := range g.publish {
			publish()
		}
		s.visible.commit = g.seq
	})
	s.watchers.Wake(g.wake)
	s.removePending()
}

// discardBefore lets the engine discard versions that no open snapshot can see.
func (s *disk) discardBefore(commit uint64) { s.db.SetDiscardTs(min(commit, s.visible.oldest())) }

// A snapshot is a reader that delays closing and suspending the engine until it is closed.
type snapshot struct {
	reader
	s *disk
}

// snapshot opens a view of the newest visible commit. If also is not nil, it runs with that commit pinned and before a
// newer one is shown.
func (s *disk) snapshot(ctx context.Context, also func()) (*snapshot, error) {
	return s.snapshotOf(ctx, func() uint64 { return s.visible.pin(also) })
}

// snapshotOf opens a view of the commit that pin pins and returns.
func (s *disk) snapshotOf(ctx context.Context, pin func() uint64) (*snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.gate.RLock()
	if s.db == nil {
		s.gate.RUnlock()
		select {
		case <-s.closing:
			return nil, store.ErrClosed
		default:
			return nil, store.ErrNoSpace
		}
	}
	return &snapshot{s.reader(pin()), s}, nil
}

func (r *snapshot) close() {
	r.txn.Discard()
	r.s.visible.unpin(r.ts)
	r.s.gate.RUnlock()
	r.s.removePending()
}

// A view pins one commit. Between two pages it holds no snapshot, so a slow reader delays neither Close nor a store
// that runs out of space.
type view struct {
	s       *disk
	ts      uint64
	windows windows // its own, because those of the store may be newer
	once    sync.Once
}

// View implements store.Store.
func (s *disk) View(ctx context.Context) (store.View, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return &view{s: s, ts: s.visible.repin(r.ts), windows: windows{most: 1}}, nil
}

// Close implements store.View.
func (v *view) Close() {
	v.once.Do(func() {
		v.s.visible.unpin(v.ts)
		v.s.removePending()
	})
}

// Records implements store.View. It must not be called after Close.
func (v *view) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	return v.windows.records(ctx, q, v.snapshot)
}

func (v *view) snapshot(ctx context.Context) (*snapshot, error) {
	return v.s.snapshotOf(ctx, func() uint64 { return v.s.visible.repin(v.ts) })
}
