package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/egress"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/sandbox"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// A Rehearsal is the outcome of stopping a connector and resuming it from its journal.
type Rehearsal struct {
	At      string // the kind of place before which it was stopped: call or question
	Places  int    // places at which it could be stopped
	Tried   int
	Bound   string // why its runs do not outlive their host, at all or from some call on; "" for nothing
	Untried string // why not all places were tried; "" for nothing
	Differs string // what a resumed run did differently; "" for nothing
}

// HostBound returns why no run of a connector outlives its host, "" if one may.
func (h *Host) HostBound(l *Loaded) string {
	return h.starter.hostBound(&RunRequest{Connector: l, rehearsed: true})
}

// Rehearse repeats a recorded run that succeeded. The run is answered from its recording and with answers, by
// interaction id; nil means that no owner is there to be asked. Each time it is stopped at another place and
// resumed from its journal, as when one host stops and the next one starts, and has to end with the same records
// and cursors. A resumable connector is stopped before each of its calls, another one at each of its questions,
// since that is where the hosts of its runs may end. After within no further place is tried; those that were are
// evenly spread.
func (h *Host) Rehearse(ctx context.Context, l *Loaded, recording []byte, answers map[string]host.Answer,
	within time.Duration) (*Rehearsal, error) {
	return h.rehearse(ctx, l, recording, answers, within, func(g run.Guest) run.Guest { return g })
}

func (h *Host) rehearse(ctx context.Context, l *Loaded, recording []byte, answers map[string]host.Answer,
	within time.Duration, wrap func(run.Guest) run.Guest) (*Rehearsal, error) {
	tape, err := egress.ParseRecording(recording)
	if err != nil {
		return nil, err
	}
	r := &rehearsal{
		host: h, answers: answers, wrap: wrap, before: goesOn(l.Manifest),
		request: RunRequest{Connector: l, Replay: &Recording{tape}, rehearsed: true, sealed: newJournalKey()},
	}
	out, until := &Rehearsal{At: "question"}, time.Now().Add(within)
	if r.before {
		out.At = "call"
	}
	whole, err := r.perform(ctx, 0)
	if err != nil {
		return nil, err
	}
	if whole.result.Status != abi.Succeeded {
		out.Untried = "it does not do the same when it is answered from a recording: " + told(whole.result)
		return out, nil
	}
	out.Places = whole.places
	last := out.Places // at which it can be stopped
	for _, place := range spread(out.Places) {
		if place > last {
			continue
		}
		if time.Now().After(until) {
			out.Untried = fmt.Sprintf("it takes more than %s to try the others", within)
			return out, nil
		}
		again, err := r.perform(ctx, place)
		if err != nil {
			return nil, err
		}
		if !again.stopped {
			last, out.Bound = place-1, fmt.Sprintf("from %s %d on: %s", out.At, place, again.result.HostBound)
			continue
		}
		out.Tried++
		if out.Differs = whole.difference(again); out.Differs != "" {
			out.Differs = fmt.Sprintf("Stopped at %s %d and resumed, %s", out.At, place, out.Differs)
			return out, nil
		}
	}
	return out, nil
}

// spread returns the numbers from 1 to n in an order whose beginnings are evenly spread: those that a high power of
// two divides come first.
func spread(n int) (out []int) {
	for step := 1 << bits.Len(uint(n)); step > 0; step /= 2 {
		for i := step; i <= n; i += 2 * step {
			out = append(out, i)
		}
	}
	return out
}

// A rehearsal is what all runs of a Rehearse call have in common.
type rehearsal struct {
	host    *Host
	request RunRequest
	answers map[string]host.Answer
	wrap    func(run.Guest) run.Guest
	before  bool // stop before calls instead of at questions
}

// A rehearsed is the outcome of one run of a rehearsal.
type rehearsed struct {
	result  *run.Result
	places  int // places at which it could be stopped
	stopped bool
	stored  map[string]string // records and cursors, by a description of their place
}

