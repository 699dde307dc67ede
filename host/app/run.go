package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/network"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// A RunRequest is a start as a caller asks for it.
type RunRequest struct {
	Connector  *Loaded
	Connection store.ConnectionID // "" is the connector's name

	Mode       string
	Scope      json.RawMessage
	Narrow     bool            // stored records may lose fields that Scope leaves out
	Config     json.RawMessage // nil keeps the connection's settings
	State      json.RawMessage
	ResetState bool
	NoPersist  bool
	// Approved adds to what the connection is granted, for this run.
	Approved store.Approved
	// Accepted says that the owner agreed to what this version of the connector
	// asks for beyond the one they approved before.
	Accepted bool
	Secrets  map[string]string // win over stored ones
	Owner    run.Owner         // nil: not interactive
	Trigger  string            // "" is manual
	Watch    func(store.Event)
	Stalls   func(message string) // see run.Deps
	// Budgets and MemoryBytes replace the host's; zero values keep them.
	Budgets     run.Budgets
	MemoryBytes uint64
	// Lower are budgets of runtime.md §19.1 by their keys, in ms; they only lower.
	Lower map[string]int64
	// Trace records what is done in a browser (R154).
	Trace bool
	// Existing refuses a connection that there is not, instead of making it.
	Existing bool
	// StateFrom are the runs that committed what State holds, by stream: this run is
	// a branch of one (A79).
	StateFrom map[string]store.RunID

	// store is what the run commits to, when that is not the host's own.
	store store.Store

	AutomationMode string
	Attempt        int // 0 is 1
	RetryOf        store.RunID
	Request        store.Request
	Slots          run.Slots
	Spans          run.Spans
	// Launched sees the guest before it runs, for measurements; nil for none.
	Launched func(run.Guest)
	// Interpreter is for conformance tests; see sandbox.Spec.
	Interpreter bool
	// Record keeps the run; Replay runs it without network and vault, as it was
	// kept. Nil for neither; not both.
	Record *Recorder
	Replay *Recording

	fixed *abi.Fixed
}

// Start makes the checks of §6.1 and returns a run that is ready to go. The
// error is a *run.Refusal; then nothing was started.
func (h *Host) Start(ctx context.Context, q RunRequest) (*run.Run, error) {
	p, err := h.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	return p.run, nil
}

// A prepared run passed the checks of §6.1 but for the lock.
type prepared struct {
	run *run.Run
	// release gives back what is open for a run that was not accepted.
	release func() error
	// guest is the run's, once it has one: for when nobody performs the run any
	// more.
	guest atomic.Pointer[run.Guest]
}

// abandon stops a guest whose run is not performed any more.
func (p *prepared) abandon() {
	if g := p.guest.Load(); g != nil {
		(*g).Kill()
		go func() { // until the worker is gone
			for in := range (*g).Calls() {
				in.Release()
			}
		}()
	}
}

