package assistant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// AddAssistant implements host.Assistants.
func (d *Gateway) AddAssistant(ctx context.Context, q host.NewAssistant) (a host.Assistant, err error) {
	err = d.o.Audited(ctx, "assistant.added", q.Name, func() error {
		a, err = d.add(ctx, q)
		return err
	})
	return a, err
}

func (d *Gateway) add(ctx context.Context, q host.NewAssistant) (host.Assistant, error) {
	now := d.o.Now().UTC().Truncate(time.Millisecond)
	made, err := d.check(ctx, q, now)
	if err != nil {
		return host.Assistant{}, err
	}
	d.saving.Lock()
	defer d.saving.Unlock()
	if err := d.sync(ctx); err != nil {
		return host.Assistant{}, err
	}
	if err := d.free(q.Name, now); err != nil {
		return host.Assistant{}, err
	}
	def := definition{ID: access.NewID("", now), Name: q.Name, Terms: q.AssistantTerms, Made: made,
		CreatedAt: now, Key: newKey()}
	token, digest := newToken(def.ID)
	def.Digest = digest
	err = d.change(ctx, q.Name, func(stored *definition) error {
		if stored.ID != "" && stored.status(now) == access.Active {
			return taken(q.Name)
		}
		*stored = def
		return nil
	})
	if err == nil {
		err = d.sync(ctx)
	}
	if err != nil {
		return host.Assistant{}, err
	}
	a := d.shown(def)
	a.Token = token
	return a, nil
}

// check validates a request and returns when each connection was created, because a grant does not extend to a later
// connection by the same name.
func (d *Gateway) check(ctx context.Context, q host.NewAssistant, now time.Time) (made []time.Time, err error) {
	switch {
	case !abi.IsSlug(q.Name):
		return nil, host.Invalid("name", "slug", "want ^[a-z0-9][a-z0-9_-]{0,63}$")
	case len(q.Connections) == 0 || len(q.Connections) > maxConnections:
		return nil, host.Invalid("connections", "length", "want 1 to %d connections; an assistant sees only what is named",
			maxConnections)
	case q.ExpiresAt != nil && !q.ExpiresAt.After(now):
		return nil, host.Invalid("expiresAt", "future", "want a time in the future")
	}
	for i, g := range q.Connections {
		at := fmt.Sprintf("connections[%d]", i)
		if slices.ContainsFunc(q.Connections[:i],
			func(o host.AssistantGrant) bool { return o.ConnectionID == g.ConnectionID }) {
			return nil, host.Invalid(at+".connectionId", "unique", "want each connection once")
		}
		c, err := d.o.Store.Connection(ctx, store.ConnectionID(g.ConnectionID))
		if errors.Is(err, store.ErrNotFound) || err == nil && c.Temporary {
			return nil, host.Invalid(at+".connectionId", "exists", "there is no such connection; sluice connections lists them")
		}
		if err != nil {
			return nil, err
		}
		if err := checkScope(at+".scope", g.Scope, c); err != nil {
			return nil, err
		}
		made = append(made, c.CreatedAt)
	}
	return made, nil
}

func checkScope(at string, raw json.RawMessage, c store.Connection) error {
	if len(raw) > maxScope {
		return host.Invalid(at, "length", "want at most %d bytes", maxScope)
	}
	m, err := abi.ReadManifest(c.Manifest)
	if err != nil {
		return host.Invalid(at, "manifest", "the connection has no manifest that says which streams there are; run it once")
	}
	if _, err := scope.Normalise(scope.Request{Manifest: m, Explicit: raw}); err != nil {
		var bad *scope.Error
		if errors.As(err, &bad) {
			return host.Invalid(at, bad.Code, "%s", abi.Cut(abi.Clean(bad.Error()), 500))
		}
		return err
	}
	return nil
}

// free returns an error if a name is taken or there are too many assistants. The name of one that is no longer active
// may be used again.
func (d *Gateway) free(name string, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.endpoints[name]
	switch {
	case s != nil && s.def.status(now) == access.Active:
		return taken(name)
	case s == nil && len(d.endpoints) >= maxAssistants:
		return host.Refuse("conflict",
			"there are %d assistants, and no more are kept; give the name of one that was revoked again", maxAssistants)
	}
	return nil
}

func taken(name string) error {
	return host.Refuse("conflict", "there is an assistant %s already; sluice assistants revoke %s ends it", name, name)
}

// stored reads a definition and its revision, which are zero for a name that nobody has.
func (d *Gateway) stored(ctx context.Context, name string) (def definition, revision uint64, err error) {
	doc, err := d.o.Store.Document(ctx, store.Assistants, name)
	if errors.Is(err, store.ErrNotFound) {
		return def, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(doc.Data, &def)
	}
	if err != nil {
		return def, 0, fmt.Errorf("read assistant %s: %w", name, err)
	}
	return def, doc.Revision, nil
}

// writeOf returns the write of a definition under the revision that was read.
func writeOf(def definition, revision uint64) (store.Write, error) {
	data, err := json.Marshal(def)
	return store.Write{Kind: store.Assistants, ID: def.Name, Data: data, If: &revision}, err
}

// change changes a stored definition, again if another host changed it meanwhile.
func (d *Gateway) change(ctx context.Context, name string, change func(*definition) error) error {
	for {
		def, revision, err := d.stored(ctx, name)
		if err == nil {
			err = change(&def)
		}
		if err != nil {
			return err
		}
		w, err := writeOf(def, revision)
		if err == nil {
			err = d.o.Store.Write(ctx, w)
		}
		var conflict *store.ConflictError
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("store assistant %s: %w", name, err)
		}
		return nil
	}
}

