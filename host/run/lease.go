package run

import (
	"errors"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/store"
)

// lease keeps the run's lease.
type lease struct {
	*parts
	current  store.Lease
	renewAt  time.Time
	renewing bool
	renewed  chan renewal // capacity 1
}

// set sets the lease and schedules its renewal.
func (l *lease) set(current store.Lease) {
	l.current, l.renewAt = current, time.Now().Add(l.deps.LeaseRenew)
}

// sign puts the run's lease and grant into a commit.
func (l *lease) sign(c *store.Commit) { c.Lease, c.Grant = l.current, l.plan.grant }

// A renewal is the store's response to a renewal of the lease.
type renewal struct {
	lease store.Lease
	err   error
}

// renew renews the lease when it is due. It does not wait, since a store whose disk is full responds only when
// there is space. A run that lost its lease writes nothing more; one whose lease had expired without being taken
// records that.
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

// renewal handles the response to a renewal, if it has arrived.
func (l *lease) renewal() {
	select {
	case n := <-l.renewed:
		l.renewing = false
		lapsed := time.Now().After(l.current.ExpiresAt)
		switch {
		case n.err == nil:
			l.current = n.lease
			if lapsed && l.guest != nil {
				l.commits.record(l.journal.event("lease.renewed", "in_progress", l.eventData()))
			}
		case errors.Is(n.err, store.ErrFenced):
			lost := hostFault("renew lease", n.err)
			lost.fenced = true
			l.outcome.latch(lost)
		}
	default:
	}
}

// eventData returns the event data that identify the run's lease.
func (l *lease) eventData() data {
	return data{"leaseId": leaseID(l.current), "host": "cloud", "instanceId": l.deps.HostID,
		"expiresAt": store.Time(l.current.ExpiresAt)}
}

// leaseID returns the id of a lease in events.
func leaseID(l store.Lease) string { return string(l.RunID) + ":" + strconv.FormatUint(l.Fence, 10) }
