package run

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/store"
)

// Faults makes the checks of Prepare that need no secret and no state, all of
// them and not only up to the first that fails, and returns what each says. Of
// Input.Secrets and Input.Tokens it looks at which are there.
func Faults(ctx context.Context, st store.Store, in Input) []*Refusal {
	p := &Plan{Input: in, manifest: in.Manifest}
	var out []*Refusal
	for _, check := range []func(context.Context, store.Store) error{p.checkGrant, p.checkScope, p.checkBindings, p.checkSettings, p.checkSecrets} {
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
