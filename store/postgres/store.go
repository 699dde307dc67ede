package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

var _ store.Store = (*Store)(nil)

// A Store is a store in a database, made by OpenURL. Each view of store.Store is implemented by one of the embedded
// types.
type Store struct {
	*db
	connectors
	connections
	documents
	leases
	timelines
	states
	records
	files
	members
	submitted submitted
	closeOnce sync.Once
}

type (
	connectors  struct{ *db }
	connections struct{ *db }
	documents   struct{ *db }
	leases      struct{ *db }
	timelines   struct{ *db }
	states      struct{ *db }
	records     struct{ *db }
	files       struct{ *db }
	members     struct {
		*db
		keeper *keeper
	}
)

func newStore(a *address) *Store {
	d := newDB(a)
	s := &Store{
		db: d, connectors: connectors{d}, connections: connections{d}, documents: documents{d}, leases: leases{d},
		timelines: timelines{d}, states: states{d}, records: records{d}, files: files{d}, members: members{d, &keeper{}},
	}
	s.submitted.init(s)

	return s
}

// closeWait is how long Close waits for a server that is unreachable or has a full disk.
const closeWait = 5 * time.Second

// Close waits for what was submitted, then ends all connections. What the server has not accepted after 5 s fails. It
// is idempotent.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		late := time.AfterFunc(closeWait, s.finish)
		defer late.Stop()
		s.closed.Store(true)
		s.submitted.close()
		s.finish()
		s.jobs.Wait()
		s.views.close()
		s.leave()
		s.keeper.release()
		s.pool.drain()
	})
	return nil
}

// Verify implements store.Store.
func (s *Store) Verify(ctx context.Context) error { return s.snapshot(ctx, recount) }
