package app

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
)

var _ host.Connections = (*Service)(nil)

// What a connection may be called, and how much its settings may be.
const (
	maxShownName = 320
	maxSettings  = 256 * abi.KiB
)

// CreateConnection implements host.Connections (A181). The connection has
// nothing yet: until somebody who may approves a grant it is not ready, with
// grant_invalid.
func (s *Service) CreateConnection(ctx context.Context, q host.NewConnection) (host.Connection, error) {
	h := s.host
	if err := h.room(); err != nil {
		return host.Connection{}, asked(err)
	}
	v, err := s.view(ctx)
	if err != nil {
		return host.Connection{}, err
	}
	k, ok := v.named(q.ConnectorName)
	if !ok || q.Version != "" && q.Version != k.Version {
		return host.Connection{}, notFound("connector")
	}
	m := v.manifest(k)
	if m == nil {
		return host.Connection{}, host.Refuse("connector_invalid", "the manifest of this connector is not valid any more; install it again")
	}
	id, err := v.newID(ctx, q.ConnectionID, k)
	if err != nil {
		return host.Connection{}, err
	}
	now := time.Now()
	c := store.Connection{
		ID: id, ConnectorID: k.ID, Enabled: true, Manifest: k.Manifest, Digest: k.Digest, CreatedAt: now, UpdatedAt: now, Revision: 1,
		Grant: &store.Grant{AccessMode: "continuous", Status: "invalid"}, Mode: q.Mode,
	}
	if q.Mode != "" && q.Mode != "live" && q.Mode != "test" {
		return host.Connection{}, invalid("mode", "value_unknown", "want live or test")
	}
	given := host.ChangeConnection{Settings: q.Settings, DisplayName: given(q.DisplayName), CollectionSince: given(q.CollectionSince),
		ProfileName: given(q.ProfileName), LeakCanary: given(q.LeakCanary)}
	if err := checkChange(m, given); err != nil {
		return host.Connection{}, err
	}
	if err := v.freeProfile(id, "profileName", q.ProfileName); err != nil {
		return host.Connection{}, err
	}
	applyChange(&c, given)
	if err := h.create(ctx, c); err != nil {
		return host.Connection{}, asked(err)
	}
	return s.Connection(ctx, id)
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// newID is the id that is asked for, or the connector's name for its first
// connection (R1) and that with a number for a further one.
func (v *view) newID(ctx context.Context, id string, k store.Connector) (store.ConnectionID, error) {
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

// maxNumbered bounds the numbers that are tried behind a name.
const maxNumbered = 10_000

// freeID is the connector's name, or the first of name-2, name-3 and so on that is
// nobody's. A number under which anything is kept, also of a connection that is
// gone, is not chosen for somebody: its records would be taken for those of the new one.
func (v *view) freeID(ctx context.Context, k store.Connector) (store.ConnectionID, error) {
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
		runs, err := v.host.Store.Runs(ctx, id, "", 1)
		if err != nil {
			return "", err
		}
		if len(runs) == 0 {
			return id, nil
		}
	}
	return "", invalid("connectionId", "required", "a further connection of this connector needs an id of its own")
}

// create stores a connection unless there is one of that id, or data of one that
// belonged to another connector.
func (h *Host) create(ctx context.Context, c store.Connection) error {
	h.creating.Lock()
	defer h.creating.Unlock()
	_, err := h.Store.Connection(ctx, c.ID)
	if err == nil {
		return host.Refuse("conflict", "there is a connection %s; give the new one another id", c.ID)
	}
	if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	kept, err := h.keptFor(ctx, c.ID)
	if err != nil {
		return err
	}
	if kept != "" && kept != c.ConnectorID {
		return host.Refuse("conflict", "what another connector collected is kept under this id; choose another id")
	}
	return h.audited(by(ctx, audit.Event{Action: audit.ConnectionCreated, Target: string(c.ID), Outcome: audit.Done}),
		func() error { return h.Store.PutConnection(ctx, c) })
}

// Connections implements host.Connections (A182).
func (s *Service) Connections(ctx context.Context) ([]host.Connection, error) {
	v, err := s.view(ctx)
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

// Connection implements host.Connections (A183).
func (s *Service) Connection(ctx context.Context, id store.ConnectionID) (host.Connection, error) {
	v, err := s.view(ctx)
	if err != nil {
		return host.Connection{}, err
	}
	c, err := v.connectionOf(id)
	if err != nil {
		return host.Connection{}, err
	}
	return v.connection(ctx, c)
}

// ChangeConnection implements host.Connections (A184).
func (s *Service) ChangeConnection(ctx context.Context, id store.ConnectionID, q host.ChangeConnection, revision *uint64) (host.Connection, error) {
	_, k, m, err := s.configured(ctx, id)
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
		if err := s.freeProfile(ctx, id, "profileName", *q.ProfileName); err != nil {
			return host.Connection{}, err
		}
	}
	e := by(ctx, audit.Event{Action: audit.ConnectionChanged, Target: string(id), Outcome: audit.Done, Details: []audit.Detail{audit.Code(changed(q))}})
	err = s.host.audited(e, func() error {
		_, err := s.host.change(ctx, id, func(c *store.Connection) error {
			if now := max(c.Revision-1, 1); revision != nil && *revision != now { // change has counted this one
				return host.Refuse("precondition_failed", "the connection was changed meanwhile").With("revision", now)
			}
			applyChange(c, q)
			if q.Version != nil && len(Added(*c, &Loaded{Manifest: m})) == 0 {
				c.Manifest, c.Digest = k.Manifest, k.Digest
			}
			return nil
		})
		return err
	})
	if err != nil {
		return host.Connection{}, asked(err)
	}
	return s.Connection(ctx, id)
}

// configured finds a connection, its connector and the manifest that counts for
// what is set from now on.
func (s *Service) configured(ctx context.Context, id store.ConnectionID) (c store.Connection, k store.Connector, m *abi.Manifest, err error) {
	v, err := s.view(ctx)
	if err != nil {
		return c, k, nil, err
	}
	if c, err = v.connectionOf(id); err != nil {
		return c, k, nil, err
	}
	k, ok := v.of(c)
	if m = v.manifest(k); !ok || m == nil {
		return c, k, nil, host.Refuse("connector_not_runnable", "the connector of this connection is not installed; install it first")
	}
	return c, k, m, nil
}

// freeProfile refuses the name of another connection, and the name that another one
// gave its browser profile: profiles are never shared, and whoever names one like
// another's would think so (R151, R152).
func (v *view) freeProfile(id store.ConnectionID, path, name string) error {
	for _, c := range v.connections {
		if name != "" && c.ID != id && (strings.EqualFold(name, string(c.ID)) || strings.EqualFold(name, c.ProfileName)) {
			return invalid(path, "profile_name_taken", "another connection has this name for itself or its profile, and profiles are not shared").With("code", "profile_name_invalid")
		}
	}
	return nil
}

func (s *Service) freeProfile(ctx context.Context, id store.ConnectionID, path, name string) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	return v.freeProfile(id, path, name)
}

