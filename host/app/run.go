package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// starter performs the checks before a run and opens what the run needs.
type starter struct {
	*directory
	connections *connectionStore
	publishers  *publishers
	grants      *grantStore
	secrets     *secretStore
	authorizer  *authorizer
	bindings    *bindings
	guests      *guests
	active      *activeRuns
}

// Start performs the checks before a start and returns a run that is ready to begin. The error is a
// *run.Refusal, and nothing was started then.
func (st *starter) Start(ctx context.Context, q RunRequest) (*run.Run, error) {
	p, err := st.prepare(ctx, q)
	if err != nil {
		return nil, err
	}
	return p.run, nil
}

// A prepared is a run that passed all checks before its start. Only the lease is not taken yet.
type prepared struct {
	run     *run.Run
	scopeID string // of its request
	// release closes what is open for a run that was not accepted.
	release func() error
	// guest is the worker of the run, nil before the launch.
	guest atomic.Pointer[run.Guest]
}

// abandon kills the worker of a run whose goroutine panicked.
func (p *prepared) abandon() {
	if g := p.guest.Load(); g != nil {
		(*g).Kill()
		go func() { // drain its calls until the worker is gone
			for in := range (*g).Calls() {
				in.Release()
			}
		}()
	}
}

// prepare performs the checks before a start, in the order of docs/spec/runs.md, "Checks before a start". The
// error is a *run.Refusal.
func (st *starter) prepare(ctx context.Context, q RunRequest) (*prepared, error) {
	if err := st.checkSpace(); err != nil {
		return nil, err
	}
	q, err := q.repeatable()
	if err != nil {
		return nil, err
	}
	conn, err := st.readyConnection(ctx, q)
	if err != nil {
		return nil, err
	}
	policy, err := policyOf(conn.Approved.Hosts)
	if err != nil {
		return nil, err
	}
	trace := &requestLogger{dir: st.directory, connection: conn.ID}
	secrets, obtained, err := st.runSecrets(q, conn, policy, trace)
	if err != nil {
		return nil, err
	}
	supplied := map[string]bool{}
	if q.Replay != nil { // the recording answers requests
		supplied[abi.BindingNetwork] = true
	}
	started := false
	defer func() {
		if !started {
			obtained.Close()
		}
	}()
	l, budgets := q.Connector, st.budgets(q)
	plan, err := run.Prepare(ctx, st.Store, run.Input{
		Connector: l.Connector, Connection: conn, Manifest: l.Manifest, Transport: string(l.Module.Transport),
		UsesABI: usesABI(l.Module), Mode: q.Mode, Scope: q.Scope, Narrow: q.Narrow, State: q.State, ResetState: q.ResetState,
		NoPersist: q.NoPersist, Secrets: secrets, Tokens: obtained.sources, Interactive: q.Owner != nil &&
			!conn.Approved.NoInteractive,
		Kinds: Kinds, Absent: st.bindings.absentFor(ctx, l.Manifest, q.Replay != nil), Supplied: supplied,
		Trigger: cmp.Or(q.Trigger, "manual"), Attempt: max(1, q.Attempt), RetryOf: q.RetryOf, StateFrom: q.StateFrom,
		AutomationMode: q.AutomationMode, Request: q.Request, Limits: st.Options.Limits, Budgets: budgets,
		Files: st.Options.Files,
	})
	if err != nil {
		return nil, err
	}
	code, err := st.guests.code(ctx, l, q.Interpreter)
	if err != nil {
		return nil, err
	}
	if isNew(conn) {
		made, err := st.connections.findOrMake(ctx, q)
		if err != nil {
			return nil, err
		}
		if made.Revision > 1 || made.Digest != conn.Digest { // another start made and changed it meanwhile
			return st.prepare(ctx, q)
		}
		conn.CreatedAt = made.CreatedAt
	}
	id := cmp.Or(q.At.RunID, run.NewRunID(store.Now(st.Store)))
	if q.resume != nil {
		id = q.resume.Run.ID
	}
	history := st.journal(&q, id)
	o := &opening{bindings: st.bindings, request: q, plan: plan, reserved: policy, tokens: obtained, trace: trace}
	lent, err := o.open()
	if err != nil {
		return nil, err
	}
	p := &prepared{scopeID: q.Request.ScopeID}
	p.run = run.New(plan, run.Deps{
		ID: id, TraceID: q.At.TraceID, History: history,
		Store: cmp.Or(q.store, st.Store), Owner: q.Owner, HostID: st.ID, BootEpoch: st.Epoch,
		EngineVersion: ThisVersion().Version, Watch: q.Watch, Bindings: lent, Handles: q.handles(),
		Slots: q.Slots, Spans: q.Spans, Launch: func(ctx context.Context, n run.Launch) (run.Guest, binding.Binding, error) {
			st.began(ctx, conn, p.run)
			guest, files, err := st.launch(ctx, q, code, conn, budgets, n)
			if err == nil {
				p.guest.Store(&guest)
			}
			o.setFiles(files)
			q = RunRequest{} // a run may wait for days and does not need its module any more
			return guest, files, err
		},
		Ended: func() { st.active.remove(conn.ID, p.run) },
	})
	p.release = func() error { return closeUnused(lent...) }
	trace.run, started = p.run.ID, o.session != nil
	return p, nil
}

