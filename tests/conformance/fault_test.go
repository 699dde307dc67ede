package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// brokenStore refuses batches with an error of its own, and everything submitted after
// them, as a store does.
type brokenStore struct {
	store.Store
	refuse error
	failed bool
	fence  bool // the lease is lost at the first renewal
}

func (s *brokenStore) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	if s.refuse != nil && !c.End && (s.failed || len(c.Batches) > 0) {
		s.failed = true
		receipt, settle := store.NewReceipt()
		settle(store.Ack{}, s.refuse)
		return receipt, nil
	}
	return s.Store.Submit(ctx, c)
}

func (s *brokenStore) Renew(ctx context.Context, l store.Lease, ttl time.Duration) (store.Lease, error) {
	if s.fence {
		return l, store.ErrFenced
	}
	return s.Store.Renew(ctx, l, ttl)
}

func faultStage(t *testing.T) *stage {
	t.Helper()
	st, err := badger.OpenURL("memory:?memory=small", badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	g := &stage{connection: "fault", scenario: &scenario{name: "fault"}}
	g.host = shared.host.Over(st)
	return g
}

var (
	aRecord  = emit(0, "a", `{"id":"a"}`, false)
	aState   = say(abi.CallCheckpoint, `{"stream":"items","cursor":{"page":1}}`)
	doneOne  = say(abi.CallDone, `{"status":"succeeded","records_emitted":1}`)
	doneNone = say(abi.CallDone, `{"status":"succeeded","records_emitted":0}`)
)

// Ends that only a broken worker or host causes: their reason, origin, and the exit
// code of the command line.
func TestFaults(t *testing.T) {
	sink := func(code string) error { return &store.SinkError{Code: code, Err: errors.New("refused")} }
	killed := func(k sandbox.ExitKind) sandbox.Exit { return sandbox.Exit{Kind: k, Detail: "gone"} }
	for _, c := range []struct {
		name   string
		script []fakeCall
		exit   sandbox.Exit
		store  error
		launch error
		want   string
	}{
		{"memory", started(aRecord, aState), killed(sandbox.ExitMemory), nil, nil, "memory_limit_exceeded connector 4"},
		{"cpu", started(aRecord), killed(sandbox.ExitCPU), nil, nil, "run_timed_out runtime compute 4"},
		{"crashed", started(aRecord), killed(sandbox.ExitCrashed), nil, nil, "worker_lost runtime worker_crashed 6"},
		{"jail", started(), killed(sandbox.ExitViolation), nil, nil, "worker_lost runtime jail_violation 6"},
		{"nonsense", started(aState), killed(sandbox.ExitProtocol), nil, nil, "worker_protocol_error runtime 6"},
		{"memory after DONE", started(doneNone), killed(sandbox.ExitMemory), nil, nil, "memory_limit_exceeded connector 4"},
		{"malformed fault", started(fakeCall{abi.CallFault, []byte("?")}), exited(0), nil, nil,
			"worker_protocol_error runtime 6"},

		{"storage", started(aRecord, aState), exited(0), errors.New("disk on fire"), nil, "ingest_storage_error storage 6"},
		{"no space", started(aRecord, doneOne), exited(0), store.ErrNoSpace, nil, "ingest_storage_error storage 6"},
		{"permission", started(aRecord, aState), exited(0), sink("permission_error"), nil, "permission_error storage 6"},
		{"throttled", started(aRecord, aState), exited(0), sink("rate_limit_error"), nil, "rate_limit_error storage 6"},
		{"grant", started(aRecord, aState), exited(0), sink("grant_revoked"), nil, "grant_revoked storage 4"},

		{"module", nil, exited(0), nil, &run.LaunchError{Code: "module_invalid", Err: errors.New("no")},
			"launch_failed runtime module_invalid 6"},
		{"resources", nil, exited(0), nil, errors.New("fork failed"), "launch_failed runtime host_resources 6"},

		{"call before START", []fakeCall{say(abi.CallProgress, `{"message":"early"}`)}, exited(0), nil, nil,
			"connector_protocol_violation runtime abi_fault 3"},
		{"second START", started(fakeCall{call: abi.CallStart}), exited(0), nil, nil,
			"connector_protocol_violation runtime abi_fault 3"},
		{"stdout of another kind", started(fakeCall{abi.CallDiag, []byte("\x01log text")}), exited(0), nil, nil,
			"connector_exit_without_done connector 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := faultStage(t)
			p := g.perform(t, newFakeGuest(c.script, c.exit), c.launch, func(in *run.Input, d *run.Deps) {
				d.Store = &brokenStore{Store: d.Store, refuse: c.store}
			})
			g.invariants(t, p)
			r := p.result
			got := []string{*r.TerminalReason, r.Failure.Origin}
			for _, more := range []string{r.Failure.Subtype, r.Deadline} {
				if more != "" {
					got = append(got, more)
				}
			}
			if text := fmt.Sprintf("%s %d", strings.Join(got, " "), resultCode(r)); text != c.want {
				t.Errorf("%s, want %s", text, c.want)
			}
			if r.CheckpointSummary.StateStreamsCommitted > 0 {
				t.Error("a cursor was committed")
			}
		})
	}
}

