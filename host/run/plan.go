package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run/redact"
	"github.com/sluicehost/sluice/host/scope"
	"github.com/sluicehost/sluice/store"
)

// An Input is a requested start, with connection, connector and module resolved.
type Input struct {
	Connector  store.Connector
	Connection store.Connection
	Manifest   *abi.Manifest // the active manifest
	Transport  string        // abi or stdio
	UsesABI    bool          // the module imports a sluice_v1* function

	Mode  string          // full_refresh or incremental; "" means the default
	Scope json.RawMessage // explicitly requested scope; nil for none
	// Narrow allows stored records to lose fields that Scope leaves out.
	Narrow bool
	// State replaces the stored cursors if it is not nil. ResetState ignores the stored cursors. With NoPersist
	// none are passed on or committed.
	State      json.RawMessage
	ResetState bool
	NoPersist  bool
	// StateFrom makes the run a branch: it has the runs that committed the cursors of State, by stream. The
	// cursors are then passed on even if none will be committed. Nil means that the run is no branch.
	StateFrom map[string]store.RunID

	Secrets     map[string]string // by declared name
	Tokens      map[string]Token  // secrets that the host obtains itself
	Interactive bool              // an owner channel is attached
	Kinds       binding.Kinds     // bindings known to the host
	Absent      map[string]string // why this host cannot lend a binding, by name
	Supplied    map[string]bool   // bindings that come with the run and need no approval, by name

	Trigger        string // manual, scheduled, retry or webhook
	AutomationMode string
	Attempt        int
	RetryOf        store.RunID
	Request        store.Request // stored with the run, for the API

	Limits  abi.Limits
	Budgets Budgets
	Files   FileQuotas
}

// A Plan is a start that passed every check but that of the lease (docs/spec/runs.md, "Checks before a start").
type Plan struct {
	Input
	manifest      *abi.Manifest
	scope         abi.Scope
	explicit      bool
	mode          string
	grant         store.GrantID
	persist       bool
	states        map[string]json.RawMessage
	stateRuns     map[string]store.RunID // the runs that committed them; nil if a caller supplied them
	gaps          []store.DetailGap
	servedGaps    []abi.ServedGap
	startBindings abi.Bindings
	config        json.RawMessage
	delivered     deliveredSecrets
}

// Prepare makes the checks before a start from the grant on, in order. The error is a *Refusal. Checks 1, 2 and
// 4 are made by the caller, who fills the Input.
func Prepare(ctx context.Context, st store.Store, in Input) (*Plan, error) {
	p := &Plan{Input: in, manifest: in.Manifest}
	for _, check := range []func(context.Context, store.Store) error{
		p.checkGrant, p.checkMode, p.checkScope, p.checkState, p.checkBindings, p.checkSettings, p.checkSecrets,
		p.checkLosses, p.loadGaps,
	} {
		if err := check(ctx, st); err != nil {
			return nil, asRefusal(err)
		}
	}
	return p, nil
}

func asRefusal(err error) error {
	var r *Refusal
	var refusal *host.Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &refusal):
		return &Refusal{Code: refusal.Code, Message: refusal.Message, Details: refusal.Details}
	}
	return &Refusal{Code: "runtime_error", Message: err.Error(), Err: err}
}

// checkGrant refuses an unusable grant. A single-use grant keeps no state.
func (p *Plan) checkGrant(_ context.Context, s store.Store) error {
	g := p.Connection.Grant
	p.persist = !p.NoPersist
	if g == nil {
		return nil
	}
	p.grant = g.ID
	if code := g.Fault(store.Now(s)); code != "" {
		return refuse(code, "the grant of connection %s is %s; sluice grant %s gives a new one", p.Connection.ID,
			code[len("grant_"):], p.Manifest.Name()).
			with("connection_id", p.Connection.ID)
	}
	if g.AccessMode == "single_use" {
		p.persist = false
	}
	return nil
}

func (p *Plan) checkMode(context.Context, store.Store) error {
	if p.Mode != "" && p.Mode != abi.FullRefresh && p.Mode != abi.Incremental {
		return refuse("collection_mode_invalid", "collection mode %q: want %s or %s", abi.Clean(p.Mode),
			abi.FullRefresh, abi.Incremental)
	}
	return nil
}

// checkScope narrows the declared streams to what is requested and granted.
func (p *Plan) checkScope(context.Context, store.Store) error {
	var granted json.RawMessage
	if p.Connection.Grant != nil {
		granted = p.Connection.Grant.Scope
	}
	s, err := scope.Normalise(scope.Request{Manifest: p.manifest, Explicit: p.Scope, Grant: granted,
		Since: p.Connection.CollectionSince})
	var bad *scope.Error
	if errors.As(err, &bad) {
		return refuse(bad.Code, "%s: %s", bad.Member, bad.Want).with("member", bad.Member)
	}
	if err != nil {
		return err
	}
	p.scope, p.explicit = s, len(p.Scope) > 0 && string(p.Scope) != "null"
	return nil
}

