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

// An Input is a start that was asked for, with everything resolved that does
// not depend on the run protocol: connection, connector and module.
type Input struct {
	Connector  store.Connector
	Connection store.Connection
	Manifest   *abi.Manifest // the active manifest
	Transport  string        // abi or stdio
	UsesABI    bool          // the module imports a sluice_v1* function

	Mode  string          // full_refresh, incremental or "" for the default
	Scope json.RawMessage // explicit scope; nil for none
	// Narrow says that stored records may lose fields that Scope leaves out.
	Narrow bool
	// State replaces the stored cursors when it is not nil; ResetState ignores
	// them; NoPersist neither hands any over nor commits any.
	State      json.RawMessage
	ResetState bool
	NoPersist  bool
	// StateFrom makes the run a branch: the runs that committed the cursors of
	// State, by stream. They are handed over also when none is committed. nil
	// is no branch.
	StateFrom map[string]store.RunID

	Secrets     map[string]string // by declared name
	Tokens      map[string]Token  // of the secrets that the host obtains itself
	Interactive bool              // an owner channel is attached
	Kinds       binding.Kinds     // of bindings that hosts know
	Absent      map[string]string // by name, those that this host has none of to lend, and why
	Supplied    map[string]bool   // by name, those that come with the run and need no approval

	Trigger        string // manual, scheduled, retry or webhook
	AutomationMode string
	Attempt        int
	RetryOf        store.RunID
	Request        store.Request // kept with the run, for the API to give back

	Limits  abi.Limits
	Budgets Budgets
	Files   FileQuotas
}

// A Plan is a start that passed every check but the lock
// (docs/spec/runs.md, "Checks before a start").
type Plan struct {
	Input
	manifest  *abi.Manifest
	scope     abi.Scope
	explicit  bool
	mode      string
	grant     store.GrantID
	persist   bool
	states    map[string]json.RawMessage
	from      map[string]store.RunID // whose they are; nil when a caller supplied them
	gaps      []store.DetailGap
	served    []abi.ServedGap
	lent      abi.Bindings
	config    json.RawMessage
	delivered deliveredSecrets
}

// Prepare makes the checks before a start from the grant on, in order. The error is a
// *Refusal. Checks 1, 2 and 4 are the caller's: they decide what Input holds.
func Prepare(ctx context.Context, st store.Store, in Input) (*Plan, error) {
	p := &Plan{Input: in, manifest: in.Manifest}
	for _, check := range []func(context.Context, store.Store) error{
		p.checkGrant, p.checkMode, p.checkScope, p.checkState, p.checkBindings, p.checkSettings, p.checkSecrets, p.checkLosses, p.loadGaps,
	} {
		if err := check(ctx, st); err != nil {
			return nil, asRefusal(err)
		}
	}
	return p, nil
}

func asRefusal(err error) error {
	var r *Refusal
	var told *host.Refusal
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &told):
		return &Refusal{Code: told.Code, Message: told.Message, Details: told.Details}
	}
	return &Refusal{Code: "runtime_error", Message: err.Error(), Err: err}
}

// checkGrant refuses a grant that is not usable. One for a single use keeps no state.
func (p *Plan) checkGrant(context.Context, store.Store) error {
	g := p.Connection.Grant
	p.persist = !p.NoPersist
	if g == nil {
		return nil
	}
	p.grant = g.ID
	if code := g.Fault(time.Now()); code != "" {
		return refuse(code, "the grant of connection %s is %s; sluice grant %s gives a new one", p.Connection.ID, code[len("grant_"):], p.Manifest.Name()).
			with("connection_id", p.Connection.ID)
	}
	if g.AccessMode == "single_use" {
		p.persist = false
	}
	return nil
}

func (p *Plan) checkMode(context.Context, store.Store) error {
	if p.Mode != "" && p.Mode != abi.FullRefresh && p.Mode != abi.Incremental {
		return refuse("collection_mode_invalid", "collection mode %q: want %s or %s", abi.Clean(p.Mode), abi.FullRefresh, abi.Incremental)
	}
	return nil
}

// checkScope narrows what the manifest declares to what was asked for and granted.
func (p *Plan) checkScope(context.Context, store.Store) error {
	var granted json.RawMessage
	if p.Connection.Grant != nil {
		granted = p.Connection.Grant.Scope
	}
	s, err := scope.Normalise(scope.Request{Manifest: p.manifest, Explicit: p.Scope, Grant: granted, Since: p.Connection.CollectionSince})
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

// checkState chooses the cursors that are handed over, and the mode that follows from them.
func (p *Plan) checkState(ctx context.Context, st store.Store) error {
	p.states, p.from = map[string]json.RawMessage{}, map[string]store.RunID{}
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
			p.states[string(s.Stream)], p.from[string(s.Stream)] = s.Cursor, s.RunID
		}
	}
	if len(p.State) > 0 {
		p.from = p.StateFrom
	}
	if !p.persist && p.StateFrom == nil {
		p.states, p.from = nil, nil
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
			return refuse("start_state_invalid", "state: %q is no stream of the connector; %s", abi.Cut(abi.Clean(name), 128), abi.Suggest(name, scope.StreamNames(p.manifest)))
		}
		if !c.Absent() && !c.Is(strictjson.KindObject) {
			return refuse("start_state_invalid", "%s; the cursor of %q is not", want, abi.Cut(abi.Clean(name), 128))
		}
		p.states[name] = strictjson.AppendCompact(nil, c.Raw)
	}
	return nil
}

