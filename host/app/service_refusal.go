package app

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// invalid refuses a request for one member.
func invalid(path, rule, format string, args ...any) *host.Refusal {
	return host.Invalid(path, rule, format, args...)
}

// notFound is store.ErrNotFound about a thing, which is not named: ids that
// nobody has are not echoed (A45).
func notFound(what string) error { return fmt.Errorf("%s: %w", what, store.ErrNotFound) }

// asked turns what the host says of a command into what control promises to who
// asked. Failures stay what they are.
func asked(err error) error {
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
		return host.Refuse("run_already_active", "a run of this connection is active; it ends first, or is cancelled").With("activeRunId", string(active.RunID))
	case errors.Is(err, store.ErrNoSpace):
		return host.Refuse("store_no_space", "there is not enough free disk space")
	case errors.Is(err, store.ErrReadOnly):
		return host.Refuse("store_corrupt", "the store was found damaged and accepts no changes; restore a backup, or go on from what is left with sluice doctor --accept-loss")
	}
	return err
}