// checkState chooses the cursors to pass on, and the mode that results.
func (p *Plan) checkState(ctx context.Context, st store.Store) error {
	p.states, p.stateRuns = map[string]json.RawMessage{}, map[string]store.RunID{}
	switch {
	case len(p.State) > 0:
		if err := p.suppliedState(); err != nil {
			return err
		}
	case p.persist && !p.ResetState:
		states, err := st.States(ctx, p.Connection.ID, p.grant)
		if err != nil {
			return fmt.Errorf("load state of %s: %w", p.Connection.ID, err)
		}
		for _, s := range states {
			p.states[string(s.Stream)], p.stateRuns[string(s.Stream)] = s.Cursor, s.RunID
		}
	}
	if len(p.State) > 0 {
		p.stateRuns = p.StateFrom
	}
	if !p.persist && p.StateFrom == nil {
		p.states, p.stateRuns = nil, nil
	}
	if p.mode = p.Mode; p.mode == "" {
		p.mode = abi.FullRefresh
		for _, c := range p.states {
			if string(c) != "null" {
				p.mode = abi.Incremental
			}
		}
	}
	return nil
}

func (p *Plan) suppliedState() error {
	const want = "state: want null, or an object of stream names to cursors (objects or null)"
	v, err := strictjson.Parse(p.State, strictjson.ParseOptions{AnyKind: true})
	if err != nil {
		return refuse("start_state_invalid", "%s: %v", want, err)
	}
	if v.Absent() {
		return nil
	}
	if !v.Is(strictjson.KindObject) {
		return refuse("start_state_invalid", "%s", want)
	}
	for name, c := range v.Members() {
		if p.StateFrom == nil && !c.Absent() && !p.manifest.Declares(name) {
			return refuse("start_state_invalid", "state: %q is no stream of the connector; %s", abi.Cut(abi.Clean(name), 128),
				abi.Suggest(name, scope.StreamNames(p.manifest)))
		}
		if !c.Absent() && !c.Is(strictjson.KindObject) {
			return refuse("start_state_invalid", "%s; the cursor of %q is not", want, abi.Cut(abi.Clean(name), 128))
		}
		p.states[name] = strictjson.AppendCompact(nil, c.Raw)
	}
	return nil
}

// checkBindings refuses a start without a required binding, and determines what is lent.
func (p *Plan) checkBindings(context.Context, store.Store) error {
	for _, name := range sortedKeys(p.manifest.Bindings) {
		if p.manifest.Bindings[name].Required {
			if err := p.requireBinding(name); err != nil {
				return err
			}
		}
	}
	p.startBindings = abi.Bindings{}
	for _, k := range p.Kinds {
		if _, absent := p.Absent[k.Name()]; absent {
			continue
		}
		if err := k.AddToStart(p.manifest, p.Connection, &p.startBindings); err != nil {
			return err
		}
	}
	if p.Interactive {
		p.startBindings.Interactive = &struct{}{}
	}
	return nil
}

// requireBinding refuses a binding that is not approved or that this host cannot lend.
func (p *Plan) requireBinding(name string) error {
	if name == abi.BindingInteractive {
		if p.Interactive {
			return nil
		}
		return refuse("binding_unsatisfied",
			"the connector must be able to ask somebody, and nobody is there: run it on a terminal without --no-interactive, or give --answer").with("binding", name)
	}
	k, known := p.Kinds.Of(name)
	if !known {
		return refuse("binding_unsatisfied", "this host does not provide the binding %s that the connector requires",
			name).with("binding", name)
	}
	if why, absent := p.Absent[name]; absent {
		return refuse("binding_unsatisfied", "the connector needs a %s, and this host has none: %s", name,
			why).with("binding", name)
	}
	if p.Supplied[name] {
		return nil
	}
	for _, a := range k.Asks(p.manifest, p.Connection.Approved) {
		if a.Lacks != "" {
			return refuse("binding_not_approved", "binding %s: %s is not approved for connection %s", name, a.Lacks,
				p.Connection.ID).with("binding", name)
		}
	}
	return nil
}

// checkSettings checks the owner's settings against the manifest.
func (p *Plan) checkSettings(context.Context, store.Store) error {
	config := p.Connection.Settings
	if len(config) == 0 {
		config = json.RawMessage("{}")
	}
	v, err := strictjson.Parse(config, strictjson.ParseOptions{})
	if err != nil {
		return refuse("setting_missing", "config: want one JSON object: %v", err)
	}
	var settings *abi.Settings
	if p.manifest.Sluice != nil {
		settings = p.manifest.Sluice.Settings
	}
	var bad *abi.SettingError
	if err := settings.Check(v); errors.As(err, &bad) {
		return refuse("setting_missing", "%v", bad).with("setting", bad.Name)
	}
	if !bytes.Equal(bytes.TrimSpace(config), []byte("{}")) {
		p.config = strictjson.AppendCompact(nil, config)
	}
	return nil
}

