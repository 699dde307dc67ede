package run

import (
	"errors"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/store"
)

// lease is the run's lease.
type lease struct {
	*parts
	current  store.Lease
	renewAt  time.Time
	renewing bool
	renewed  chan renewal // capacity 1
}

// took begins the lease.
func (l *lease) took(current store.Lease) {
	l.current, l.renewAt = current, time.Now().Add(l.deps.LeaseRenew)
}

// sign makes a commit one of this run's holder, under its grant.
func (l *lease) sign(c *store.Commit) { c.Lease, c.Grant = l.current, l.plan.grant }

// A renewal is what the store said of the lease.
type renewal struct {
	lease store.Lease
	err   error
}

// renew keeps the lease; a run that lost it writes nothing more. One that
// had lapsed and was nobody's meanwhile is told of. It does not wait:
// a store whose disk is full answers when there is room.
func (l *lease) renew(now time.Time) {
	if l.renewing {
		l.renewal()
		return
	}
	if !now.After(l.renewAt) {
		return
	}
	l.renewAt, l.renewing = now.Add(l.deps.LeaseRenew), true
	current := l.current
	go func() {
		next, err := l.deps.Store.Renew(l.ctx, current, l.deps.LeaseTTL)
		l.renewed <- renewal{next, err}
	}()
}

// renewal takes the answer, when there is one.
func (l *lease) renewal() {
	select {
	case n := <-l.renewed:
		l.renewing = false
		lapsed := time.Now().After(l.current.ExpiresAt)
		switch {
		case n.err == nil:
			l.current = n.lease
			if lapsed && l.guest != nil {
				l.commits.record(l.journal.event("lease.renewed", "in_progress", l.held()))
			}
		case errors.Is(n.err, store.ErrFenced):
			lost := hostFault("renew lease", n.err)
			lost.fenced = true
			l.outcome.latch(lost)
		}
	default:
	}
}

// held says which lease the run has.
func (l *lease) held() data {
	return data{"leaseId": leaseID(l.current), "host": "cloud", "instanceId": l.deps.HostID, "expiresAt": store.Time(l.current.ExpiresAt)}
}

// leaseID names a lease on the timeline.
func leaseID(l store.Lease) string { return string(l.RunID) + ":" + strconv.FormatUint(l.Fence, 10) }
