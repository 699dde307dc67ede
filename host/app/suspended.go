package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/controller"
	"github.com/sluicehost/sluice/host/interaction"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/store"
)

// suspendedRuns holds the runs that outlive their host and that nobody performs: their host was stopped or killed, or
// they have waited for long. A run that waits for its owner only keeps its question at the broker. An answer, a
// cancellation or the end of its time resumes it from its journal. Any other run is resumed at once.
type suspendedRuns struct {
	runs *runs
	ctx  context.Context // ends with the service
	stop context.CancelFunc
	wait sync.WaitGroup

	mu     sync.Mutex // guards what follows
	closed bool
	all    map[store.RunID]*suspendedRun
	handed map[store.RunID]bool // runs that another host is asked to take
	tries  map[store.RunID]int  // failed resumptions since the run last made progress
}

// A suspendedRun is a run in suspendedRuns.
type suspendedRun struct {
	lease  store.Lease
	before *uint64                // Withdrawals of its connection when it was read; nil until then
	cancel chan run.CancelRequest // capacity 1
	ctx    context.Context        // ends when this host gives the run up
	stop   context.CancelFunc
	gone   chan struct{} // closed when its goroutine has ended
	// withdraw withdraws its question, for a cancellation; nil unless it is asked. The mutex of suspendedRuns guards it.
	withdraw context.CancelFunc
}

func newSuspendedRuns(rs *runs) *suspendedRuns {
	ctx, stop := context.WithCancel(context.Background())
	return &suspendedRuns{runs: rs, ctx: ctx, stop: stop, all: map[store.RunID]*suspendedRun{},
		handed: map[store.RunID]bool{}, tries: map[store.RunID]int{}}
}

// take adds a run, unless it is there already or being handed over, and starts its goroutine.
func (ss *suspendedRuns) take(l store.Lease) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.closed || ss.all[l.RunID] != nil || ss.handed[l.RunID] {
		return
	}
	s := &suspendedRun{lease: l, cancel: make(chan run.CancelRequest, 1), gone: make(chan struct{})}
	s.ctx, s.stop = context.WithCancel(ss.ctx)
	ss.all[l.RunID] = s
	ss.wait.Go(func() {
		defer close(s.gone)
		defer s.stop()
		ss.sleep(s)
	})
}

// put takes a run that this process suspended. failed reports that the run had made no progress.
func (ss *suspendedRuns) put(id store.RunID, failed bool) {
	ss.mu.Lock()
	if ss.tries[id]++; !failed {
		delete(ss.tries, id)
	}
	closed := ss.closed
	ss.mu.Unlock()
	if closed {
		return
	}
	leases, err := ss.runs.Store.Leases(ss.ctx)
	for _, l := range leases {
		if l.RunID == id {
			ss.take(l)
		}
	}
	if err != nil && ss.ctx.Err() == nil { // the next reconciliation finds it
		ss.runs.Options.Log.Error("sleeping_run_not_found", "run", id, "error", err)
	}
}

// has reports whether a run sleeps here.
func (ss *suspendedRuns) has(id store.RunID) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.all[id] != nil
}

// cancel wakes a run to cancel it. It reports false if the run does not sleep here.
func (ss *suspendedRuns) cancel(id store.RunID, c run.CancelRequest) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.all[id]
	if s == nil {
		return false
	}
	select {
	case s.cancel <- c:
	default: // a request is pending already
	}
	if s.withdraw != nil {
		s.withdraw()
	}
	return true
}

// cancelOf is cancel for the run of a connection that sleeps here.
func (ss *suspendedRuns) cancelOf(connection store.ConnectionID, c run.CancelRequest) {
	ss.mu.Lock()
	var of store.RunID
	for id, s := range ss.all {
		if s.lease.ConnectionID == connection {
			of = id
		}
	}
	ss.mu.Unlock()
	if of != "" {
		ss.cancel(of, c)
	}
}

// close ends the goroutines of suspended runs, which stay in the store as they are.
func (ss *suspendedRuns) close() {
	ss.mu.Lock()
	ss.closed = true
	ss.mu.Unlock()
	ss.stop()
	ss.wait.Wait()
}

func (ss *suspendedRuns) woken(id store.RunID) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.all, id)
}

func (ss *suspendedRuns) failures(id store.RunID) int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.tries[id]
}

// Limits of resumptions that fail.
const (
	mostTries  = 3               // before the run is ended
	againAfter = 2 * time.Second // delay of the first retry, which doubles each time
)

// sleep waits for a reason to resume a run, and resumes it. It is the goroutine of a suspended run. While it waits, it
// holds no more than the question, since many runs may sleep for long, and reads the run again afterwards.
func (ss *suspendedRuns) sleep(s *suspendedRun) {
	defer ss.woken(s.lease.RunID)
	q, ok := ss.begin(s)
	if !ok {
		return
	}
	call := call{cause: "host_started"}
	if q != nil {
		call = ss.awaken(s, q)
	}
	if ss.ctx.Err() != nil || s.ctx.Err() != nil && call.answer == nil && call.cancel == nil {
		return
	}
	sus, secret, ok := ss.find(ss.ctx, s)
	if !ok {
		ss.runs.broker.Forget(s.lease.RunID) // or who answered would wait
		return
	}
	sus.Cause, call.secret = call.cause, secret
	if err := ss.resume(s, sus, call); err != nil && ss.ctx.Err() == nil {
		ss.setLease(s, sus.Lease) // the attempt may have taken it over
		ss.endFor(s, err)
	}
}