// prepare makes the checks of §6.1, in their order. The error is a *run.Refusal.
func (h *Host) prepare(ctx context.Context, q RunRequest) (*prepared, error) {
	if err := h.room(); err != nil {
		return nil, err
	}
	q, err := q.repeatable()
	if err != nil {
		return nil, err
	}
	conn, err := h.ready(ctx, q)
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(conn.Approved.Hosts)
	if err != nil {
		return nil, err
	}
	trace := &tracer{host: h, connection: conn.ID}
	secrets, obtained, err := h.given(q, conn, policy, trace)
	if err != nil {
		return nil, err
	}
	supplied := map[string]bool{}
	if q.Replay != nil { // the recording answers
		supplied[abi.BindingNetwork] = true
	}
	started := false
	defer func() {
		if !started {
			obtained.Close()
		}
	}()
	l, budgets := q.Connector, h.budgets(q)
	plan, err := run.Prepare(ctx, h.Store, run.Input{
		Connector: l.Connector, Connection: conn, Manifest: l.Manifest, Transport: string(l.Module.Transport), UsesABI: usesABI(l.Module),
		Mode: q.Mode, Scope: q.Scope, Narrow: q.Narrow, State: q.State, ResetState: q.ResetState, NoPersist: q.NoPersist,
		Secrets: secrets, Tokens: obtained.sources, Interactive: q.Owner != nil && !conn.Approved.NoInteractive,
		Kinds: Kinds, Absent: h.absentFor(ctx, l.Manifest, q.Replay != nil), Supplied: supplied, Trigger: cmp.Or(q.Trigger, "manual"), Attempt: max(1, q.Attempt), RetryOf: q.RetryOf, StateFrom: q.StateFrom,
		AutomationMode: q.AutomationMode, Request: q.Request, Limits: h.Options.Limits, Budgets: budgets,
	})
	if err != nil {
		return nil, err
	}
	code, err := h.code(ctx, l, q.Interpreter)
	if err != nil {
		return nil, err
	}
	if isNew(conn) {
		made, err := h.made(ctx, q)
		if err != nil {
			return nil, err
		}
		if made.Revision > 1 || made.Digest != conn.Digest { // somebody else made it, and did more
			return h.prepare(ctx, q)
		}
		conn.CreatedAt = made.CreatedAt
	}
	o := &opening{host: h, request: q, plan: plan, reserved: policy, obtained: obtained, trace: trace}
	lent, err := o.open()
	if err != nil {
		return nil, err
	}
	p := &prepared{}
	p.run = run.New(plan, run.Deps{
		Store: cmp.Or(q.store, h.Store), Owner: q.Owner, HostID: h.ID, BootEpoch: h.Epoch, EngineVersion: ThisVersion().Version, Watch: q.Watch, Stalls: q.Stalls,
		Bindings: lent, Handles: q.handles(), Slots: q.Slots, Spans: q.Spans,
		Launch: func(ctx context.Context, n run.Launch) (run.Guest, binding.Binding, error) {
			h.began(ctx, conn, p.run)
			guest, files, err := h.launch(ctx, q, code, conn, budgets, n)
			if err == nil {
				p.guest.Store(&guest)
			}
			o.launched(files)
			q = RunRequest{} // a run may wait for days, and needs its module no more
			return guest, files, err
		},
		Ended: func() { h.active.ended(conn.ID, p.run) },
	})
	p.release = func() error { return unused(lent...) }
	trace.run, started = p.run.ID, o.session != nil
	return p, nil
}

// ready is the connection of a run that may start as far as connection, module
// and lease go (checks 1, 2 and 4 of §6.1), with what this run is given beyond
// what is stored.
func (h *Host) ready(ctx context.Context, q RunRequest) (store.Connection, error) {
	if err := h.vouched(ctx, q); err != nil {
		return store.Connection{}, err
	}
	if q.Replay == nil { // whoever made a recording chose them
		if err := knownSettings(q.Connector.Manifest, q.Config); err != nil {
			return store.Connection{}, err
		}
	}
	conn, err := h.connection(ctx, q)
	if err == nil {
		err = h.idle(ctx, conn.ID)
	}
	if err == nil {
		conn, err = h.pin(ctx, conn, q.Connector, q.Accepted)
	}
	if err != nil {
		return conn, err
	}
	if q.Config != nil {
		conn.Settings = q.Config
	}
	conn.Approved = merge(conn.Approved, q.Approved)
	if q.Replay != nil {
		conn.Approved.Hosts = q.Approved.Hosts
	}
	return conn, nil
}

// knownSettings refuses misspelled members of a configuration. What is no object at all is refused where the settings are checked.
func knownSettings(m *abi.Manifest, config json.RawMessage) error {
	v, err := strictjson.Parse(config, strictjson.ParseOptions{})
	if err != nil || m.Sluice == nil {
		return nil
	}
	var bad *abi.SettingError
	if err := m.Sluice.Settings.Known(v); errors.As(err, &bad) {
		return &run.Refusal{Code: "setting_unknown", Message: bad.Error(), Details: map[string]any{"setting": bad.Name}}
	}
	return nil
}

// budgets are the host's or the request's, lowered by the manifest.
func (h *Host) budgets(q RunRequest) run.Budgets {
	b := q.Budgets
	if b == (run.Budgets{}) {
		b = h.Options.Budgets
	}
	if m := q.Connector.Manifest; m.Sluice != nil {
		b = b.Lower(m.Sluice.Budgets)
	}
	return b.Lower(q.Lower)
}

