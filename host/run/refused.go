package run

import (
	"context"
	"fmt"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// RecordRefusal keeps a scheduled start that was refused as a run of one event,
// run.failed with launch_failed and the code of refused, and returns its
// row. What with returns is written in the same commit as the row. The manifest
// of in may be nil; its secrets are not used. The error is a *Refusal with run_already_active
// when the connection is being collected: then nothing was recorded.
func RecordRefusal(ctx context.Context, st store.Store, in Input, hostID, bootEpoch string, refused *Refusal, with func(store.Run) []store.Write) (store.Run, error) {
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
	r.outcome.latch(&cause{reason: "launch_failed", origin: "runtime", code: refused.Code, message: abi.Cut(refused.Message, 500)})
	r.finish()
	if lost := r.terminal.failure(); lost != nil {
		return store.Run{}, fmt.Errorf("record refused start: %w", lost)
	}
	return r.rec, nil
}