// shown returns a definition as its owner sees it.
func (d *Gateway) shown(def definition) host.Assistant {
	return host.Assistant{Name: def.Name, AssistantTerms: def.Terms, Status: def.status(d.o.Now()),
		CreatedAt:  def.CreatedAt,
		LastUsedAt: def.UsedAt, Calls: def.Calls, Waiting: len(d.asks.of(def.ID))}
}

// Assistants implements host.Assistants.
func (d *Gateway) Assistants(ctx context.Context) ([]host.Assistant, error) {
	if err := errors.Join(d.log.flush(ctx), d.sync(ctx)); err != nil {
		return nil, err
	}
	there, err := d.elsewhere(ctx, "")
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := []host.Assistant{}
	for _, s := range d.endpoints {
		a := d.shown(s.def)
		a.Waiting += len(there[s.def.ID])
		out = append(out, a)
	}
	slices.SortFunc(out, func(x, y host.Assistant) int { return strings.Compare(x.Name, y.Name) })
	return out, nil
}

// Assistant implements host.Assistants.
func (d *Gateway) Assistant(ctx context.Context, name string) (host.Assistant, error) {
	if err := d.log.flush(ctx); err != nil {
		return host.Assistant{}, err
	}
	s, err := d.current(ctx, name)
	if err != nil {
		return host.Assistant{}, err
	}
	there, err := d.elsewhere(ctx, s.def.ID)
	if err != nil {
		return host.Assistant{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.shown(s.def)
	a.Waiting += len(there[s.def.ID])
	return a, nil
}

// RevokeAssistant implements host.Assistants.
func (d *Gateway) RevokeAssistant(ctx context.Context, name string) (a host.Assistant, err error) {
	s, err := d.current(ctx, name)
	if err != nil {
		return a, err
	}
	err = d.o.Audited(ctx, "assistant.revoked", name, func() error { return d.revoke(ctx, s) })
	if err != nil {
		return a, err
	}
	s.leave(true)
	return d.Assistant(ctx, name)
}

// revoke revokes an assistant first in this process, so that calls in progress are refused even if the store fails.
func (d *Gateway) revoke(ctx context.Context, s *endpoint) error {
	now := d.o.Now().UTC().Truncate(time.Millisecond)
	d.mu.Lock()
	if s.def.RevokedAt == nil {
		s.def.RevokedAt = &now
	}
	d.mu.Unlock()
	s.end()
	d.asks.drop(s.def.ID)
	d.saving.Lock()
	defer d.saving.Unlock()
	return d.change(ctx, s.def.Name, func(def *definition) error {
		if def.ID == s.def.ID && def.RevokedAt == nil {
			def.RevokedAt = &now
		}
		return nil
	})
}

// AssistantCalls implements host.Assistants.
func (d *Gateway) AssistantCalls(ctx context.Context, name string, before uint64,
	limit int) ([]host.AssistantCall, error) {
	s, err := d.current(ctx, name)
	if err != nil {
		return nil, err
	}
	if limit < 1 || limit > 1000 {
		limit = 100
	}
	if err := d.log.flush(ctx); err != nil {
		return nil, err
	}
	out := []host.AssistantCall{}
	q := store.DocumentQuery{Kind: store.AssistantCalls, Prefix: s.def.ID + "/", Descending: true, Limit: limit}
	if before == 0 {
		waiting, err := d.waitingCalls(ctx, s.def.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, waiting...)
	} else {
		q.After = callKey(s.def.ID, before)
	}
	docs, err := d.o.Store.Documents(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list calls of assistant %s: %w", name, err)
	}
	for _, doc := range docs {
		var c host.AssistantCall
		if err := json.Unmarshal(doc.Data, &c); err != nil {
			return nil, fmt.Errorf("read call %s: %w", doc.ID, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// DecideCall implements host.Assistants.
func (d *Gateway) DecideCall(ctx context.Context, name, call string, yes bool) error {
	s, err := d.current(ctx, name)
	if err != nil {
		return err
	}
	action := "assistant.denied"
	if yes {
		action = "assistant.approved"
	}
	if !d.asks.waits(s.def.ID, call) {
		return d.decideElsewhere(ctx, s.def.ID, Decision{name, call, yes})
	}
	return d.o.Audited(ctx, action, name, func() error {
		if !d.asks.decide(s.def.ID, call, yes) {
			return fmt.Errorf("call: %w", store.ErrNotFound)
		}
		return nil
	})
}

// RevokeAll revokes all assistants of a store that no host has open and returns how many it has revoked.
func RevokeAll(ctx context.Context, st store.Documents, now time.Time) (n int, err error) {
	docs, err := st.Documents(ctx, store.DocumentQuery{Kind: store.Assistants, Limit: 1000})
	if err != nil {
		return 0, err
	}
	for _, doc := range docs {
		var def definition
		if err := json.Unmarshal(doc.Data, &def); err != nil {
			return n, fmt.Errorf("read assistant %s: %w", doc.ID, err)
		}
		if def.RevokedAt != nil {
			continue
		}
		def.RevokedAt = &now
		data, err := json.Marshal(def)
		if err != nil {
			return n, err
		}
		if err := st.Write(ctx, store.Write{Kind: store.Assistants, ID: doc.ID, Data: data}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
