package assistant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// A storeView is the store as one assistant sees it: its connections, their streams, and the parts of records that the
// grant names. It implements query.Store, so copies made through it contain nothing else.
type storeView struct {
	store  Store
	grants map[store.ConnectionID]granted

	mu    sync.Mutex // guards views
	views map[store.ConnectionID]*connectionView
}

// A granted is what an assistant may see of the connection that was created at the time made.
type granted struct {
	scope json.RawMessage
	made  time.Time
}

// A connectionView is what is visible of one connection under one manifest.
type connectionView struct {
	connection store.Connection // with the manifest as stored
	shown      store.Connection // with the granted part of the manifest
	streams    map[string]*scope.Projection
	manifest   *abi.Manifest
	digest     [sha256.Size]byte // of the manifest as stored
}

func newStoreView(st Store, terms host.AssistantTerms, made []time.Time) *storeView {
	w := &storeView{store: st, grants: map[store.ConnectionID]granted{}, views: map[store.ConnectionID]*connectionView{}}
	for i, g := range terms.Connections {
		if i < len(made) {
			w.grants[store.ConnectionID(g.ConnectionID)] = granted{g.Scope, made[i]}
		}
	}
	return w
}

var errUnseen = fmt.Errorf("connection: %w", store.ErrNotFound)