// perform does one run in a store of its own. The run is stopped at the given place, 0 for none, and resumed.
func (r *rehearsal) perform(ctx context.Context, place int) (out *rehearsed, err error) {
	st, err := drivers.Open("memory:?memory=small", drivers.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	over, q := r.host.Over(st), r.request
	out = &rehearsed{}
	for {
		var current *run.Run
		stop := func() { current.Cancel(run.CancelRequest{Cause: run.CauseShutdown}) }
		owner := &rehearsedOwner{answers: r.answers, stop: stop}
		var guest *stoppable
		if r.answers != nil {
			q.Owner = owner
		}
		q.Launched = func(g run.Guest) run.Guest {
			guest = &stoppable{Guest: r.wrap(g), stop: stop, calls: make(chan sandbox.Inbound)}
			if r.before && !out.stopped {
				guest.before = place
			}
			go guest.forward()
			return guest
		}
		if !r.before && !out.stopped {
			owner.at = place
		}
		p, err := over.starter.prepare(ctx, q)
		if err != nil {
			return nil, err
		}
		current = p.run
		out.result, err = current.Do(ctx)
		switch {
		case errors.Is(err, run.ErrSuspended) && !out.stopped:
			out.stopped = true
			if err := p.release(); err != nil {
				return nil, err
			}
			if q.resume, err = over.suspended(ctx, current.ID, r.request.sealed); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		if out.places = owner.asked; r.before && guest != nil {
			out.places = int(guest.made.Load())
		}
		out.stored, err = storedBy(ctx, st, q.Connector.Manifest)
		return out, err
	}
}

// suspended returns a stopped run in the form from which it is resumed.
func (h *Host) suspended(ctx context.Context, id store.RunID, secret []byte) (*run.Suspended, error) {
	leases, err := h.Store.Leases(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(leases, func(l store.Lease) bool { return l.RunID == id })
	if i < 0 {
		return nil, fmt.Errorf("run %s was stopped and has no lease", id)
	}
	key, err := runKey(secret, id, "journal")
	if err != nil {
		return nil, err
	}
	s, err := run.Suspension(ctx, h.Store, leases[i], key)
	if err != nil {
		return nil, err
	}
	if s.Cause = "host_started"; s.Open.ID != "" {
		s.Cause = "answered"
	}
	return s, nil
}

// difference describes how the outcome of another run differs, "" if it does not.
func (r *rehearsed) difference(other *rehearsed) string {
	if other.result.Status != r.result.Status {
		return "it did not end as it did before: " + told(other.result)
	}
	for _, where := range slices.Sorted(maps.Keys(r.stored)) {
		if got, ok := other.stored[where]; !ok || got != r.stored[where] {
			return "it left another " + where
		}
	}
	for _, where := range slices.Sorted(maps.Keys(other.stored)) {
		if _, ok := r.stored[where]; !ok {
			return "it left one more " + where
		}
	}
	return ""
}

func told(r *run.Result) string {
	if r.Failure != nil {
		return r.Failure.Message
	}
	return "it " + r.Status
}

// storedBy returns the records and cursors in a store.
func storedBy(ctx context.Context, st store.Store, m *abi.Manifest) (map[string]string, error) {
	out := map[string]string{}
	all, err := st.Connections(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		for _, s := range m.Streams {
			q := store.RecordQuery{Connection: c.ID, Stream: store.Stream(s.Name), Deleted: true, Limit: 1000}
			for more := true; more; {
				page, err := st.Records(ctx, q)
				if err != nil {
					return nil, err
				}
				for _, r := range page.Records {
					out["record of "+s.Name+": "+abi.Cut(abi.Clean(r.Key), 100)] = fmt.Sprint(r.Deleted, string(r.Data))
				}
				more, q.After = page.More, page.After
			}
		}
		states, err := st.States(ctx, c.ID, "")
		if err != nil {
			return nil, err
		}
		for _, s := range states {
			out["cursor of "+string(s.Stream)] = string(s.Cursor)
		}
	}
	return out, nil
}

// A stoppable is a guest whose run is stopped before one of its calls. That call and later ones are dropped.
//
// It does not pass on the time of replies, since its clock is that of the recording.
type stoppable struct {
	run.Guest
	before int // number of that call; 0 for none
	stop   func()
	calls  chan sandbox.Inbound
	made   atomic.Int64
}

func (g *stoppable) Calls() <-chan sandbox.Inbound { return g.calls }

func (g *stoppable) forward() {
	defer close(g.calls)
	for in := range g.Guest.Calls() {
		n := int(g.made.Add(1))
		if g.before == 0 || n < g.before {
			g.calls <- in
			continue
		}
		if n == g.before {
			g.stop()
		}
		in.Release()
	}
}

// A rehearsedOwner repeats answers, and stops the run while one of its questions is open.
type rehearsedOwner struct {
	answers map[string]host.Answer
	at      int // the number of that question; 0 for none
	stop    func()
	asked   int
}

// Ask implements run.Owner.
func (o *rehearsedOwner) Ask(ctx context.Context, q run.Question) (host.Answer, error) {
	if o.asked++; o.asked == o.at {
		o.stop()
		<-ctx.Done()
		return host.Answer{}, ctx.Err()
	}
	a, ok := o.answers[q.InteractionID]
	if !ok {
		a.Status = abi.AnswerCancelled
	}
	a.RunID, a.InteractionID = store.RunID(q.RunID), q.InteractionID
	return a.Clone(), nil
}