// readyConnection returns the connection of a run, including what is given for this run only. It refuses a run
// whose module is in doubt or whose connection cannot start one.
func (st *starter) readyConnection(ctx context.Context, q RunRequest) (store.Connection, error) {
	if err := st.publishers.checkDoubts(ctx, q); err != nil {
		return store.Connection{}, err
	}
	if q.Replay == nil { // the settings are those of the recording
		if err := knownSettings(q.Connector.Manifest, q.Config); err != nil {
			return store.Connection{}, err
		}
	}
	conn, err := st.connections.find(ctx, q)
	if err == nil && q.resume == nil { // a resumed run holds the lease already
		err = st.connections.idle(ctx, conn.ID)
	}
	if err == nil {
		conn, err = st.grants.pin(ctx, conn, q.Connector, q.Accepted)
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

// knownSettings refuses members of a configuration that the manifest does not declare. Anything but a JSON
// object is refused later, where settings are checked.
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

// budgets returns the budgets of the request or else of the host, lowered by the manifest and by q.Lower.
func (st *starter) budgets(q RunRequest) run.Budgets {
	b := q.Budgets
	if b == (run.Budgets{}) {
		b = st.Options.Budgets
	}
	if m := q.Connector.Manifest; m.Sluice != nil {
		b = b.Lower(m.Sluice.Budgets)
	}
	return b.Lower(q.Lower)
}

// runSecrets returns the secrets of a run, and the sources of those that the host obtains. A replay uses only
// the values in its request.
func (st *starter) runSecrets(q RunRequest, conn store.Connection, p *egress.Policy,
	t *requestLogger) (secrets map[string]string, obtained *tokens, err error) {
	m := q.Connector.Manifest
	if q.Replay != nil {
		secrets = maps.Clone(q.Secrets)
		return secrets, replayedTokens(m, secrets), nil
	}
	if secrets, err = st.secrets.ofRun(m, conn.ID, q.Secrets); err != nil {
		return nil, nil, err
	}
	secrets = maps.Clone(secrets)
	obtained, err = st.authorizer.tokens(m, conn, secrets, q.Secrets, p, t)
	return secrets, obtained, err
}

// began registers a run, so that a revocation cancels it. If something was revoked since the run was planned, it
// is cancelled at once.
func (st *starter) began(ctx context.Context, planned store.Connection, r *run.Run) {
	st.active.add(planned, r)
	if c, err := st.Store.Connection(ctx, planned.ID); err != nil || withdrawn(planned, c) {
		r.Cancel(revoked)
	}
}

// withdrawn reports whether anything was revoked since a run was planned, even if it was granted again.
func withdrawn(planned, now store.Connection) bool {
	return now.Withdrawals != planned.Withdrawals || grantRef(now.Grant) != grantRef(planned.Grant) ||
		!now.CreatedAt.Equal(planned.CreatedAt)
}

func (st *starter) launch(ctx context.Context, q RunRequest, code sandbox.Code, conn store.Connection, b run.Budgets,
	n run.Launch) (run.Guest, binding.Binding, error) {
	l, memory := q.Connector, q.MemoryBytes
	if memory == 0 {
		memory = st.Options.MemoryBytes
	}
	files, mounts, err := st.bindings.files(l.Manifest, conn, n.RunID)
	if err != nil {
		return nil, nil, err
	}
	guest, err := st.guests.Sandbox.Start(ctx, sandbox.Spec{
		Name: n.Name, Env: n.Env, Module: l.Module, Wasm: l.Wasm, Code: code, Mounts: mounts,
		MemoryBytes: memory, Compute: b.Compute, Interpreter: q.Interpreter,
		Fixed: q.fixed,
	})
	if err != nil {
		err = errors.Join(err, closeUnused(files))
		return nil, nil, launchError(err)
	}
	if q.Launched != nil {
		return q.Launched(guest), files, nil
	}
	return guest, files, nil
}

// launchError returns a run.LaunchError with the code of a failed start.
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

// mergeDestinations merges destinations by secret. Added ones replace stored ones.
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

// ByLines reports whether a connector uses a binding by messages instead of imports. That is the network of
// connectors that speak JSON lines.
func (l *Loaded) ByLines(binding string) bool {
	_, declared := l.Manifest.Bindings[binding]
	return declared && binding == abi.BindingNetwork && l.Module.Transport == sandbox.TransportStdio
}

func usesABI(m sandbox.Module) bool {
	return m.Uses(abi.ModuleCore) ||
		slices.ContainsFunc(abi.BindingModules, func(b abi.BindingModule) bool { return m.Uses(b.Module) })
}