// A run that never reached START has a log that holds only its end.
func TestLaunchFailedLog(t *testing.T) {
	g := faultStage(t)
	p := g.perform(t, newFakeGuest(nil, exited(0)), errors.New("no process"), nil)
	if len(p.events) != 1 || p.events[0].Type != "run.failed" {
		t.Errorf("events %v", p.events)
	}
	if p.result.CollectionFacts != nil || p.result.ExitCode != nil {
		t.Errorf("result %+v", p.result)
	}
}

// A run that is not ready within its budget for preparation fails with that reason,
// whatever error the sandbox returns.
func TestPrepareTimeout(t *testing.T) {
	g := faultStage(t)
	p := g.perform(t, newFakeGuest(nil, exited(0)), nil, func(in *run.Input, d *run.Deps) {
		in.Budgets.Prepare = time.Millisecond
		d.Launch = func(ctx context.Context, _ run.Launch) (run.Guest, binding.Binding, error) {
			<-ctx.Done()
			return nil, nil, &run.LaunchError{Code: "host_resources", Err: ctx.Err()}
		}
	})
	if f := p.result.Failure; f.Reason != "launch_failed" || f.Subtype != "prepare_timeout" ||
		!strings.Contains(f.Message, "prepare budget of 1ms") {
		t.Errorf("failure %+v", f)
	}
}

// The records of a failed flush count as dropped and unresolved, and the STATE behind
// them is not staged.
func TestFailedFlush(t *testing.T) {
	g := faultStage(t)
	p := g.perform(t, newFakeGuest(started(aRecord, aState, doneOne), exited(0)), nil, func(_ *run.Input, d *run.Deps) {
		d.Store = &brokenStore{Store: d.Store, refuse: errors.New("disk on fire")}
	})
	r := p.result
	c := r.CheckpointSummary
	if r.RecordsEmitted != 1 || r.RecordsAttempted != 1 || r.RecordsAccepted != 0 || r.RecordsUnresolvedRetryable != 1 ||
		c.BufferedRecordsDropped != 1 {
		t.Errorf("counts of %+v", r)
	}
	if c.StateStreamsStaged != 0 || c.CommitStatus != "not_committed" {
		t.Errorf("checkpoints %+v", c)
	}
	last := string(p.events[len(p.events)-1].Data)
	if want := `"ingest_failure":{"stream":"items","batch_size":1,"phase":"running"}`; !strings.Contains(last, want) {
		t.Errorf("no %s in %s", want, last)
	}
}

// An emit has no reply that could tell a guest of a cancel, so the guest is told
// separately.
func TestCancelEndsEmits(t *testing.T) {
	g := faultStage(t)
	var current *run.Run
	g.starting = func(r *run.Run) { current = r }
	sleep := fakeCall{abi.CallSleep, []byte{0, 0, 0, 0, 0, 0, 0, 1}}
	guest := &emitter{fakeGuest: newFakeGuest(started(aRecord, say(abi.CallProgress, `{"message":"on the way"}`), sleep),
		exited(0))}
	p := g.perform(t, guest, nil, func(in *run.Input, d *run.Deps) {
		in.Budgets.CancelGrace = time.Millisecond
		d.Watch = func(e store.Event) {
			if e.Type == "run.progress_reported" {
				current.Cancel(run.CancelRequest{Cause: "owner"})
			}
		}
	})
	if p.result.Status != abi.Cancelled || guest.ended != abi.ECANCELED {
		t.Errorf("status %s, emits end with %v", p.result.Status, guest.ended)
	}
}

// An emitter is a fake guest that records how its emits end.
type emitter struct {
	*fakeGuest
	ended abi.Errno
}

func (g *emitter) EndEmit(e abi.Errno) error {
	g.ended = e
	return nil
}

// A store that refuses a run for good is not asked again. Where it may have refused the run's cursors alone, it is asked
// once more without them.
func TestRefusedForGood(t *testing.T) {
	for refusal, most := range map[error]int{store.ErrStopped: 1, store.ErrReadOnly: 1, store.ErrNotFound: 2} {
		t.Run(refusal.Error(), func(t *testing.T) {
			t.Parallel()
			g := faultStage(t)
			st := &stoppedStore{Store: g.host.Store, refusal: fmt.Errorf("commit: %w", refusal)}
			guest := newFakeGuest(started(aRecord, aState, doneOne), exited(0))
			p := g.perform(t, guest, nil, func(_ *run.Input, d *run.Deps) { d.Store = st })
			if st.ends != most || p.result.Status != abi.Failed || p.result.Failure.Origin != "storage" {
				t.Errorf("the end was submitted %d times, and the run %s: %+v", st.ends, p.result.Status, p.result.Failure)
			}
		})
	}
}

