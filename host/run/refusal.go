package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// A Refusal says why a run was not started. Code is one of those in docs/spec/runs.md, "Checks before a start".
// No guest ran.
type Refusal struct {
	Code    string
	Message string
	Details map[string]any
	Err     error
}

func (e *Refusal) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }
func (e *Refusal) Unwrap() error { return e.Err }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Refusal) with(key string, value any) *Refusal {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// A LaunchError is a failure between acceptance and run.started.
type LaunchError struct {
	Code string // failure_code: module_invalid, isolation_unavailable, …
	Err  error
}

func (e *LaunchError) Error() string { return e.Code + ": " + e.Err.Error() }
func (e *LaunchError) Unwrap() error { return e.Err }

// RecordRefusal records a refused start of a schedule as a run with one event, run.failed with launch_failed and
// the code of refused, and returns its row. What with returns is written in the same commit. The manifest of in
// may be nil; its secrets are not used. The error is a *Refusal with run_already_active if the connection has an
// active run, and nothing was recorded then.
func RecordRefusal(ctx context.Context, st store.Store, in Input, hostID, bootEpoch string, refused *Refusal,
	with func(store.Run) []store.Write) (store.Run, error) {
	in.Secrets, in.Tokens = nil, nil
	if in.Manifest == nil {
		in.Manifest = &abi.Manifest{}
	}
	p := &Plan{Input: in, manifest: in.Manifest, persist: !in.NoPersist}
	if g := in.Connection.Grant; g != nil {
		p.grant = g.ID
	}
	r := New(p, Deps{Store: st, HostID: hostID, BootEpoch: bootEpoch}).r
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	defer r.stop()
	if err := r.acquire(ctx, with); err != nil {
		return store.Run{}, err
	}
	r.outcome.latch(&cause{reason: "launch_failed", origin: "runtime", code: refused.Code,
		message: abi.Cut(refused.Message, 500)})
	r.finish()
	if lost := r.terminal.failure(); lost != nil {
		return store.Run{}, fmt.Errorf("record refused start: %w", lost)
	}
	return r.rec, nil
}

// Faults makes all checks of Prepare that need no secrets and no state, and returns every refusal. Of
// Input.Secrets and Input.Tokens it uses only the names.
func Faults(ctx context.Context, st store.Store, in Input) []*Refusal {
	p := &Plan{Input: in, manifest: in.Manifest}
	var out []*Refusal
	for _, check := range []func(context.Context,
		store.Store) error{p.checkGrant, p.checkScope, p.checkBindings, p.checkSettings, p.checkSecrets} {
		err := check(ctx, st)
		if err == nil {
			continue
		}
		if r := (*Refusal)(nil); errors.As(asRefusal(err), &r) {
			out = append(out, r)
		}
	}
	return out
}
