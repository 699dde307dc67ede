package run

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// launch brings the guest to its start line and makes run.started durable
// before it may cross it. It reports whether there is a guest to run.
func (r *run) launch(ctx context.Context) bool {
	prepare, cancel := context.WithTimeout(ctx, orForever(r.plan.Budgets.Prepare))
	defer cancel()
	var guest Guest
	var files Files
	err := r.meanwhile(prepare, func(ctx context.Context) (err error) {
		guest, files, err = r.deps.Launch(ctx, Launch{
			RunID: r.id, Name: r.plan.manifest.Name(), Env: r.plan.environment(), Stdio: r.plan.Transport == "stdio",
		})
		return err
	})
	r.calls.opened(files)
	if err != nil {
		if !r.outcome.cancelled() {
			r.outcome.latch(r.outcome.launchCause(err, prepare.Err()))
		}
		return false
	}
	if !r.outcome.ready() {
		discard(guest)
		return false
	}
	r.guest = guest
	r.control.runs(guest)
	r.commitStart()
	if r.outcome.ready() {
		if err := guest.Go(); err != nil {
			r.outcome.latch(hostFault("start guest", err))
		}
	}
	if !r.outcome.ready() {
		guest.Kill()
	}
	if r.plan.Transport == "stdio" {
		r.proto.Step(abi.StepStart)
		r.calls.started()
	}
	return true
}

// meanwhile does what may take long before there is a guest: the lease is
// renewed, and a request to end the run ends f's context. It returns when f has.
func (r *run) meanwhile(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case c := <-r.cancels:
			r.cancelRequested(c)
		case <-r.interrupted:
			r.interrupt()
		case now := <-r.ticks:
			if !r.outcome.over() {
				r.lease.renew(now)
			}
		}
		if !r.outcome.ready() {
			cancel()
		}
	}
}

// discard ends a guest that never ran.
func discard(g Guest) {
	g.Kill()
	for in := range g.Calls() {
		in.Release()
	}
}

// left is the end of the worker.
func (r *run) left() {
	r.outcome.exited(r.guest.Exit())
	r.browser.listen()
	r.clocks.resume(time.Now())
	r.pause.end()
	r.calls.last()
}
