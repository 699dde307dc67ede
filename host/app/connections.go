package app

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

// connections implements host.Connections.
type connections struct {
	*directory
	copies      []copies
	connections *connectionStore
	overviews   *overviews
	schedules   *schedules
	artifacts   *artifacts
	secrets     *secretStore
	bindings    *bindings
}

var _ host.Connections = (*connections)(nil)

// copies of a connection's data are deleted with the connection.
type copies interface {
	Forget(id store.ConnectionID) error
}

// Limits of a connection's name and settings, in bytes.
const (
	maxShownName = 320
	maxSettings  = 256 * abi.KiB
)

// CreateConnection implements host.Connections. The new connection has no grant: it is not ready, with
// grant_invalid, until an authorized principal approves one.
func (cs *connections) CreateConnection(ctx context.Context, q host.NewConnection) (host.Connection, error) {
	if err := cs.checkSpace(); err != nil {
		return host.Connection{}, asRefusal(err)
	}
	v, err := cs.overviews.take(ctx)
	if err != nil {
		return host.Connection{}, err
	}
	k, ok := v.named(q.ConnectorName)
	if !ok || q.Version != "" && q.Version != k.Version {
		return host.Connection{}, notFound("connector")
	}
	m := v.manifest(k)
	if m == nil {
		return host.Connection{},
			host.Refuse("connector_invalid", "the manifest of this connector is not valid any more; install it again")
	}
	id, err := v.newID(ctx, q.ConnectionID, k)
	if err != nil {
		return host.Connection{}, err
	}
	now := time.Now()
	c := store.Connection{
		ID: id, ConnectorID: k.ID, Enabled: true, Manifest: k.Manifest, Digest: k.Digest, CreatedAt: now,
		UpdatedAt: now, Revision: 1, Grant: &store.Grant{AccessMode: "continuous", Status: "invalid"}, Mode: q.Mode,
	}
	if q.Mode != "" && q.Mode != "live" && q.Mode != "test" {
		return host.Connection{}, invalid("mode", "value_unknown", "want live or test")
	}
	given := host.ChangeConnection{Settings: q.Settings, DisplayName: optional(q.DisplayName),
		CollectionSince: optional(q.CollectionSince),
		ProfileName:     optional(q.ProfileName), LeakCanary: optional(q.LeakCanary)}
	if len(q.Labels) > 0 {
		given.Labels = &q.Labels
	}
	if err := checkChange(m, given); err != nil {
		return host.Connection{}, err
	}
	if err := v.freeProfile(id, "profileName", q.ProfileName); err != nil {
		return host.Connection{}, err
	}
	applyChange(&c, given)
	if err := cs.connections.create(ctx, c); err != nil {
		return host.Connection{}, asRefusal(err)
	}
	return cs.Connection(ctx, id)
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// newID returns the requested id. If none is requested, it is the connector's name for its first connection, and
// the name with a number for a further one.
func (v *overview) newID(ctx context.Context, id string, k store.Connector) (store.ConnectionID, error) {
	if k.Conformance {
		return "", invalid("connectorName", "conformance", "runs of conformance connectors have connections of their own")
	}
	if id == "" {
		return v.freeID(ctx, k)
	}
	switch {
	case !abi.IsSlug(id):
		return "", invalid("connectionId", "slug", "want ^[a-z0-9][a-z0-9_-]{0,63}$")
	case strings.HasPrefix(id, reservedNames):
		return "", invalid("connectionId", "reserved", "ids that begin with %s are reserved", reservedNames)
	}
	return store.ConnectionID(id), nil
}

// maxNumbered bounds the numbers that are tried as a suffix.
const maxNumbered = 10_000

// freeID returns the connector's name, or the first free one of name-2, name-3 and so on. An id under which a
// deleted connection left data is not free: its records would be taken for those of the new connection.
func (v *overview) freeID(ctx context.Context, k store.Connector) (store.ConnectionID, error) {
	taken := map[store.ConnectionID]bool{}
	first := true
	for _, c := range v.connections {
		taken[c.ID] = true
		first = first && c.ConnectorID != k.ID
	}
	if id := store.ConnectionID(k.Name); first && !taken[id] {
		return id, nil
	}
	for n := 2; n <= maxNumbered; n++ {
		end := "-" + strconv.Itoa(n)
		id := store.ConnectionID(strings.TrimRight(abi.Cut(k.Name, 64-len(end)), "-_") + end)
		if taken[id] {
			continue
		}
		runs, err := v.from.Store.Runs(ctx, id, "", 1)
		if err != nil {
			return "", err
		}
		if len(runs) == 0 {
			return id, nil
		}
	}
	return "", invalid("connectionId", "required", "a further connection of this connector needs an id of its own")
}

// Connections implements host.Connections.
func (cs *connections) Connections(ctx context.Context) ([]host.Connection, error) {
	v, err := cs.overviews.take(ctx)
	if err != nil {
		return nil, err
	}
	out := []host.Connection{}
	for _, c := range v.connections {
		shown, err := v.connection(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, shown)
	}
	return out, nil
}

// Connection implements host.Connections.
func (cs *connections) Connection(ctx context.Context, id store.ConnectionID) (host.Connection, error) {
	return cs.overviews.connection(ctx, id)
}

// connection returns a connection as the API shows it.
func (os *overviews) connection(ctx context.Context, id store.ConnectionID) (host.Connection, error) {
	v, err := os.take(ctx)
	if err != nil {
		return host.Connection{}, err
	}
	c, err := v.connectionOf(id)
	if err != nil {
		return host.Connection{}, err
	}
	return v.connection(ctx, c)
}

// ChangeConnection implements host.Connections.
func (cs *connections) ChangeConnection(ctx context.Context, id store.ConnectionID, q host.ChangeConnection,
	revision *uint64) (host.Connection, error) {
	_, k, m, err := cs.overviews.configured(ctx, id)
	if err != nil {
		return host.Connection{}, err
	}
	if q.Version != nil && *q.Version != k.Version {
		return host.Connection{}, invalid("version", "not_installed", "no other version of this connector is installed")
	}
	if err := checkChange(m, q); err != nil {
		return host.Connection{}, err
	}
	if q.ProfileName != nil {
		if err := cs.overviews.freeProfile(ctx, id, "profileName", *q.ProfileName); err != nil {
			return host.Connection{}, err
		}
	}
	e := by(ctx, audit.Event{Action: audit.ConnectionChanged, Target: string(id), Outcome: audit.Done,
		Details: []audit.Detail{audit.Code(changed(q))}})
	err = cs.audited(e, func() error {
		_, err := cs.connections.change(ctx, id, func(c *store.Connection) error {
			if now := max(c.Revision-1, 1); revision != nil && *revision != now { // change has incremented it already
				return host.Refuse("precondition_failed", "the connection was changed meanwhile").With("revision", now)
			}
			applyChange(c, q)
			if q.Version != nil && len(added(*c, m)) == 0 {
				c.Manifest, c.Digest = k.Manifest, k.Digest
			}
			return nil
		})
		return err
	})
	if err != nil {
		return host.Connection{}, asRefusal(err)
	}
	return cs.Connection(ctx, id)
}

// freeProfile refuses a profile name that is the id or the profile name of another connection. Profiles are
// never shared, and an equal name would suggest that.
func (v *overview) freeProfile(id store.ConnectionID, path, name string) error {
	for _, c := range v.connections {
		if name != "" && c.ID != id && (strings.EqualFold(name, string(c.ID)) || strings.EqualFold(name, c.ProfileName)) {
			return invalid(path, "profile_name_taken",
				"another connection has this name for itself or its profile, and profiles are not shared").With("code",
				"profile_name_invalid")
		}
	}
	return nil
}

// DeleteConnection implements host.Connections. Secrets are always removed, because a later connection of the
// same id would get them. Data that was kept can be erased later.
func (cs *connections) DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error {
	if _, err := cs.connections.permanent(ctx, id); err != nil && (!erase || !errors.Is(err, store.ErrNotFound)) {
		return asRefusal(err)
	}
	if err := cs.connections.idle(ctx, id); err != nil {
		return asRefusal(err)
	}
	var none *host.Refusal
	if err := cs.schedules.DeleteSchedule(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) &&
		!errors.As(err, &none) {
		return err
	}
	e := by(ctx, audit.Event{Action: audit.ConnectionDeleted, Target: string(id), Outcome: audit.Done})
	if erase {
		e.Details = append(e.Details, audit.Code("erased"))
	}
	err := cs.audited(e, func() error { return cs.Store.DeleteConnection(ctx, id, erase) })
	if err == nil && erase {
		err = cs.schedules.clock.Forget(ctx, id) // its history holds cursors too
	}
	for _, x := range cs.copies {
		err = errors.Join(err, x.Forget(id))
	}
	if erase && (err == nil || errors.Is(err, store.ErrNotFound)) { // traces may be all that was kept
		err = errors.Join(err, cs.artifacts.forgetTraces(ctx, id))
	}
	if err != nil {
		return asRefusal(err)
	}
	return errors.Join(cs.secrets.forget(ctx, id), cs.bindings.forgetProfiles(ctx, id))
}
