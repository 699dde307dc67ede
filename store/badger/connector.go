package badger

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicehost/sluice/store"
)

// PutConnector implements store.Store.
func (s *connectors) PutConnector(ctx context.Context, c store.Connector) error {
	return s.queue.do(ctx, false, func(g *group) error {
		return g.putJSON(connectorKey(c.ID, c.Bundled), c)
	})
}

// Connectors implements store.Store.
func (s *connectors) Connectors(ctx context.Context) ([]store.Connector, error) {
	all, err := listJSON[store.Connector](ctx, s.disk, []byte{kindConnector})
	// In key order all installed ones come first, so the stable sort puts them before their bundled twins.
	slices.SortStableFunc(all, func(a, b store.Connector) int { return cmp.Compare(a.ID, b.ID) })
	return all, err
}

// DeleteConnector implements store.Store.
func (s *connectors) DeleteConnector(ctx context.Context, id store.ConnectorID, bundled bool) error {
	return s.queue.do(ctx, false, func(g *group) error {
		k := connectorKey(id, bundled)
		if _, ok, err := g.get(k); err != nil || !ok {
			return missing(err, "connector %s", id)
		}
		return g.remove(k)
	})
}

// PutPin implements store.Store.
func (s *connectors) PutPin(ctx context.Context, p store.Pin) error {
	return s.queue.do(ctx, false, func(g *group) error {
		return g.putJSON(key(kindPin, string(p.ConnectorID)), p)
	})
}

// Pins implements store.Store.
func (s *connectors) Pins(ctx context.Context) ([]store.Pin, error) {
	return listJSON[store.Pin](ctx, s.disk, []byte{kindPin})
}

// PutConnection implements store.Store. If a connection with the same id is being erased, it first completes that.
func (s *connections) PutConnection(ctx context.Context, c store.Connection) error {
	for {
		erased := false
		err := s.queue.do(ctx, false, func(g *group) (err error) {
			if _, erased, err = g.get(eraseNote(erasedConnection, string(c.ID))); err != nil || erased {
				return err
			}
			g.c.forgetGrant(g, c.ID)
			return g.putJSON(key(kindConnection, string(c.ID)), c)
		})
		if err != nil || !erased {
			return err
		}
		s.eraser.partial.RLock()
		err = s.eraser.connection(ctx, string(c.ID))
		s.eraser.partial.RUnlock()
		if err != nil {
			return err
		}
	}
}

// ChangeConnection implements store.Store.
func (s *connections) ChangeConnection(ctx context.Context, id store.ConnectionID,
	change func(*store.Connection) error) (store.Connection, error) {
	var out store.Connection
	err := s.queue.do(ctx, false, func(g *group) error {
		k := key(kindConnection, string(id))
		var c store.Connection
		if ok, err := g.getJSON(k, &c); err != nil || !ok {
			return missing(err, "connection %s", id)
		}
		if err := change(&c); err != nil {
			return err
		}
		g.c.forgetGrant(g, id)
		out = c
		return g.putJSON(k, c)
	})
	if err != nil {
		return store.Connection{}, err
	}
	return out, nil
}

// Connection implements store.Store.
func (s *connections) Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	return oneJSON[store.Connection](ctx, s.disk, key(kindConnection, string(id)), "connection %s", id)
}

// Connections implements store.Store.
func (s *connections) Connections(ctx context.Context) ([]store.Connection, error) {
	return listJSON[store.Connection](ctx, s.disk, key(kindConnection, ""))
}

// missing returns err or, if that is nil, ErrNotFound for the thing named.
func missing(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format+": %w", append(args, store.ErrNotFound)...)
}

// oneJSON reads the value of one key. It returns ErrNotFound for the thing named if there is none.
func oneJSON[T any](ctx context.Context, s *disk, k []byte, format string, args ...any) (T, error) {
	var v T
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return v, err
	}
	defer r.close()
	payload, ok, err := r.get(k)
	if err != nil || !ok {
		return v, missing(err, format, args...)
	}
	if err := json.Unmarshal(payload, &v); err != nil {
		return v, store.Corrupt("key %.40q: %v", k, err)
	}
	return v, nil
}

// listJSON reads all values whose keys have prefix, in key order. It returns none if one of the notes exists, which
// mark data being erased.
func listJSON[T any](ctx context.Context, s *disk, prefix []byte, notes ...[]byte) ([]T, error) {
	r, err := s.snapshot(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for _, note := range notes {
		if _, erased, err := r.get(note); err != nil || erased {
			return nil, err
		}
	}
	var all []T
	err = r.scan(prefix, nil, false, func(k, payload []byte) (bool, error) {
		var v T
		if err := json.Unmarshal(payload, &v); err != nil {
			return false, store.Corrupt("key %.40q: %v", k, err)
		}
		all = append(all, v)
		return true, ctx.Err()
	})
	return all, err
}
