package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// pageEvents bounds the memory of an attempt; an event has at most 64 KiB.
const pageEvents = 16

// A step is the result of advancing a lane once, which delivers at most one event.
type step struct {
	lane lane
	kept bool // the lane has a document now
	// more means that there may be more events.
	more bool
	// attempted means that an attempt was made. status is that of the answer, 0 for none. The attempt failed if err is
	// not nil.
	attempted bool
	status    int
	err       error
}

// advance reads from the lane's position to the first wanted event and makes one attempt to deliver it. It returns once
// the lane is durable, or unchanged. If attempted is false, the error is the store's, or store.ErrSilent.
func (f *follower) advance(ctx context.Context, l lane) step {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return step{lane: l, err: ctx.Err()}
	}
	e, l, err := f.nextWanted(ctx, l)
	if err != nil {
		return step{lane: l, err: err}
	}
	if e == nil {
		if l.Done {
			err = f.keep(ctx, l)
		}
		return step{lane: l, kept: l.Done && err == nil, err: err}
	}
	a, err := f.attempt(ctx, *e, l.Attempts+1)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return step{lane: l, err: ctx.Err()} // this process is ending; do not count it as a failure
	case errors.Is(err, store.ErrSilent):
		return step{lane: l, err: err} // nothing was sent
	}
	s := step{lane: l, more: true, attempted: true, status: a.Status, err: err}
	if err == nil {
		s.lane.passed(*e)
	} else {
		s.lane.failed(*e, f.now())
	}
	if err := f.keep(ctx, s.lane); err == nil {
		s.kept = true
	} else {
		// The attempt counts, but only this process knows the lane's position.
		f.log.Warn("webhook: cursor not stored; a delivery may be repeated after a restart", "webhook",
			f.hook.ID, "error", err)
	}
	if err := note(ctx, f.store, f.hook.ID, a); err != nil && !errors.Is(err, store.ErrNotFound) {
		f.log.Warn("webhook: attempt not written down", "webhook", f.hook.ID, "error", err)
	}
	return s
}

// passed advances the lane past an event that has been dealt with.
func (l *lane) passed(e store.Event) {
	l.Next, l.Attempts, l.Due, l.Done = e.Sequence+1, 0, time.Time{}, ends(e)
}

// failed counts a failed attempt, and gives the event up after the last of delays.
func (l *lane) failed(e store.Event, now time.Time) {
	l.Next = e.Sequence
	l.Attempts++
	wait, again := delay(l.Attempts)
	if !again {
		l.passed(e)
		return
	}
	l.Due = now.Add(wait)
}

// keep stores a lane, even while this process is ending.
func (f *follower) keep(ctx context.Context, l lane) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return f.store.Write(ctx, l.write(f.hook.ID))
}

// nextWanted returns the first wanted event at or after l.Next, or nil at the end of the log, in which case Done says
// whether the run is over.
func (f *follower) nextWanted(ctx context.Context, l lane) (*store.Event, lane, error) {
	over := false
	for {
		page, err := f.store.Events(ctx, l.Run, l.Next, pageEvents)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, l, err
		}
		for i := range page {
			if f.wanted(page[i]) {
				return &page[i], l, nil
			}
			l.passed(page[i])
			if l.Done {
				return nil, l, nil
			}
		}
		if len(page) > 0 {
			continue
		}
		if over {
			l.Done = true // its log was deleted or has no final event
			return nil, l, nil
		}
		if over, err = f.over(ctx, l.Run); err != nil || !over {
			return nil, l, err
		}
		// The run's last events may have been committed after the page was read.
	}
}

func (f *follower) over(ctx context.Context, id store.RunID) (bool, error) {
	r, err := f.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return err == nil && r.Status != "active", err
}

// wanted reports whether an event matches the webhook and is not older than the webhook.
func (f *follower) wanted(e store.Event) bool {
	return !e.RecordedAt.Before(f.hook.CreatedAt) && wants(f.hook.Events, e)
}

// A body is the JSON that is posted for an event.
type body struct {
	Type      timeline.Type `json:"type"`
	Timestamp string        `json:"timestamp"`
	Data      timeline.Doc  `json:"data"`
}

func eventBody(e store.Event) ([]byte, error) {
	doc := timeline.Document(e)
	return json.Marshal(body{doc.Type, doc.Timestamp, doc})
}

// attempt tries to deliver one event.
func (f *follower) attempt(ctx context.Context, e store.Event, number int) (Attempt, error) {
	a := attemptFor(f.hook.ID, ForEvent, e, number)
	b, err := eventBody(e)
	if err != nil {
		return a, err
	}
	return (&sender{f.hook.URL, *f.keys.Load(), f.post, f.now}).send(ctx, a, b)
}

// answered is the error for an answer with this status.
type answered int

func (a answered) Error() string { return "answered " + http.StatusText(int(a)) }
