package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// handAgain is the interval at which a drained host looks for runs to hand over.
const handAgain = time.Second

// resumedWithin is how long hand waits for a run that was answered at the same moment to continue here.
const resumedWithin = 2 * time.Second

// handRuns hands over the runs that wait for their owner whenever this host is drained, until ctx ends.
func (hs *hosts) handRuns(ctx context.Context) {
	wake, stop := hs.members.Changed("")
	defer stop()
	for {
		drained, err := hs.runs.handOver(ctx)
		if err != nil && ctx.Err() == nil {
			hs.Options.Log.Error("runs_not_handed_over", "error", err)
		}
		var again <-chan time.Time
		if drained || err != nil {
			again = time.After(handAgain)
		}
		select {
		case <-wake:
		case <-again:
		case <-hs.members.Removed():
			return
		case <-ctx.Done():
			return
		}
	}
}

// handOver hands the runs that wait for their owner to other hosts if this one is drained, and reports whether
// it is. If no other host could take them, they stay.
func (rs *runs) handOver(ctx context.Context) (drained bool, err error) {
	all, err := rs.hosts.members.Members(ctx)
	if err != nil {
		return false, fmt.Errorf("list hosts: %w", err)
	}
	drained = rs.hosts.draining(all)
	others := candidates(all, rs.Epoch, opensVault)
	rs.controller.SetDrained(drained && len(others) > 0)
	if !drained || len(others) == 0 {
		return drained, nil
	}
	for _, id := range rs.suspended.ids() {
		if err := rs.suspended.hand(ctx, id, all); err != nil {
			return true, fmt.Errorf("hand over run %s: %w", id, err)
		}
	}
	return true, nil
}

func (ss *suspendedRuns) ids() []store.RunID {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return slices.Collect(maps.Keys(ss.all))
}

// A takeoverRequest asks a host to take over a run.
type takeoverRequest struct {
	Run   store.RunID
	Fence uint64
}

// hand has another host take over a run that sleeps here. Meanwhile nobody publishes its question; an answer
// that arrives waits for the next host that does.
func (ss *suspendedRuns) hand(ctx context.Context, id store.RunID, all []store.Member) error {
	ss.mu.Lock()
	s := ss.all[id]
	var lease store.Lease
	if s != nil {
		lease = s.lease
	}
	ss.mu.Unlock()
	if s == nil || lease.BootEpoch != ss.runs.Epoch {
		return nil
	}
	c, err := ss.runs.Store.Connection(ctx, lease.ConnectionID)
	if err != nil {
		return err
	}
	to := takers(all, ss.runs.Epoch, c)
	if len(to) == 0 {
		return nil
	}
	ss.setHanded(id, true)
	again := false
	defer func() {
		ss.setHanded(id, false)
		if again {
			ss.take(lease)
		}
	}()
	s.stop()
	select {
	case <-s.gone:
	case <-time.After(resumedWithin): // it waits for a slot
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, live := ss.runs.controller.Live(id); live { // it was answered
		return nil
	}
	select {
	case q := <-s.cancel:
		ss.setHanded(id, false)
		ss.take(lease)
		ss.cancel(id, q)
		return nil
	default:
	}
	body, err := json.Marshal(takeoverRequest{id, lease.Fence})
	if err != nil {
		return err
	}
	for _, m := range to {
		out, err := ss.runs.hosts.peers.ask(ctx, &m, command{Verb: "take", Principal: host.Who(ctx), Body: body})
		if err == nil && out.Refusal == nil && !out.Absent && !out.Failed {
			ss.runs.broker.Forget(id)
			return nil
		}
		if err != nil {
			ss.runs.Options.Log.Warn("run_not_handed_over", "run", id, "host", m.ID, "error", err)
		}
	}
	// One of them may have taken the run, or be about to; the fence decides.
	l, err := ss.runs.Store.TakeOver(ctx, lease, ss.runs.ID, ss.runs.Epoch, claimed)
	if errors.Is(err, store.ErrFenced) {
		ss.runs.broker.Forget(id)
		return nil
	}
	if err == nil {
		lease = l
	}
	again = true
	return err
}

func (ss *suspendedRuns) setHanded(id store.RunID, on bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if on {
		ss.handed[id] = true
	} else {
		delete(ss.handed, id)
	}
}

// adopt takes over a run that sleeps at another host, at that host's request.
func (ss *suspendedRuns) adopt(ctx context.Context, q takeoverRequest) (struct{}, error) {
	var none struct{}
	leases, err := ss.runs.Store.Leases(ctx)
	i := slices.IndexFunc(leases, func(l store.Lease) bool { return l.RunID == q.Run && l.Fence == q.Fence })
	if err != nil || i < 0 {
		return none, errors.Join(err, store.ErrNotFound)
	}
	l := leases[i]
	c, err := ss.runs.Store.Connection(ctx, l.ConnectionID)
	if err != nil {
		return none, err
	}
	if err := ss.runs.hosts.open(ctx); err != nil {
		return none, err
	}
	if !ss.runs.hosts.fits(c) {
		return none, host.Refuse("unavailable", "this host cannot serve the connection")
	}
	if _, _, err := ss.suspension(l); err != nil {
		return none, err
	}
	taken, err := ss.runs.Store.TakeOver(ctx, l, ss.runs.ID, ss.runs.Epoch, claimed)
	if err != nil {
		return none, err
	}
	ss.take(taken)
	return none, nil
}
