package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// owning returns a function that locks a connection exclusively against all other writers.
func (s *db) owning(id store.ConnectionID) func(*pgx.Batch) {
	return s.lock("connection", string(id)).alone
}

const readConnection = "select body from connection where id = $1"

// PutConnection implements store.Store.
func (s *connections) PutConnection(ctx context.Context, c store.Connection) error {
	return s.write(ctx, s.owning(c.ID), func(ctx context.Context, t *tx) error { return t.putConnection(ctx, c) })
}

func (t *tx) putConnection(ctx context.Context, c store.Connection) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	permit, err := permitOf(c)
	if err != nil {
		return err
	}
	_, err = t.exec(ctx, `insert into connection (id, permit, body) values ($1, $2, $3)
		on conflict (id) do update set permit = excluded.permit, body = excluded.body`, string(c.ID), permit, body)
	return err
}

// permitOf returns the grant of a connection as JSON, which commits read without the rest, or nil if it has none.
func permitOf(c store.Connection) ([]byte, error) {
	if c.Grant == nil {
		return nil, nil
	}
	return json.Marshal(c.Grant)
}

// ChangeConnection implements store.Store.
func (s *connections) ChangeConnection(ctx context.Context, id store.ConnectionID,
	change func(*store.Connection) error) (out store.Connection, err error) {
	var before uint64
	err = s.write(ctx, s.owning(id), func(ctx context.Context, t *tx) error {
		c, err := oneBody[store.Connection](t.QueryRow(ctx, readConnection, string(id)), "connection", string(id))
		if before = c.Withdrawals; err == nil {
			err = change(&c)
		}
		if err != nil {
			return err
		}
		out = c
		return t.putConnection(ctx, c)
	})
	if err != nil {
		return store.Connection{}, err
	}
	if out.Withdrawals != before {
		s.tell(tellKind + string(store.Withdrawals))
	}
	return out, nil
}

// Connection implements store.Store.
func (s *connections) Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	return one[store.Connection](ctx, s.db, "connection", string(id), readConnection, string(id))
}

// Connections implements store.Store.
func (s *connections) Connections(ctx context.Context) ([]store.Connection, error) {
	return list[store.Connection](ctx, s.db, "select body from connection order by id")
}

// DeleteConnection implements store.Store. Erased data is invisible once the transaction commits. The table is dropped
// immediately afterwards or, if views are open, later.
func (s *connections) DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error {
	erased := false
	err := s.write(ctx, s.owning(id), func(ctx context.Context, t *tx) (err error) {
		if err := t.idle(ctx, id); err != nil {
			return err
		}
		known, err := t.exec(ctx, "delete from connection where id = $1", string(id))
		if err != nil {
			return err
		}
		if erased = false; erase {
			erased, err = t.erase(ctx, id)
		}
		if err == nil && known == 0 && !erased {
			err = missing(nil, "connection %s", id)
		}
		return err
	})
	if err == nil && erased {
		s.drop(ctx)
		s.contents.changed()
	}
	return err
}

// erase makes the data of a connection, except for its runs, invisible and reports whether there was any.
func (t *tx) erase(ctx context.Context, id store.ConnectionID) (bool, error) {
	left := int64(0)
	for _, sql := range []string{
		"update heap set erased = true where connection = $1 and not erased and exists (select from stream s where s.heap = heap.number and last > 0)",
		"delete from state where connection = $1",
		"delete from gap where connection = $1",
	} {
		n, err := t.exec(ctx, sql, string(id))
		if err != nil {
			return false, err
		}
		left += n
	}
	return left > 0, nil
}

// idle returns *store.ActiveError while a run of the connection is active.
func (t *tx) idle(ctx context.Context, id store.ConnectionID) error {
	var run store.RunID
	err := t.QueryRow(ctx, "select run from lease where connection = $1", string(id)).Scan(&run)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return &store.ActiveError{RunID: run}
}