// begin claims a suspended run and returns its open question, nil for a run that does not wait for its owner. It
// reports false if the run does not sleep here.
func (ss *suspendedRuns) begin(s *suspendedRun) (q *run.Question, ok bool) {
	sus, _, ok := ss.find(s.ctx, s)
	if !ok {
		return nil, false
	}
	if n := ss.failures(s.lease.RunID); n >= mostTries {
		ss.end(s, fmt.Sprintf("The run could not be resumed %d times.", n))
		return nil, false
	} else if n > 0 && !rest(s.ctx, againAfter<<(n-1)) {
		return nil, false
	}
	if sus.Open.ID == "" {
		return nil, true
	}
	q = new(sus.Question)
	if at := sus.Open.ExpiresAt; at != nil {
		q.Timeout = max(1, at.Sub(store.Now(ss.runs.Store)))
	}
	return q, true
}

// find reads a suspended run and claims it. While the store is unavailable, it retries until ctx ends. It ends a run
// that cannot be resumed. It reports false for such a run, and for one that an admitted host takes or has taken.
func (ss *suspendedRuns) find(ctx context.Context, s *suspendedRun) (sus *run.Suspended, secret []byte, ok bool) {
	var err error
	for wait := againAfter; ; wait = longer(wait) {
		if sus, secret, err = ss.suspension(s.lease); err == nil {
			err = ss.claim(s, sus)
		}
		if err == nil && s.before == nil {
			err = ss.note(s)
		}
		if !errors.Is(err, store.ErrUnavailable) || !rest(ctx, wait) {
			break
		}
	}
	if closed(err) || errors.Is(err, store.ErrFenced) || ctx.Err() != nil {
		return nil, nil, false
	}
	if err != nil {
		ss.end(s, "The run cannot be resumed: "+err.Error()+".")
	}
	return sus, secret, err == nil
}

// note notes what was withdrawn from the connection of a run before, so that it is cancelled by what is withdrawn later.
func (ss *suspendedRuns) note(s *suspendedRun) error {
	c, err := ss.runs.Store.Connection(ss.ctx, s.lease.ConnectionID)
	if err == nil {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		s.before = new(c.Withdrawals) // and does not keep c
	}
	return err
}

// withdrawals returns the connections of runs that sleep here, and what their Withdrawals were before.
func (ss *suspendedRuns) withdrawals() map[store.ConnectionID]uint64 {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	all := map[store.ConnectionID]uint64{}
	for _, s := range ss.all {
		if s.before != nil {
			all[s.lease.ConnectionID] = *s.before
		}
	}
	return all
}

// suspension reads a suspended run, and returns the secret that its journal is sealed with.
func (ss *suspendedRuns) suspension(l store.Lease) (sus *run.Suspended, secret []byte, err error) {
	all, err := ss.runs.journalSecrets()
	if err != nil {
		return nil, nil, err
	}
	for _, secret = range all {
		var key []byte
		if key, err = runKey(secret, l.RunID, "journal"); err == nil {
			sus, err = run.Suspension(ss.ctx, ss.runs.Store, l, key)
		}
		if err == nil || errors.Is(err, store.ErrUnavailable) { // which another secret would hide
			break
		}
	}
	return sus, secret, err
}

// claimed is how long the lease of a sleeping run outlasts its host.
const claimed = time.Minute

// claim takes over the lease of a run that another host had, for as long as it sleeps here.
func (ss *suspendedRuns) claim(s *suspendedRun, sus *run.Suspended) error {
	if ss.runs.hosts.members == nil || s.lease.BootEpoch == ss.runs.Epoch {
		return nil
	}
	if fits, err := ss.runs.hosts.Fits(ss.ctx, s.lease.ConnectionID); err != nil || !fits {
		return cmp.Or(err, store.ErrFenced) // a host that fits takes it
	}
	l, err := ss.runs.Store.TakeOver(ss.ctx, s.lease, ss.runs.ID, ss.runs.Epoch, claimed)
	if err != nil {
		return err
	}
	sus.Lease = l
	ss.setLease(s, l)
	return nil
}

// setLease sets the current lease of a run.
func (ss *suspendedRuns) setLease(s *suspendedRun, l store.Lease) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.lease = l
}

// A call is the reason to wake a run.
type call struct {
	cause  string
	answer *host.Answer       // nil for none
	cancel *run.CancelRequest // nil for none
	secret []byte             // the secret that the journal is sealed with
}

