package app

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
)

// invalid refuses a request because of one member.
func invalid(path, rule, format string, args ...any) *host.Refusal {
	return host.Invalid(path, rule, format, args...)
}

// notFound wraps store.ErrNotFound with the kind of thing. The unknown id is not echoed.
func notFound(what string) error { return fmt.Errorf("%s: %w", what, store.ErrNotFound) }

// asRefusal converts an error to the *host.Refusal that a caller sees. An error of the host itself is returned
// unchanged, as is store.ErrNotFound.
func asRefusal(err error) error {
	var told *host.Refusal
	var refused *run.Refusal
	var active *store.ActiveError
	switch {
	case err == nil || errors.Is(err, store.ErrNotFound):
		return err
	case errors.As(err, &told):
		return told
	case errors.As(err, &refused) && refused.Code != "runtime_error":
		return &host.Refusal{Code: refused.Code, Message: refused.Message, Details: refused.Details}
	case errors.As(err, &active):
		return host.Refuse("run_already_active",
			"a run of this connection is active; it ends first, or is cancelled").With("activeRunId", string(active.RunID))
	case errors.Is(err, store.ErrNoSpace):
		return host.Refuse("store_no_space", "there is not enough free disk space")
	case errors.Is(err, store.ErrReadOnly):
		return host.Refuse("store_corrupt",
			"the store was found damaged and accepts no changes; restore a backup, or go on from what is left with sluice doctor --accept-loss")
	}
	return err
}

func prepareRefusal(err error) error {
	var f *sandbox.Failure
	if errors.As(err, &f) {
		return refusal(f.Code, err)
	}
	return refusal("connector_not_runnable", err)
}

func refusal(code string, err error) *run.Refusal {
	return &run.Refusal{Code: code, Message: err.Error(), Err: err}
}

func moduleRefusal(err error) error {
	var m *sandbox.ModuleError
	if errors.As(err, &m) {
		return &run.Refusal{Code: m.Code(), Message: m.Error(), Details: moduleDetails(m), Err: err}
	}
	return refusal(sandbox.CodeModuleInvalid, err)
}

// moduleDetails returns the rule by which a module was refused, and the import that it attempted.
func moduleDetails(m *sandbox.ModuleError) map[string]any {
	d := map[string]any{"rule": m.Rule, "offset": m.Offset}
	if m.EscapeAttempt() {
		d["import"], d["escapeKind"] = abi.Cut(abi.Clean(m.Import), 200), m.EscapeKind()
	}
	return d
}

func manifestRefusal(err error) error {
	var m *abi.ManifestError
	if errors.As(err, &m) {
		return &run.Refusal{Code: "connector_invalid", Message: m.Error(),
			Details: map[string]any{"rule": m.Rule, "member": m.Path}, Err: err}
	}
	return refusal("connector_invalid", err)
}
