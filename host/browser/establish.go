package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/fleet"
)

// establishment is the state of establishing a session at a site, which the owner may have to sign
// in to, with its watchdog. The session's mu guards it.
type establishment struct {
	s *Session
	// unsettled is true from the start of establishing a session until it is established.
	unsettled bool
	watchdog  *fleet.Watchdog      // while a session is being established
	pauses    map[string]time.Time // reasons why it is paused; zero: until resumed
}

// pause pauses the watchdog for a reason, or ends that pause. most bounds the pause unless it is 0.
// The caller holds mu.
func (e *establishment) pause(reason string, on bool, most time.Duration) {
	if !on {
		delete(e.pauses, reason)
		if e.watchdog != nil {
			e.watchdog.Resume(reason)
		}
		return
	}
	var until time.Time
	if most > 0 {
		until = time.Now().Add(most)
	}
	e.pauses[reason] = until
	if e.watchdog != nil {
		e.watchdog.Pause(reason, most)
	}
}

// guard starts the watchdog.
func (e *establishment) guard(trip func(silent time.Duration, last string)) *fleet.Watchdog {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.watchdog = fleet.NewWatchdog(e.s.host.o.Watchdog, trip)
	for reason, until := range e.pauses {
		left := time.Duration(0)
		if !until.IsZero() {
			if left = time.Until(until); left <= 0 {
				continue
			}
		}
		e.watchdog.Pause(reason, left)
	}
	return e.watchdog
}

// unguard stops the watchdog.
func (e *establishment) unguard() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.watchdog != nil {
		e.watchdog.Stop()
	}
	e.watchdog = nil
}

// Assisted reports open assistance, or with nil its end. While a connector says that it continues
// by itself, the watchdog is paused for at most the assistance's timeout plus its own limit.
func (s *Session) Assisted(id string, a *abi.AssistanceMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on := a != nil && a.ProgressPosture == abi.PostureRunning && a.ResponseObligation == abi.ObligationNone
	var most time.Duration
	if on && a.TimeoutSeconds != nil && *a.TimeoutSeconds > 0 && *a.TimeoutSeconds < 1e9 {
		most = time.Duration(*a.TimeoutSeconds*float64(time.Second)) + s.host.o.Watchdog
	}
	s.establishment.pause("assistance:"+id, on, most)
}

// flow returns the session flow that a request asks for.
func (e *establishment) flow(o *opened, r *engine.Request) fleet.Flow {
	want := r.Open.Session
	if want == nil || want.Expect == nil {
		return fleet.Flow{}
	}
	f := fleet.Flow{
		Message: cmp.Or(want.Message, e.s.name()+" session expired. Open the browser and sign in again, then continue."),
		Timeout: want.Owner,
		Mark: func(phase string) {
			e.checkpoint(phase)
			e.s.tracing.checkpointed(o, phase)
		},
		Probe: func(ctx context.Context) (bool, error) { return e.probeSession(ctx, o, want) },
		Login: func(ctx context.Context) {
			if want.LoginURL != "" {
				_, err := e.s.load(ctx, o, want.LoginURL)
				e.s.note("the page to sign in at was not loaded", err)
			}
		},
	}
	if e.s.o.Interactive {
		f.Ask = e.askOwner
	}
	return f
}

// probeSession loads the probe's address and checks its condition by the stabilisation routine,
// within its timeout. If the page cannot be loaded the session is not live.
func (e *establishment) probeSession(ctx context.Context, o *opened, want *engine.Session) (bool, error) {
	limit, stop := context.WithTimeout(ctx, want.Timeout)
	defer stop()
	if want.ProbeURL != "" {
		if _, err := e.s.load(limit, o, want.ProbeURL); err != nil {
			e.s.note("the page of the session's probe was not loaded", err)
		}
	}
	end, _ := limit.Deadline()
	left := time.Until(end)
	if left <= 0 || ctx.Err() != nil {
		return false, ctx.Err()
	}
	q := &engine.Request{
		Verb: engine.Expect, Expect: want.Expect, Verify: engine.DefaultSettings, Deadline: left,
		ExpectArgs: engine.ExpectArgs{Timeout: left},
	}
	result, refused := o.engine.Do(ctx, q)
	if refused != nil {
		return false, refused
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	reply, ok := result.(*engine.ExpectReply)
	return ok && reply.Success, nil
}

// askOwner asks the owner to sign in. Meanwhile the owner has the page and the run's clocks are
// stopped.
func (e *establishment) askOwner(ctx context.Context, message string, timeout time.Duration) (string, error) {
	<-e.s.page // released before the owner is asked
	defer func() { e.s.page <- struct{}{} }()
	e.s.mu.Lock()
	e.pause("ask", true, 0)
	e.s.mu.Unlock()
	defer func() {
		e.s.mu.Lock()
		e.pause("ask", false, 0)
		e.s.mu.Unlock()
	}()
	id, _, err := e.s.back.Ask(ctx, message, timeout)
	if errors.Is(err, binding.ErrNotInteractive) {
		return "", fleet.ErrNobody
	}
	if err != nil {
		return "", err
	}
	return id, e.untilReleased(ctx)
}

// leaseEnds is how long the owner's lease may outlast the question that it was for.
const leaseEnds = 30 * time.Second

// untilReleased waits for the end of the owner's lease.
func (e *establishment) untilReleased(ctx context.Context) error {
	for end := time.Now().Add(leaseEnds); e.s.owner.Load() && time.Now().Before(end); {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (e *establishment) checkpoint(phase string) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	if e.watchdog != nil {
		e.watchdog.Mark(phase)
	}
}

// unestablished ends the collection if there is no session. It returns err.
func (e *establishment) unestablished(err error) error {
	var r *engine.Refusal
	if errors.As(err, &r) && r.Code == "session_not_live" {
		e.s.back.End(binding.Failure{Code: r.Code, Message: e.s.name() + ": " + r.Message, Hint: "manual_action_required"})
	}
	return err
}

// tripped ends the collection because no checkpoint arrived in time.
func (e *establishment) tripped(silent time.Duration, last string) error {
	name := cmp.Or(e.s.o.Connector, e.s.o.Connection)
	message := fmt.Sprintf("%s_session_establish_timeout: no checkpoint for %d ms; the last one was %s", name,
		silent.Milliseconds(), last)
	e.s.back.End(binding.Failure{Code: "session_establish_timeout", Message: message,
		Retryable: !e.s.seals.submitted.Load()})
	return refuse(engine.Open, "surface_not_open", "the session was not established in time")
}

// settled records whether the session that the run needs is established.
func (e *establishment) settled(is bool) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.unsettled = !is
}