// awaken asks the question of a run and returns the reason to resume it.
func (ss *suspendedRuns) awaken(s *suspendedRun, q *run.Question) call {
	ctx, stop := context.WithTimeout(s.ctx, cmp.Or(q.Timeout, 1<<62)) // no limit
	defer stop()
	if ss.asking(s, stop) {
		if a, err := ss.runs.broker.Ask(ctx, *q); err == nil {
			return call{cause: "answered", answer: &a}
		}
	}
	select {
	case c := <-s.cancel:
		return call{cause: "cancelled", cancel: &c}
	default: // the time is over, or this process is stopping
		return call{cause: "timeout"}
	}
}

// asking prepares for a cancellation that arrives while the question is open. It reports false if one has arrived
// already.
func (ss *suspendedRuns) asking(s *suspendedRun, withdraw context.CancelFunc) bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s.withdraw = withdraw
	return len(s.cancel) == 0
}

// longer returns the delay after wait.
func longer(wait time.Duration) time.Duration { return min(2*wait, 30*time.Second) }

// resume starts the run from its journal. While this host has no place for it, or the store is unavailable, it retries.
func (ss *suspendedRuns) resume(s *suspendedRun, sus *run.Suspended, why call) error {
	for wait := againAfter; ; wait = longer(wait) {
		if why.cancel == nil {
			select {
			case c := <-s.cancel:
				why.cancel, why.cause = &c, "cancelled"
			default:
			}
		}
		err := ss.runs.resume(ss.ctx, sus, why)
		if !passes(err) || !rest(ss.ctx, wait) {
			return err
		}
	}
}

// passes reports whether the cause of a failed resumption resolves itself.
func passes(err error) bool {
	var full *run.Refusal
	return errors.Is(err, store.ErrUnavailable) ||
		errors.As(err, &full) && (full.Code == "rate_limited" || full.Code == "store_no_space")
}

// rest waits for d. It reports false if ctx ended before.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// endFor ends a run whose resumption was refused. If the grant is not usable any more, that is the reason.
func (ss *suspendedRuns) endFor(s *suspendedRun, err error) {
	reason, why := run.ReasonRestarted, "The run cannot be resumed: "+err.Error()
	var r *run.Refusal
	if errors.As(err, &r) && strings.HasPrefix(r.Code, "grant_") {
		reason, why = r.Code, "The grant of the connection ended while the run slept. "+err.Error()
	}
	ss.ends(s, reason, why)
}

// end ends a run that cannot be resumed.
func (ss *suspendedRuns) end(s *suspendedRun, why string) { ss.ends(s, run.ReasonRestarted, why) }

func (ss *suspendedRuns) ends(s *suspendedRun, reason, why string) {
	ss.runs.broker.Forget(s.lease.RunID)
	if ss.ctx.Err() != nil {
		return
	}
	if err := run.EndSuspended(ss.ctx, ss.runs.Store, s.lease, ss.runs.ID, reason, why); err != nil {
		ss.runs.Options.Log.Error("sleeping_run_not_ended", "run", s.lease.RunID, "error", err)
	}
}

// An answeredOwner answers the question with which a run is resumed, and passes later ones to the broker.
type answeredOwner struct {
	*interaction.Broker
	answer *host.Answer
}

// Ask implements run.Owner.
func (o *answeredOwner) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	if a := o.answer; a != nil && a.InteractionID == q.InteractionID {
		o.answer = nil
		return *a, nil
	}
	return o.Broker.Ask(ctx, q)
}

// resume has the controller perform a run again, from its journal.
func (rs *runs) resume(ctx context.Context, sus *run.Suspended, why call) error {
	var kept resumable
	if err := json.Unmarshal(sus.Request, &kept); err != nil {
		return fmt.Errorf("read the request of the run: %w", err)
	}
	rec, err := rs.controller.StartFor(ctx, sus.Run.Request.By,
		func(ctx context.Context, slots run.Slots) (controller.Job, error) {
			q := kept.request(sus)
			conn, err := rs.Store.Connection(ctx, q.Connection)
			if err != nil {
				return controller.Job{}, err
			}
			if q.Connector, err = rs.workflows.modules.LoadFor(ctx, conn); err != nil {
				return controller.Job{}, err
			}
			if q.Connector.Connector.Digest != sus.Run.Digest {
				return controller.Job{}, errors.New("another version of its connector is installed")
			}
			q.Owner, q.Slots, q.Spans, q.store, q.serviced = &answeredOwner{rs.broker, why.answer}, slots,
				rs.spans, rs.commitTo, true
			q.sealed = why.secret
			p, err := rs.starter.prepare(ctx, q)
			if err != nil {
				return controller.Job{}, err
			}
			w := workflow{connection: q.Connection}
			return controller.Job{Run: p.run, Abandon: p.abandon, Ended: func(r *run.Result) {
				if p.run.Accepted() {
					rs.ended(p, w, r)
				} else { // it still sleeps, and may be resumed with the answer that it has
					rs.release(p, w, r)
				}
			}}, nil
		})
	if err == nil && why.cancel != nil {
		_, err = rs.controller.Cancel(ctx, rec.ID, *why.cancel)
	}
	return err
}