// A stoppedStore refuses the end of a run.
type stoppedStore struct {
	store.Store
	refusal error
	ends    int
}

func (s *stoppedStore) Submit(ctx context.Context, c *store.Commit) (*store.Receipt, error) {
	if !c.End {
		return s.Store.Submit(ctx, c)
	}
	s.ends++
	return nil, s.refusal
}

// A run that lost its lease stops its guest and writes nothing more.
func TestLostLease(t *testing.T) {
	g := faultStage(t)
	sleep := fakeCall{abi.CallSleep, []byte{0, 0, 0, 0, 0, 0, 0, 1}}
	p := g.perform(t, newFakeGuest(started(aRecord, sleep), exited(0)), nil, func(_ *run.Input, d *run.Deps) {
		d.Store = &brokenStore{Store: d.Store, fence: true}
		d.LeaseTTL, d.LeaseRenew = time.Minute, time.Millisecond
	})
	if p.result.Status != abi.Failed || p.result.RecordsAccepted != 0 {
		t.Errorf("result %+v", p.result)
	}
}

// A start that loses the race for its connection is refused with the winner's
// id, and leaves nothing.
func TestLockRace(t *testing.T) {
	g := faultStage(t)
	ctx := context.Background()
	other := store.Run{ID: run.NewRunID(time.Now()), ConnectionID: g.connection, Status: "active", StartedAt: time.Now()}
	if _, err := g.host.Store.Acquire(ctx, other, "host", "boot", time.Minute); err != nil {
		t.Fatal(err)
	}
	plan, err := run.Prepare(ctx, g.host.Store, run.Input{
		Connection: store.Connection{ID: g.connection}, Manifest: itemsManifest(t), Transport: "abi",
		Kinds: app.Kinds, Limits: abi.DefaultLimits(), Budgets: run.DefaultBudgets(),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = run.New(plan, run.Deps{Store: g.host.Store}).Do(ctx)
	var refused *run.Refusal
	if !errors.As(err, &refused) || refused.Code != "run_already_active" || refused.Details["activeRunId"] != other.ID {
		t.Errorf("error %v", err)
	}
}

func itemsManifest(t *testing.T) *abi.Manifest {
	t.Helper()
	raw, err := (&scenario{}).manifest()
	if err != nil {
		t.Fatal(err)
	}
	m, err := abi.ReadManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The sink checks the grant again when a run succeeds, even if nothing else is
// committed: another run may have used it up, or the owner revoked it, since this run
// was planned.
func TestGrantGoneAtTheEnd(t *testing.T) {
	for _, mode := range []string{"single_use", "continuous"} {
		for status, script := range map[string][]fakeCall{
			"consumed": started(doneNone), "revoked": started(doneNone), "expired": started(aState, doneNone),
		} {
			t.Run(mode+" "+status, func(t *testing.T) {
				g := faultStage(t)
				guest := newFakeGuest(script, exited(0))
				p := g.perform(t, guest, nil, func(in *run.Input, d *run.Deps) {
					in.Connection.Grant = &store.Grant{AccessMode: mode, Status: "active"}
					st, conn := d.Store, in.Connection
					d.Launch = func(ctx context.Context, _ run.Launch) (run.Guest, binding.Binding, error) {
						conn.Grant = &store.Grant{AccessMode: mode, Status: status}
						return guest, nil, st.PutConnection(ctx, conn)
					}
				})
				g.invariants(t, p)
				if p.result.Status != abi.Failed || *p.result.TerminalReason != "grant_"+status {
					t.Errorf("the run %s: %v", p.result.Status, *p.result.TerminalReason)
				}
				c, err := g.host.Store.Connection(t.Context(), "fault")
				if err != nil || c.Grant.Status != status {
					t.Errorf("the grant is %s, %v", c.Grant.Status, err)
				}
			})
		}
	}
}

// A grant that expires while a run waits ends the run then, not when it next stores
// something.
func TestGrantRunsOut(t *testing.T) {
	t.Parallel()
	g := faultStage(t)
	sleep := fakeCall{abi.CallSleep, []byte{0, 0, 0, 0, 0, 0, 0, 1}}
	p := g.perform(t, newFakeGuest(started(sleep), exited(0)), nil, func(in *run.Input, d *run.Deps) {
		until := time.Now().Add(3 * time.Second) // the run begins in less
		in.Connection.Grant = &store.Grant{AccessMode: "continuous", Status: "active", ExpiresAt: &until}
	})
	g.invariants(t, p)
	if p.result.Status != abi.Failed || *p.result.TerminalReason != "grant_expired" {
		t.Errorf("the run %s: %v", p.result.Status, *p.result.TerminalReason)
	}
}
