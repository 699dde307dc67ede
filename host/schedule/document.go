package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// documents reads and changes stored schedules and computes their due times.
type documents struct {
	store Store
	plans *plans
	rand  func(n int64) int64
}

// load reads a schedule. The error is a *host.Refusal with schedule_not_found, or errUnreadable for
// an invalid document.
func (ds *documents) load(ctx context.Context, id store.ConnectionID) (document, error) {
	d, err := ds.store.Document(ctx, store.Schedules, string(id))
	if errors.Is(err, store.ErrNotFound) {
		return document{}, notFound()
	}
	if err != nil {
		return document{}, fmt.Errorf("load schedule of %s: %w", id, err)
	}
	return decode(d)
}

// attempts bounds how often a change is retried after a conflict.
const attempts = 16

// change loads, edits and writes a schedule, and retries after a conflict. edit returns what to
// write in the same commit; if it returns errUnchanged, nothing is written.
func (ds *documents) change(ctx context.Context, id store.ConnectionID,
	edit func(*document) ([]store.Write, error)) (document, error) {
	return ds.edit(ctx, id, false, edit)
}

// edit is change, but creates the schedule if create is set.
func (ds *documents) edit(ctx context.Context, id store.ConnectionID, create bool,
	edit func(*document) ([]store.Write, error)) (document, error) {
	for try := 1; ; try++ {
		doc, err := ds.load(ctx, id)
		if err != nil && !errors.Is(err, errUnreadable) && !(create && errors.As(err, new(*host.Refusal))) {
			return doc, err
		}
		with, err := edit(&doc)
		if errors.Is(err, errUnchanged) {
			return doc, nil
		}
		if err != nil {
			return doc, err
		}
		err = ds.store.Write(ctx, append(with, doc.write(id))...)
		switch {
		case err == nil:
			doc.stored++
			ds.plans.planDocument(id, doc)
			return doc, nil
		case !errors.As(err, new(*store.ConflictError)) || try == attempts:
			return doc, fmt.Errorf("save schedule of %s: %w", id, err)
		}
	}
}

var errUnchanged = errors.New("unchanged")

// setDue sets the slot and draws its jitter. If err is ErrNever the schedule is never due again.
func (ds *documents) setDue(d *document, slot time.Time, err error) error {
	d.Slot, d.DueAt = time.Time{}, time.Time{}
	if errors.Is(err, ErrNever) {
		return nil
	}
	if err != nil {
		return err
	}
	d.Slot = slot.UTC()
	d.DueAt = d.Slot
	if j := d.Definition.JitterSeconds; j > 0 {
		d.DueAt = d.Slot.Add(time.Duration(ds.rand(j*1000+1)) * time.Millisecond)
	}
	return nil
}

// advance moves a schedule to the slot after the current one.
func (ds *documents) advance(d *document, now time.Time) error {
	if !d.Slot.IsZero() {
		d.LastSlot = d.Slot
	}
	t, err := timetableOf(d.Definition)
	if err != nil {
		return err
	}
	slot, err := t.next(now, d.last(t))
	return ds.setDue(d, slot, err)
}

// restart computes the due time of a schedule that begins now.
func (ds *documents) restart(d *document, now time.Time) error {
	if !d.Definition.Enabled {
		d.Slot, d.DueAt = time.Time{}, time.Time{}
		return nil
	}
	t, err := timetableOf(d.Definition)
	if err != nil {
		return err
	}
	last := d.LastStarted
	if t.interval == 0 {
		last = d.LastSlot
	}
	slot, err := t.first(now, last)
	if err = ds.setDue(d, slot, err); t.interval > 0 && slot.Equal(now) {
		d.DueAt = d.Slot // without jitter
	}
	return err
}

// lookBack bounds the runs of a connection that are searched for runs which the schedule did not
// start.
const lookBack = 100

// observe updates a document from the runs of its connection, whoever started them: an interval
// counts from the last start, and a success ends a streak. It writes nothing.
func (ds *documents) observe(ctx context.Context, id store.ConnectionID, d *document) error {
	runs, err := ds.store.Runs(ctx, id, "", lookBack)
	if err != nil {
		return fmt.Errorf("list runs of %s: %w", id, err)
	}
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return r.ID <= d.Seen })
	active := false
	for _, r := range slices.Backward(runs) { // oldest first
		if r.StartedAt.After(d.LastStarted) {
			d.LastStarted = r.StartedAt
		}
		if r.FinishedAt == nil || r.Status == "active" {
			active = true
			continue
		}
		d.finished(r)
		if !active {
			d.Seen = r.ID
		}
	}
	return nil
}

// active returns the active run of a connection, or "" if there is none.
func (ds *documents) active(ctx context.Context, id store.ConnectionID) (store.RunID, error) {
	leases, err := ds.store.Leases(ctx)
	if err != nil {
		return "", fmt.Errorf("list active runs: %w", err)
	}
	for _, l := range leases {
		if l.ConnectionID == id {
			return l.RunID, nil
		}
	}
	return "", nil
}

// each calls f for all stored schedules, ordered by connection.
func (ds *documents) each(ctx context.Context, f func(store.Document) error) error {
	const page = 200
	for after := ""; ; {
		docs, err := ds.store.Documents(ctx, store.DocumentQuery{Kind: store.Schedules, After: after, Limit: page})
		if err != nil {
			return fmt.Errorf("list schedules: %w", err)
		}
		for _, d := range docs {
			if err := f(d); err != nil {
				return err
			}
			after = d.ID
		}
		if len(docs) < page {
			return nil
		}
	}
}