// connectionView returns what is currently visible of a connection. It returns store.ErrNotFound if the
// connection was not granted, is gone, or was created again under the same name.
func (w *storeView) connectionView(ctx context.Context, id store.ConnectionID) (*connectionView, error) {
	g, ok := w.grants[id]
	if !ok {
		return nil, errUnseen
	}
	c, err := w.store.Connection(ctx, id)
	if err != nil {
		return nil, err
	}
	if !c.CreatedAt.Equal(g.made) || c.Temporary {
		return nil, errUnseen
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.views[id]; s != nil && bytes.Equal(s.connection.Manifest, c.Manifest) {
		return s, nil
	}
	s, err := newSight(c, g)
	if err != nil {
		return nil, errUnseen // a grant that does not fit the current manifest grants nothing
	}
	w.views[id] = s
	return s, nil
}

func newSight(c store.Connection, g granted) (*connectionView, error) {
	m, err := abi.ReadManifest(c.Manifest)
	if err != nil {
		return nil, err
	}
	s := &connectionView{connection: c, shown: c, manifest: m, digest: sha256.Sum256(c.Manifest)}
	if s.streams, err = scope.Projections(g.scope, m); err != nil {
		return nil, err
	}
	s.shown = store.Connection{ID: c.ID, ConnectorID: c.ConnectorID, DisplayName: c.DisplayName, Enabled: c.Enabled,
		CreatedAt: c.CreatedAt}
	s.shown.Manifest, err = s.prune(c.Manifest)
	return s, err
}

// prune returns a manifest with only the granted streams and fields.
func (s *connectionView) prune(raw json.RawMessage) (json.RawMessage, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, name := range []string{"protocol_version", "connector_id", "version", "display_name"} {
		out[name] = all[name]
	}
	streams := []any{}
	for _, spec := range s.manifest.Streams {
		if p := s.streams[spec.Name]; p != nil {
			streams = append(streams,
				map[string]any{"name": spec.Name, "semantics": spec.Semantics, "primary_key": spec.PrimaryKey,
					"schema": s.schema(spec, p)})
		}
	}
	out["streams"] = streams
	return json.Marshal(out)
}

// schema returns the schema of a stream with only the granted properties.
func (s *connectionView) schema(spec abi.StreamSpec, p *scope.Projection) map[string]any {
	properties := map[string]json.RawMessage{}
	if root, err := strictjson.Parse(spec.Schema, strictjson.ParseOptions{}); err == nil {
		declared, _ := root.Member("properties")
		for name, v := range declared.Members() {
			if p.Sees(name) {
				properties[name] = json.RawMessage(bytes.Clone(v.Raw))
			}
		}
	}
	return map[string]any{"type": "object", "properties": properties}
}

// version identifies what is visible under the current manifests.
func (w *storeView) version(ctx context.Context) (string, error) {
	h := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(w.grants)) {
		s, err := w.connectionView(ctx, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		h.Write([]byte(id))
		h.Write(s.digest[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Connection returns a visible connection.
func (w *storeView) Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	s, err := w.connectionView(ctx, id)
	if err != nil {
		return store.Connection{}, err
	}
	return s.shown, nil
}

// Connections returns the visible connections.
func (w *storeView) Connections(ctx context.Context) ([]store.Connection, error) {
	all, err := w.store.Connections(ctx)
	if err != nil {
		return nil, err
	}
	var out []store.Connection
	for _, c := range all {
		s, err := w.connectionView(ctx, c.ID)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, s.shown)
	}
	return out, nil
}

// Streams returns the visible streams, even those without data, because their absence would reveal whether there is
// invisible data. Counts and times are left out.
func (w *storeView) Streams(ctx context.Context, id store.ConnectionID) ([]store.StreamStats, error) {
	s, err := w.connectionView(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := w.store.Streams(ctx, id)
	if err != nil {
		return nil, err
	}
	last := map[store.Stream]uint64{}
	for _, st := range all {
		last[st.Stream] = st.LastVersion
	}
	var out []store.StreamStats
	for _, spec := range s.manifest.Streams {
		if name := store.Stream(spec.Name); s.streams[spec.Name] != nil {
			out = append(out, store.StreamStats{Stream: name, LastVersion: last[name]})
		}
	}
	return out, nil
}

// stream returns the projection of a visible stream.
func (w *storeView) stream(ctx context.Context, id store.ConnectionID, name store.Stream) (*scope.Projection, error) {
	s, err := w.connectionView(ctx, id)
	if err != nil {
		return nil, err
	}
	p := s.streams[string(name)]
	if p == nil {
		return nil, fmt.Errorf("stream: %w", store.ErrNotFound)
	}
	return p, nil
}

// Record returns the visible part of a record.
func (w *storeView) Record(ctx context.Context, id store.ConnectionID, stream store.Stream,
	key string) (store.Record, error) {
	p, err := w.stream(ctx, id, stream)
	if err != nil {
		return store.Record{}, err
	}
	r, err := w.store.Record(ctx, id, stream, key)
	if err != nil {
		return store.Record{}, err
	}
	if r, ok := show(p, r); ok && !r.Deleted {
		return r, nil
	}
	return store.Record{}, fmt.Errorf("record: %w", store.ErrNotFound)
}

// show returns the visible part of a record or tombstone; ok is false if nothing is visible.
func show(p *scope.Projection, r store.Record) (store.Record, bool) {
	if r.Deleted {
		r.Data = nil
		return r, p.Tombstone(r.Key)
	}
	data, ok := p.Record(r.Key, r.Data)
	r.Data = data
	return r, ok
}

// Records lists what is visible. With q.Deleted, which is used for copies, invisible records become tombstones, so that
// a record which left the grant is removed from the copy. Versions are 0, because they also count invisible changes.
func (w *storeView) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	p, err := w.stream(ctx, q.Connection, q.Stream)
	if err != nil {
		return store.RecordPage{}, err
	}
	page, err := w.store.Records(ctx, q)
	if err != nil {
		return page, err
	}
	kept := page.Records[:0]
	for _, r := range page.Records {
		seen, ok := show(p, r)
		if ok {
			kept = append(kept, seen)
		} else if q.Deleted {
			r.Data, r.Deleted = nil, true
			kept = append(kept, r)
		}
	}
	for i := range kept {
		kept[i].Version = 0
	}
	page.Records = kept
	return page, nil
}

// list is like Records but for answers: it omits invisible records entirely.
func (w *storeView) list(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	p, err := w.stream(ctx, q.Connection, q.Stream)
	if err != nil {
		return store.RecordPage{}, err
	}
	q.Match = func(r store.Record) bool {
		_, ok := show(p, r)
		return ok
	}
	page, err := w.store.Records(ctx, q)
	for i, r := range page.Records {
		page.Records[i], _ = show(p, r)
	}
	return page, err
}

// View returns an error, because copies are made page by page.
func (w *storeView) View(context.Context) (store.View, error) {
	return nil, errors.New("an assistant's window has no view")
}