// checkBindings refuses a start without a required binding, and says what is lent.
func (p *Plan) checkBindings(context.Context, store.Store) error {
	for _, name := range sortedKeys(p.manifest.Bindings) {
		if p.manifest.Bindings[name].Required {
			if err := p.requireBinding(name); err != nil {
				return err
			}
		}
	}
	p.lent = abi.Bindings{}
	for _, k := range p.Kinds {
		if _, absent := p.Absent[k.Name()]; absent {
			continue
		}
		if err := k.Lend(p.manifest, p.Connection, &p.lent); err != nil {
			return err
		}
	}
	if p.Interactive {
		p.lent.Interactive = &struct{}{}
	}
	return nil
}

// requireBinding refuses a start without a binding that its owner has not approved, or
// that this host does not have.
func (p *Plan) requireBinding(name string) error {
	if name == abi.BindingInteractive {
		if p.Interactive {
			return nil
		}
		return refuse("binding_unsatisfied", "the connector must be able to ask somebody, and nobody is there: run it on a terminal without --no-interactive, or give --answer").with("binding", name)
	}
	k, known := p.Kinds.Of(name)
	if !known {
		return refuse("binding_unsatisfied", "this host does not provide the binding %s that the connector requires", name).with("binding", name)
	}
	if why, absent := p.Absent[name]; absent {
		return refuse("binding_unsatisfied", "the connector needs a %s, and this host has none: %s", name, why).with("binding", name)
	}
	if p.Supplied[name] {
		return nil
	}
	for _, a := range k.Asks(p.manifest, p.Connection.Approved) {
		if a.Lacks != "" {
			return refuse("binding_not_approved", "binding %s: %s is not approved for connection %s", name, a.Lacks, p.Connection.ID).with("binding", name)
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

// checkSecrets refuses a start without a required secret, or with one that the connector
// would see without its owner's consent.
func (p *Plan) checkSecrets(context.Context, store.Store) error {
	for _, f := range SecretFields(p.manifest) {
		_, ok := p.Secrets[f.Name]
		if ok && !Sealed(p.manifest, f) && !slices.Contains(p.Connection.Approved.Plain, f.Name) {
			return refuse("binding_not_approved", "%s would see the secret %s itself; agree to that with --plain %s, for this run or with sluice grant", p.manifest.Name(), f.Name, f.Name).with("secret", f.Name)
		}
		if f.OAuth != nil {
			if err := p.checkToken(f); err != nil {
				return err
			}
			continue
		}
		if f.Required && !ok {
			return refuse("secret_missing", "secret %s is required; store it with sluice secret set %s %s, or give it with --secret %s=@FILE", f.Name, p.Connection.ID, f.Name, f.Name).with("secret", f.Name)
		}
	}
	return nil
}

// loadGaps reads the namespace's detail gaps and chooses those to serve.
func (p *Plan) loadGaps(ctx context.Context, st store.Store) error {
	gaps, err := st.Gaps(ctx, p.Connection.ID, p.grant, "")
	if err != nil {
		return fmt.Errorf("load detail gaps of %s: %w", p.Connection.ID, err)
	}
	return p.serveGaps(gaps)
}

// serveGaps chooses those that START tells.
func (p *Plan) serveGaps(gaps []store.DetailGap) error {
	const maxServed = 256 * abi.KiB
	p.gaps, p.served = gaps, []abi.ServedGap{}
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
		p.served = append(p.served, s)
	}
	return nil
}

func (p *Plan) inScope(stream string) bool {
	return slices.ContainsFunc(p.scope.Streams, func(s abi.ScopeStream) bool { return s.Name == stream })
}

// Given is the part of START that is known before the run: neither its id nor
// secrets.
func (p *Plan) Given() abi.Start {
	s := abi.Start{
		ConnectionID: string(p.Connection.ID), ConnectorID: string(p.Connector.ID),
		CollectionMode: p.mode, Scope: p.scope, Bindings: p.lent, DetailGaps: p.served, Config: p.config,
	}
	if len(p.states) > 0 {
		s.State = p.states
	}
	return s
}

// start builds the START envelope. It holds no token, host path or address.
func (p *Plan) start(runID store.RunID) ([]byte, error) {
	s := p.Given()
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
		return nil, refuse("start_too_large", "START would have %d bytes, the limit is %d; narrow the scope", len(b), p.Limits.StartBytes)
	}
	return b, nil
}

// intent is state_commit_intent.
func (p *Plan) intent() string {
	if p.persist {
		return intentOnSuccess
	}
	return intentNone
}

// grantFault is the end of a run whose grant has run out, nil while it is
// usable. What changes it meanwhile the store knows.
func (p *Plan) grantFault() *cause {
	code := p.Connection.Grant.Fault(time.Now())
	if code == "" {
		return nil
	}
	return &cause{reason: code, origin: "storage", message: "The grant of this connection is no longer usable."}
}

// A frozen plan is what one was made of that the run itself changes.
type frozen struct {
	Mode   string                     `json:"mode"`
	States map[string]json.RawMessage `json:"states,omitempty"`
	From   map[string]store.RunID     `json:"from,omitempty"`
	Gaps   []frozenGap                `json:"gaps,omitempty"`
}

type frozenGap struct {
	store.DetailGap
	Ref string `json:"ref"`
}

func (p *Plan) freeze() frozen {
	f := frozen{Mode: p.mode, States: p.states, From: p.from}
	for _, g := range p.gaps {
		f.Gaps = append(f.Gaps, frozenGap{g, g.Ref})
	}
	return f
}

// thaw makes the plan what it was.
func (p *Plan) thaw(f frozen) {
	p.mode, p.states, p.from = f.Mode, f.States, f.From
	gaps := make([]store.DetailGap, 0, len(f.Gaps))
	for _, g := range f.Gaps {
		g.DetailGap.Ref = g.Ref
		gaps = append(gaps, g.DetailGap)
	}
	_ = p.serveGaps(gaps) // they were encoded before
}
