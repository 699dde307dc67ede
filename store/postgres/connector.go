package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// put writes one row whose last column is value as JSON.
func (s *connectors) put(ctx context.Context, value any, sql string, args ...any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, sql, append(args, body)...)
		return err
	})
}

// PutConnector implements store.Store.
func (s *connectors) PutConnector(ctx context.Context, c store.Connector) error {
	return s.put(ctx, c, `insert into connector (id, bundled, body) values ($1, $2, $3)
		on conflict (id, bundled) do update set body = excluded.body`, string(c.ID), c.Bundled)
}

// Connectors implements store.Store.
func (s *connectors) Connectors(ctx context.Context) ([]store.Connector, error) {
	return list[store.Connector](ctx, s.db, "select body from connector order by id, bundled")
}

// DeleteConnector implements store.Store.
func (s *connectors) DeleteConnector(ctx context.Context, id store.ConnectorID, bundled bool) error {
	return s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		n, err := t.exec(ctx, "delete from connector where id = $1 and bundled = $2", string(id), bundled)
		if err == nil && n == 0 {
			err = missing(nil, "connector %s", id)
		}
		return err
	})
}

var _ store.Modules = (*Store)(nil)

// PutModule implements store.Modules.
func (s *connectors) PutModule(ctx context.Context, d store.Digest, wasm []byte) error {
	return s.write(ctx, nil, func(ctx context.Context, t *tx) error {
		_, err := t.exec(ctx, "insert into module (digest, wasm) values ($1, $2) on conflict (digest) do update set wasm = excluded.wasm", string(d), wasm)
		return err
	})
}

// Module implements store.Modules.
func (s *connectors) Module(ctx context.Context, d store.Digest) (wasm []byte, err error) {
	err = s.read(ctx, func(ctx context.Context, c *conn) error {
		return c.QueryRow(ctx, "select wasm from module where digest = $1", string(d)).Scan(&wasm)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = missing(nil, "module %s", d)
	}
	return wasm, err
}

// PutPin implements store.Store.
func (s *connectors) PutPin(ctx context.Context, p store.Pin) error {
	return s.put(ctx, p, "insert into pin (id, body) values ($1, $2) on conflict (id) do update set body = excluded.body",
		string(p.ConnectorID))
}

// Pins implements store.Store.
func (s *connectors) Pins(ctx context.Context) ([]store.Pin, error) {
	return list[store.Pin](ctx, s.db, "select body from pin order by id")
}
