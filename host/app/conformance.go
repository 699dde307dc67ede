package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// temporaries makes and deletes connections that exist for one run of a conformance connector.
type temporaries struct {
	*directory
	modules *modules

	mu        sync.Mutex                      // guards what follows
	temporary map[store.ConnectionID]struct{} // connections of runs that are not over
	leftovers bool                            // some connections could not be deleted
	// spared is the minimum age of a connection to be deleted as a leftover. A younger one may belong to another
	// host that is about to start its run.
	spared time.Duration
}

// sparedTime is the value of spared where hosts share the store. Their clocks may differ by minutes.
const sparedTime = time.Hour

// make makes the connection for one run of a conformance connector: a grant without a scope, nothing approved,
// and the inputs of the run as settings.
func (ts *temporaries) make(ctx context.Context, listed store.Connector, inputs json.RawMessage) (workflow, error) {
	l, err := ts.modules.loadListed(ctx, listed, nil)
	if err != nil {
		return workflow{}, err
	}
	settings, err := mergeInputs(l.Manifest, inputs)
	if err != nil {
		return workflow{}, err
	}
	now := time.Now()
	w := workflow{connection: temporaryID(l.Manifest.Name()), loaded: l, temporary: true}
	ts.mu.Lock()
	ts.temporary[w.connection] = struct{}{}
	ts.mu.Unlock()
	err = ts.Store.PutConnection(ctx, store.Connection{
		ID: w.connection, ConnectorID: l.Connector.ID, DisplayName: l.Connector.DisplayName, Enabled: true,
		Temporary: true, Settings: settings, Grant: &store.Grant{AccessMode: "continuous", Status: "active"},
		Digest: l.Connector.Digest, Manifest: l.Manifest.Raw, CreatedAt: now, UpdatedAt: now,
	})
	if err != nil {
		ts.remove(w)
		return workflow{}, fmt.Errorf("make connection %s: %w", w.connection, err)
	}
	return w, nil
}

func temporaryID(name string) store.ConnectionID {
	return store.ConnectionID(strings.TrimRight(abi.Cut(name, 47), "-_") + "-" + randomID(""))
}

// remove deletes the connection of a run that is over, with all that was collected.
func (ts *temporaries) remove(w workflow) {
	if !w.temporary {
		return
	}
	err := ts.Store.DeleteConnection(context.Background(), w.connection, true)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.temporary, w.connection)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		ts.leftovers = true // its run is still active, or the store is closed; deleteLeftovers retries
	}
}

// deleteLeftovers deletes temporary connections whose run nobody performs, after a crash or when one could not
// be deleted at the end of its run.
func (ts *temporaries) deleteLeftovers(ctx context.Context) error {
	all, err := ts.Store.Connections(ctx)
	if err != nil {
		return fmt.Errorf("list connections: %w", err)
	}
	for _, c := range all {
		if !c.Temporary || ts.inUse(c.ID) || time.Since(c.CreatedAt) < ts.spared {
			continue
		}
		var active *store.ActiveError
		switch err := ts.Store.DeleteConnection(ctx, c.ID, true); {
		case errors.As(err, &active):
			ts.mu.Lock()
			ts.leftovers = true
			ts.mu.Unlock()
		case errors.Is(err, store.ErrReadOnly), errors.Is(err, store.ErrNotFound):
		case err != nil:
			return fmt.Errorf("delete connection %s: %w", c.ID, err)
		}
	}
	return nil
}

func (ts *temporaries) inUse(id store.ConnectionID) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	_, ok := ts.temporary[id]
	return ok
}

// mergeInputs returns the members of inputs that a manifest declares as settings and ignores the others. A missing
// or invalid member is an invalid_request with details.field.
func mergeInputs(m *abi.Manifest, inputs json.RawMessage) (json.RawMessage, error) {
	if len(inputs) == 0 {
		inputs = json.RawMessage("{}")
	}
	given, err := strictjson.Parse(inputs, strictjson.ParseOptions{})
	if err != nil {
		return nil, host.Refuse("invalid_request", "inputs: want a JSON object").With("field", "inputs")
	}
	var settings *abi.Settings
	if m.Sluice != nil {
		settings = m.Sluice.Settings
	}
	out := map[string]json.RawMessage{}
	if settings != nil {
		for _, p := range settings.Properties {
			v, ok := given.Member(p.Name)
			if !ok {
				continue
			}
			if !inRange(m, p.Name, v) {
				return nil, badInput(p.Name, "is out of range")
			}
			out[p.Name] = json.RawMessage(v.Raw)
		}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	v, err := strictjson.Parse(raw, strictjson.ParseOptions{})
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	var bad *abi.SettingError
	if err := settings.Check(v); errors.As(err, &bad) {
		return nil, badInput(bad.Name, bad.Want)
	}
	return raw, nil
}

func badInput(name, want string) error {
	return host.Refuse("invalid_request", "inputs: %s %s", abi.Cut(abi.Clean(name), 80),
		want).With("field", "inputs."+name)
}

// inRange checks a number against the minimum and maximum of the setting's declaration. Other values are left to
// the connector.
func inRange(m *abi.Manifest, name string, v strictjson.Value) bool {
	at, err := strictjson.Parse(m.Raw, strictjson.ParseOptions{})
	for _, member := range []string{"sluice", "settings", "properties", name} {
		at, _ = at.Member(member)
	}
	n, isNumber := v.Float64()
	if err != nil || !isNumber {
		return true
	}
	least, _ := at.Member("minimum")
	if l, ok := least.Float64(); ok && n < l {
		return false
	}
	most, _ := at.Member("maximum")
	l, ok := most.Float64()
	return !ok || n <= l
}
