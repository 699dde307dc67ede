package schedule

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// Schedule returns the schedule of a connection, or schedule_not_found.
func (s *Scheduler) Schedule(ctx context.Context, id store.ConnectionID) (host.Schedule, error) {
	d, err := s.documents.load(ctx, id)
	if err != nil && !errors.Is(err, errUnreadable) {
		return host.Schedule{}, err
	}
	return s.project(ctx, id, d)
}

// Schedules returns all schedules, ordered by connection.
func (s *Scheduler) Schedules(ctx context.Context) ([]host.Schedule, error) {
	out := []host.Schedule{}
	err := s.documents.each(ctx, func(doc store.Document) error {
		d, err := decode(doc)
		if err != nil && !errors.Is(err, errUnreadable) {
			return err
		}
		one, err := s.project(ctx, store.ConnectionID(doc.ID), d)
		out = append(out, one)
		return err
	})
	return out, err
}

// Pause stops a schedule's ticks and a pending retry, but not a run. changed is false if it was
// paused already.
func (s *Scheduler) Pause(ctx context.Context, id store.ConnectionID) (out host.Schedule, changed bool, err error) {
	d, err := s.documents.change(ctx, id, func(d *document) ([]store.Write, error) {
		if changed = d.Definition.Enabled; !changed {
			return nil, errUnchanged
		}
		d.Definition.Enabled = false
		d.Revision++
		return nil, s.documents.restart(d, s.now())
	})
	if err != nil {
		return out, false, err
	}
	out, err = s.project(ctx, id, d)
	return out, changed, err
}

// Resume lets a schedule run again from now on and ends a back-off. changed is false if there was
// nothing to resume. It may fail with schedule_ineligible.
func (s *Scheduler) Resume(ctx context.Context, id store.ConnectionID) (out host.Schedule, changed bool, err error) {
	if conn, err := s.source.ScheduledConnection(ctx, id); err == nil && singleUse(conn.Grant) {
		return out, false, errSingleUse
	}
	d, err := s.documents.change(ctx, id, func(d *document) ([]store.Write, error) {
		changed = !d.Definition.Enabled || d.Poisoned || d.Streak.state() != "" || d.Grant != nil && !d.Grant.Restarted
		if !changed {
			return nil, errUnchanged
		}
		if d.Definition.Cron == "" && d.Definition.IntervalSeconds == 0 {
			return nil, ineligible("schedule_unreadable", "The stored schedule cannot be read; set it again.")
		}
		began := !d.Definition.Enabled
		d.Definition.Enabled, d.Streak = true, streak{}
		d.restart()
		d.Revision++
		if !began {
			return nil, nil
		}
		if err := s.documents.observe(ctx, id, d); err != nil {
			return nil, err
		}
		return nil, s.documents.restart(d, s.now())
	})
	if err != nil {
		return out, false, err
	}
	out, err = s.project(ctx, id, d)
	return out, changed, err
}

// Restarted records that the owner approved a grant again, so a schedule that the old one disabled
// is evaluated again. Without a schedule it does nothing.
func (s *Scheduler) Restarted(ctx context.Context, id store.ConnectionID) error {
	_, err := s.documents.change(ctx, id, func(d *document) ([]store.Write, error) {
		if d.Grant == nil || d.Grant.Restarted {
			return nil, errUnchanged
		}
		d.restart()
		return nil, nil
	})
	if errors.As(err, new(*host.Refusal)) {
		return nil
	}
	return err
}

// Delete removes a schedule, but not its history or an active run. It fails with schedule_not_found
// if there is none.
func (s *Scheduler) Delete(ctx context.Context, id store.ConnectionID) error {
	if _, err := s.documents.load(ctx, id); err != nil && !errors.Is(err, errUnreadable) {
		return err
	}
	if err := s.store.Write(ctx, store.Write{Kind: store.Schedules, ID: string(id)}); err != nil {
		return fmt.Errorf("delete schedule of %s: %w", id, err)
	}
	s.plans.drop(id)
	return nil
}