// checkSecrets refuses a start without a required secret, or with one that the connector would see in plain text
// without the owner's consent.
func (p *Plan) checkSecrets(context.Context, store.Store) error {
	for _, f := range SecretFields(p.manifest) {
		_, ok := p.Secrets[f.Name]
		if ok && !Sealed(p.manifest, f) && !slices.Contains(p.Connection.Approved.Plain, f.Name) {
			return refuse("binding_not_approved",
				"%s would see the secret %s itself; agree to that with --plain %s, for this run or with sluice grant",
				p.manifest.Name(), f.Name, f.Name).with("secret", f.Name)
		}
		if f.OAuth != nil {
			if err := p.checkToken(f); err != nil {
				return err
			}
			continue
		}
		if f.Required && !ok {
			return refuse("secret_missing",
				"secret %s is required; store it with sluice secret set %s %s, or give it with --secret %s=@FILE", f.Name,
				p.Connection.ID, f.Name, f.Name).with("secret", f.Name)
		}
	}
	return nil
}

// loadGaps reads the detail gaps of the namespace and chooses those for START.
func (p *Plan) loadGaps(ctx context.Context, st store.Store) error {
	gaps, err := st.Gaps(ctx, p.Connection.ID, p.grant, "")
	if err != nil {
		return fmt.Errorf("load detail gaps of %s: %w", p.Connection.ID, err)
	}
	return p.serveGaps(gaps)
}

// serveGaps chooses the gaps that START lists.
func (p *Plan) serveGaps(gaps []store.DetailGap) error {
	const maxServed = 256 * abi.KiB
	p.gaps, p.servedGaps = gaps, []abi.ServedGap{}
	used := 0
	for _, g := range gaps {
		if g.Status != gapPending || !g.Retryable || !p.inScope(string(g.Stream)) {
			continue
		}
		s := abi.ServedGap{
			GapID: g.ID, Stream: string(g.Stream), ParentStream: string(g.ParentStream), RecordKey: g.RecordKey,
			Reason: g.Reason, DetailLocator: g.Locator, ListCursor: g.ListCursor, AttemptCount: g.AttemptCount,
		}
		b, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("encode detail gap %s: %w", g.ID, err)
		}
		if used += len(b) + 1; used > maxServed {
			break
		}
		p.servedGaps = append(p.servedGaps, s)
	}
	return nil
}

func (p *Plan) inScope(stream string) bool {
	return slices.ContainsFunc(p.scope.Streams, func(s abi.ScopeStream) bool { return s.Name == stream })
}

// PartialStart returns the part of START that is known before the run, without its id and secrets.
func (p *Plan) PartialStart() abi.Start {
	s := abi.Start{
		ConnectionID: string(p.Connection.ID), ConnectorID: string(p.Connector.ID),
		CollectionMode: p.mode, Scope: p.scope, Bindings: p.startBindings, DetailGaps: p.servedGaps, Config: p.config,
	}
	if len(p.states) > 0 {
		s.State = p.states
	}
	return s
}

// start builds the START envelope. It contains no token, host path or address.
func (p *Plan) start(runID store.RunID) ([]byte, error) {
	s := p.PartialStart()
	s.RunID, s.Secrets = string(runID), p.delivered.values
	if p.Transport == "stdio" {
		s.Type = "START"
	}
	if p.UsesABI {
		s.ABI = &abi.Version{Major: abi.Major, Minor: abi.Minor}
	}
	b, err := redact.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode START: %w", err)
	}
	if len(b) > p.Limits.StartBytes {
		return nil, refuse("start_too_large", "START would have %d bytes, the limit is %d; narrow the scope", len(b),
			p.Limits.StartBytes)
	}
	return b, nil
}

// intent returns state_commit_intent.
func (p *Plan) intent() string {
	if p.persist {
		return intentOnSuccess
	}
	return intentNone
}

// grantFault returns the cause for a grant that has expired, nil while it is usable; now is by the clock of the
// store. Other changes of the grant are noticed by the store.
func (p *Plan) grantFault(now time.Time) *cause {
	code := p.Connection.Grant.Fault(now)
	if code == "" {
		return nil
	}
	return &cause{reason: code, origin: "storage", message: "The grant of this connection is no longer usable."}
}

// A planState holds the parts of a plan that depend on state which the run itself changes.
type planState struct {
	Mode   string                     `json:"mode"`
	States map[string]json.RawMessage `json:"states,omitempty"`
	From   map[string]store.RunID     `json:"from,omitempty"`
	Gaps   []savedGap                 `json:"gaps,omitempty"`
}

type savedGap struct {
	store.DetailGap
	Ref string `json:"ref"`
}

func (p *Plan) snapshot() planState {
	f := planState{Mode: p.mode, States: p.states, From: p.stateRuns}
	for _, g := range p.gaps {
		f.Gaps = append(f.Gaps, savedGap{g, g.Ref})
	}
	return f
}

// restore restores the plan from f.
func (p *Plan) restore(f planState) {
	p.mode, p.states, p.stateRuns = f.Mode, f.States, f.From
	gaps := make([]store.DetailGap, 0, len(f.Gaps))
	for _, g := range f.Gaps {
		g.DetailGap.Ref = g.Ref
		gaps = append(gaps, g.DetailGap)
	}
	_ = p.serveGaps(gaps) // they were encoded before
}