// given are the secrets of a run, and the sources of those that the host obtains. A
// replay needs none of them.
func (h *Host) given(q RunRequest, conn store.Connection, p *network.Policy, t *tracer) (secrets map[string]string, obtained *tokens, err error) {
	m := q.Connector.Manifest
	if q.Replay != nil {
		secrets = maps.Clone(q.Secrets)
		return secrets, replayedTokens(m, secrets), nil
	}
	if secrets, err = h.secrets(m, conn.ID, q.Secrets); err != nil {
		return nil, nil, err
	}
	secrets = maps.Clone(secrets)
	obtained, err = h.tokens(m, conn, secrets, q.Secrets, p, t)
	return secrets, obtained, err
}

// began makes a run one that a revocation ends (R8), also one that came since the
// run was planned: what it was planned with may not be the connection's any more.
func (h *Host) began(ctx context.Context, planned store.Connection, r *run.Run) {
	h.active.began(planned.ID, r)
	if c, err := h.Store.Connection(ctx, planned.ID); err != nil || withdrawn(planned, c) {
		r.Cancel(revoked)
	}
}

// withdrawn reports whether something that a run was planned with was taken back
// since, even if it was given anew.
func withdrawn(planned, now store.Connection) bool {
	return now.Withdrawals != planned.Withdrawals || grantRef(now.Grant) != grantRef(planned.Grant) || !now.CreatedAt.Equal(planned.CreatedAt)
}

// connectionID is the connection that a request is for (R1).
func (q RunRequest) connectionID() store.ConnectionID {
	if q.Connection == "" {
		return store.ConnectionID(q.Connector.Manifest.Name())
	}
	return q.Connection
}

// made is the connection of a request, which is stored if it is new.
func (h *Host) made(ctx context.Context, q RunRequest) (store.Connection, error) {
	h.creating.Lock()
	defer h.creating.Unlock()
	c, err := h.connection(ctx, q)
	if err != nil || !isNew(c) {
		return c, err
	}
	c.Revision = 1
	return c, h.audited(by(ctx, audit.Event{Action: audit.ConnectionCreated, Target: string(c.ID), Outcome: audit.Done}),
		func() error { return h.Store.PutConnection(ctx, c) })
}

// isNew reports whether a connection is not stored yet.
func isNew(c store.Connection) bool { return c.Revision == 0 }

// connection finds the connection of a request, or describes the new one that it
// would have (R1). A connection belongs to one connector.
func (h *Host) connection(ctx context.Context, q RunRequest) (store.Connection, error) {
	l, id := q.Connector, q.connectionID()
	if !abi.IsSlug(string(id)) {
		return store.Connection{}, refusal("connection_not_found", fmt.Errorf("connection id %q: want ^[a-z0-9][a-z0-9_-]{0,63}$", abi.Cut(abi.Clean(string(id)), 80)))
	}
	c, err := h.Store.Connection(ctx, id)
	switch {
	case errors.Is(err, store.ErrNotFound) && q.Existing:
		return c, refusal("connection_not_found", fmt.Errorf("there is no connection %s", id))
	case errors.Is(err, store.ErrNotFound):
		if other, err := h.keptFor(ctx, id); err != nil || other != "" && other != l.Connector.ID {
			return c, cmp.Or(err, error(refusal("connection_not_found", fmt.Errorf("what connector %s collected is kept as %s; name another with --connection", other, id))))
		}
		now := time.Now()
		settings := q.Config
		if q.Replay != nil { // whoever made the recording chose them
			settings = nil
		}
		return store.Connection{ID: id, ConnectorID: l.Connector.ID, Enabled: true, Settings: settings, Manifest: l.Manifest.Raw,
			Digest: l.Connector.Digest, CreatedAt: now, UpdatedAt: now}, nil
	case err != nil:
		return c, fmt.Errorf("load connection %s: %w", id, err)
	case c.ConnectorID != l.Connector.ID:
		return c, refusal("connection_not_found", fmt.Errorf("connection %s belongs to connector %s; name another with --connection", id, c.ConnectorID))
	case !c.Enabled:
		return c, refusal("connection_disabled", fmt.Errorf("connection %s is disabled", id))
	}
	c.Revision = max(c.Revision, 1)
	return c, nil
}