// checkChange refuses values that the manifest or the host does not take.
func checkChange(m *abi.Manifest, q host.ChangeConnection) error {
	if d := q.DisplayName; d != nil && *d != "" && (abi.Blank(*d) || len(*d) > maxShownName || abi.Clean(*d) != *d) {
		return invalid("displayName", "text", "want at most %d bytes of text without control characters", maxShownName)
	}
	if p := q.ProfileName; p != nil && *p != "" && !abi.IsProfileName(*p) {
		return invalid("profileName", "profile_name_invalid", "want ^[A-Za-z0-9_-]{1,64}$").With("code", "profile_name_invalid")
	}
	if l := q.LeakCanary; l != nil && *l != "enforce" && *l != "off" {
		return invalid("leakCanary", "value_unknown", "want enforce or off")
	}
	if t := q.CollectionSince; t != nil && *t != "" {
		if _, ok := abi.ParseTime(*t); !ok || len(*t) > 64 {
			return invalid("collectionSince", "time", "want an RFC 3339 time or date")
		}
	}
	if len(q.Settings) > 0 {
		return checkSettings(m, q.Settings)
	}
	return nil
}

// checkSettings is R219, for settings that were given; none given at all refuses
// no connection, only a start.
func checkSettings(m *abi.Manifest, raw []byte) error {
	if len(raw) > maxSettings {
		return invalid("settings", "too_large", "want at most %d bytes", maxSettings)
	}
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return invalid("settings", "object", "want one JSON object, each member once")
	}
	if m.Sluice == nil {
		return nil
	}
	var bad *abi.SettingError
	if err := m.Sluice.Settings.Known(v); errors.As(err, &bad) {
		return invalid("settings", "setting_unknown", "a member %s", bad.Want)
	}
	if err := m.Sluice.Settings.Check(v); errors.As(err, &bad) {
		return invalid("settings/"+bad.Name, "setting_invalid", "it is missing, or not of the type and values that the connector declares").With("setting", bad.Name)
	}
	return nil
}

// changed names the members that a change has, never their values.
func changed(q host.ChangeConnection) string {
	var out []string
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"displayName", q.DisplayName != nil}, {"settings", len(q.Settings) > 0}, {"version", q.Version != nil}, {"enabled", q.Enabled != nil},
		{"collectionSince", q.CollectionSince != nil}, {"profileName", q.ProfileName != nil}, {"leakCanary", q.LeakCanary != nil},
	} {
		if m.set {
			out = append(out, m.name)
		}
	}
	return strings.Join(out, ",")
}

