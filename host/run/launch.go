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
	err := r.meanwhile(prepare, func(ctx context.Context) (err error) {
		guest, r.files, err = r.deps.Launch(ctx, Launch{
			RunID: r.id, Name: r.plan.manifest.Name(), Env: r.plan.environment(), Stdio: r.plan.Transport == "stdio",
		})
		return err
	})
	if err != nil {
		if r.cancel == nil {
			r.latch(r.launchCause(err, prepare.Err()))
		}
		return false
	}
	if !r.ready() {
		discard(guest)
		return false
	}
	r.guest = guest
	r.control.runs(guest)
	r.commitStart()
	if r.ready() {
		if err := guest.Go(); err != nil {
			r.latch(hostFault("start guest", err))
		}
	}
	if !r.ready() {
		guest.Kill()
	}
	if r.plan.Transport == "stdio" {
		r.proto.Step(abi.StepStart)
		r.stdio.feed(append(r.start, '\n'), "start")
		r.start = nil
	}
	return true
}

// ready reports whether nothing has ended the run so far.
func (r *run) ready() bool { return r.latched == nil && r.cancel == nil }

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
			if r.latched == nil {
				r.renew(now)
			}
		}
		if !r.ready() {
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
	r.exit = ptr(r.guest.Exit())
	r.listen()
	r.clocks.resume(time.Now())
	held := r.hold.calls
	r.paused, r.hold = nil, hold{}
	for _, in := range held { // what it sent before it was gone
		r.call(in)
	}
}