// keptFor is the connector whose data is kept under the id of a connection that
// was deleted, "" for none.
func (h *Host) keptFor(ctx context.Context, id store.ConnectionID) (store.ConnectorID, error) {
	runs, err := h.Store.Runs(ctx, id, "", 1)
	if err != nil || len(runs) == 0 {
		return "", err
	}
	return runs[0].ConnectorID, nil
}

// idle is check 2 of §6.1, for a clear answer before any work is done; the
// lease decides the race.
func (h *Host) idle(ctx context.Context, id store.ConnectionID) error {
	leases, err := h.Store.Leases(ctx)
	if err != nil {
		return fmt.Errorf("list active runs: %w", err)
	}
	for _, l := range leases {
		if l.ConnectionID == id {
			return &run.Refusal{Code: "run_already_active", Message: fmt.Sprintf("connection %s is being collected by run %s", id, l.RunID),
				Details: map[string]any{"activeRunId": l.RunID}}
		}
	}
	return nil
}

// code compiles the module unless the cache has it: at install, or at the first
// use of a file.
func (h *Host) code(ctx context.Context, l *Loaded, interpreter bool) (sandbox.Code, error) {
	if interpreter {
		return sandbox.Code{}, nil
	}
	code, err := h.Sandbox.Prepare(ctx, l.Module, l.Wasm)
	if err != nil {
		return code, prepareRefusal(err)
	}
	return code, nil
}

func (h *Host) launch(ctx context.Context, q RunRequest, code sandbox.Code, conn store.Connection, b run.Budgets, n run.Launch) (run.Guest, binding.Binding, error) {
	l, memory := q.Connector, q.MemoryBytes
	if memory == 0 {
		memory = h.Options.MemoryBytes
	}
	files, mounts, err := h.files(l.Manifest, conn, n.RunID)
	if err != nil {
		return nil, nil, err
	}
	guest, err := h.Sandbox.Start(ctx, sandbox.Spec{
		Name: n.Name, Env: n.Env, Module: l.Module, Wasm: l.Wasm, Code: code, Mounts: mounts,
		MemoryBytes: memory, Compute: b.Compute, Interpreter: q.Interpreter,
		Fixed: q.fixed,
	})
	if err != nil {
		err = errors.Join(err, unused(files))
		return nil, nil, launchError(err)
	}
	if q.Launched != nil {
		q.Launched(guest)
	}
	return guest, files, nil
}

// launchError gives a failed start its failure_code (R187).
func launchError(err error) error {
	code := "host_resources"
	var f *sandbox.Failure
	if errors.As(err, &f) {
		switch f.Code {
		case sandbox.CodeEngineUnavailable, sandbox.CodeIsolationUnavailable:
			code = f.Code
		case sandbox.CodeCompileFailed, sandbox.CodeCompileMemory, sandbox.CodeCompileTimeout:
			code = "module_invalid"
		}
	}
	return &run.LaunchError{Code: code, Err: err}
}

// mergeDestinations lets what was named last for a secret stand.
func mergeDestinations(stored, added map[string][]abi.Destination) map[string][]abi.Destination {
	out := maps.Clone(stored)
	for name, to := range added {
		if out == nil {
			out = map[string][]abi.Destination{}
		}
		out[name] = to
	}
	return out
}

// ByLines reports whether a connector uses a binding by lines, importing nothing for it:
// the network of those that speak JSON lines.
func (l *Loaded) ByLines(binding string) bool {
	_, declared := l.Manifest.Bindings[binding]
	return declared && binding == abi.BindingNetwork && l.Module.Transport == sandbox.TransportStdio
}

func usesABI(m sandbox.Module) bool {
	return m.Uses(abi.ModuleCore) || slices.ContainsFunc(abi.BindingModules, func(b abi.BindingModule) bool { return m.Uses(b.Module) })
}