func applyChange(c *store.Connection, q host.ChangeConnection) {
	for _, t := range []struct{ into, from *string }{
		{&c.DisplayName, q.DisplayName}, {&c.CollectionSince, q.CollectionSince}, {&c.ProfileName, q.ProfileName}, {&c.LeakCanary, q.LeakCanary},
	} {
		if t.from != nil {
			*t.into = *t.from
		}
	}
	if q.Enabled != nil {
		c.Enabled = *q.Enabled
	}
	if len(q.Settings) > 0 {
		c.Settings = strictjson.AppendCompact(nil, q.Settings)
	}
}

// unscheduler is the part of host.Schedules that a deletion needs.
type unscheduler interface {
	DeleteSchedule(ctx context.Context, id store.ConnectionID) error
}

// DeleteConnection implements host.Connections (A185). Its secrets go with it
// in either case: another connection of this id would have them. What was kept
// can be erased later.
func (s *Service) DeleteConnection(ctx context.Context, id store.ConnectionID, erase bool) error {
	h := s.host
	if _, err := h.lasting(ctx, id); err != nil && (!erase || !errors.Is(err, store.ErrNotFound)) {
		return asked(err)
	}
	if err := h.idle(ctx, id); err != nil {
		return asked(err)
	}
	if all, ok := any(s).(unscheduler); ok {
		var none *host.Refusal
		if err := all.DeleteSchedule(ctx, id); err != nil && !errors.Is(err, store.ErrNotFound) && !errors.As(err, &none) {
			return err
		}
	}
	e := by(ctx, audit.Event{Action: audit.ConnectionDeleted, Target: string(id), Outcome: audit.Done})
	if erase {
		e.Details = append(e.Details, audit.Code("erased"))
	}
	err := h.audited(e, func() error { return h.Store.DeleteConnection(ctx, id, erase) })
	if err == nil && erase {
		err = s.schedules.Forget(ctx, id) // its history has cursors too
	}
	if erase && (err == nil || errors.Is(err, store.ErrNotFound)) { // traces are no record: they may be all that was kept
		err = errors.Join(err, h.forgetTraces(ctx, id))
	}
	if err != nil {
		return asked(err)
	}
	return errors.Join(h.forgetSecrets(ctx, id), h.forgetProfiles(ctx, id))
}

// ResetState implements host.Connections (A217). grant is a namespace, or how
// the current approval is shown.
func (s *Service) ResetState(ctx context.Context, id store.ConnectionID, grant store.GrantID, stream store.Stream) error {
	c, err := s.host.lasting(ctx, id)
	if err != nil {
		return asked(err)
	}
	if string(grant) == grantRef(c.Grant) {
		grant = ""
		if c.Grant != nil {
			grant = c.Grant.ID
		}
	}
	e := by(ctx, audit.Event{Action: audit.StateReset, Target: string(id), Outcome: audit.Done})
	if stream != "" {
		e.Details = append(e.Details, audit.Stream(string(stream)))
	}
	return asked(s.host.audited(e, func() error { return s.host.Store.ResetState(ctx, id, grant, stream) }))
}

// DismissAttention implements host.Connections (R202).
func (s *Service) DismissAttention(ctx context.Context, id store.ConnectionID) error {
	if _, err := s.host.lasting(ctx, id); err != nil {
		return asked(err)
	}
	e := by(ctx, audit.Event{Action: audit.ConnectionChanged, Target: string(id), Outcome: audit.Done, Details: []audit.Detail{audit.Code("attention_dismissed")}})
	return asked(s.host.audited(e, func() error {
		if s.host.attention == nil {
			return nil // nothing marks connections
		}
		return s.host.attention.DismissAttention(ctx, id)
	}))
}

// Attention keeps the marks of R202.
type Attention interface {
	NeedsAttention(ctx context.Context, id store.ConnectionID) (bool, error)
	// DismissAttention clears the mark; that there is none is no error.
	DismissAttention(ctx context.Context, id store.ConnectionID) error
}

// SetAttention says who keeps the marks of connections; it is called before there
// are requests. Without, no connection is marked.
func (h *Host) SetAttention(a Attention) { h.attention = a }

// lasting finds a connection that is somebody's: one that was made for a single
// run is as good as absent (A242). store.ErrNotFound.
func (h *Host) lasting(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	c, err := h.Store.Connection(ctx, id)
	if err == nil && c.Temporary {
		err = notFound("connection")
	}
	return c, err
}
