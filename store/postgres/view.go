package postgres

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// viewsMost bounds the open views, each of which has a connection of its own.
const viewsMost = 8

// views holds the open views.
type views struct {
	slots chan struct{}
	left  chan struct{} // capacity 1: a view was closed

	mu   sync.Mutex // guards open
	open map[*view]bool
}

func (vs *views) init() {
	vs.slots, vs.left, vs.open = make(chan struct{}, viewsMost), make(chan struct{}, 1), make(map[*view]bool)
}

func (vs *views) none() bool {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return len(vs.open) == 0
}

func (vs *views) close() {
	vs.mu.Lock()
	var open []*view
	for v := range vs.open {
		open = append(open, v)
	}
	vs.mu.Unlock()
	for _, v := range open {
		v.Close()
	}
}

// A view is a reading transaction.
type view struct {
	s    *Store
	once sync.Once

	mu   sync.Mutex // held while conn is in use
	conn *pgx.Conn
}

// View implements store.Store. It waits while viewsMost views are open.
func (s *Store) View(ctx context.Context) (store.View, error) {
	select {
	case s.views.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v := &view{s: s}
	s.views.mu.Lock()
	s.views.open[v] = true // before its snapshot is taken, so that nothing it sees is dropped
	s.views.mu.Unlock()
	if s.closed.Load() {
		v.Close()
		return nil, store.ErrClosed
	}
	config := s.address.config.Copy()
	config.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
	c, err := pgx.ConnectConfig(ctx, config)
	if err == nil {
		v.mu.Lock()
		v.conn = c
		v.mu.Unlock()
		_, err = c.Exec(ctx, "begin isolation level repeatable read read only")
	}
	if err == nil {
		// the first statement takes the snapshot
		_, err = c.Exec(ctx, "select pg_advisory_xact_lock_shared($1)", int64(s.lock("views", "")))
	}
	if err != nil {
		v.Close()
		return nil, s.told(ctx, err)
	}
	return v, nil
}

// Records implements store.View.
func (v *view) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.conn == nil {
		return store.RecordPage{}, store.ErrClosed
	}
	page, err := recordPage(ctx, v.conn, q)
	return page, v.s.told(ctx, err)
}

// Close implements store.View.
func (v *view) Close() {
	v.once.Do(func() {
		v.mu.Lock()
		if v.conn != nil {
			end(v.conn)
			v.conn = nil
		}
		v.mu.Unlock()
		vs := &v.s.views
		vs.mu.Lock()
		delete(vs.open, v)
		vs.mu.Unlock()
		<-vs.slots
		select {
		case vs.left <- struct{}{}:
		default:
		}
	})
}
