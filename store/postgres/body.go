package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// Values without columns of their own are stored as JSON in columns called body.

// one decodes the body that a query finds. It returns ErrNotFound for the thing named if there is none.
func one[T any](ctx context.Context, s *db, what, id, sql string, args ...any) (v T, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		v, err = oneBody[T](c.QueryRow(ctx, sql, args...), what, id)
		return err
	})
	return v, err
}

func oneBody[T any](r pgx.Row, what, id string) (v T, err error) {
	var body []byte
	err = r.Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, missing(nil, "%s %s", what, id)
	}
	if err == nil {
		err = decode(body, &v)
	}
	return v, err
}

// list decodes the bodies that a query finds.
func list[T any](ctx context.Context, s *db, sql string, args ...any) (all []T, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		all, err = bodies[T](c.Query(ctx, sql, args...))
		return err
	})
	return all, err
}

func bodies[T any](rows pgx.Rows, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (v T, err error) {
		var body []byte
		if err = r.Scan(&body); err == nil {
			err = decode(body, &v)
		}
		return v, err
	})
}

func decode(body []byte, v any) error {
	if err := json.Unmarshal(body, v); err != nil {
		return store.Corrupt("a stored value: %v", err)
	}
	return nil
}

// Number of entries that a limit of 0 means, and the greatest limit.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

func bounded(limit int) int {
	if limit <= 0 {
		return defaultLimit
	}
	return min(limit, maxLimit)
}
