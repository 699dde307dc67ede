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

// pageEvents bounds the memory of an attempt: an event has at most 64 KiB.
const pageEvents = 16

// A step is what came of working on a lane once. At most one event is
// delivered.
type step struct {
	lane lane
	kept bool // the lane has a document now
	// more: there may be more events to look at.
	more bool
	// attempted: an attempt was made, which was answered with status (0: it was not)
	// and failed unless err is nil.
	attempted bool
	status    int
	err       error
}

// advance reads on from where the lane stands to the first event that is wanted,
// and makes one attempt to deliver it. It returns once the lane is durable, or
// is as it was. An error with attempted false is the store's, or store.ErrSilent.
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
		return step{lane: l, err: ctx.Err()} // this process ends, which is nobody's failure
	case errors.Is(err, store.ErrSilent):
		return step{lane: l, err: err} // and nothing was sent
	}
	s := step{lane: l, more: true, attempted: true, status: a.Status, err: err}
	if err == nil {
		s.lane.passed(*e)
	} else {
		s.lane.failed(*e, time.Now())
	}
	if err := f.keep(ctx, s.lane); err == nil {
		s.kept = true
	} else {
		// The attempt counts; where the lane stands is known to this process only.
		f.log.Warn("webhook: cursor not stored; a delivery may be repeated after a restart", "webhook", f.hook.ID, "error", err)
	}
	if err := note(ctx, f.store, f.hook.ID, a); err != nil && !errors.Is(err, store.ErrNotFound) {
		f.log.Warn("webhook: attempt not written down", "webhook", f.hook.ID, "error", err)
	}
	return s
}

// passed moves the lane behind an event that is dealt with.
func (l *lane) passed(e store.Event) {
	l.Next, l.Attempts, l.Due, l.Done = e.Sequence+1, 0, time.Time{}, ends(e)
}

// failed counts an attempt, and gives the event up after the last of delays.
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

// keep stores where a lane stands, also while this process is ending.
func (f *follower) keep(ctx context.Context, l lane) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return f.store.Write(ctx, l.write(f.hook.ID))
}

// nextWanted returns the first wanted event at or after l.Next, or nil at the
// end of the log; Done then says whether the run is over.
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
			l.Done = true // its log was deleted, or never had an end
			return nil, l, nil
		}
		if over, err = f.over(ctx, l.Run); err != nil || !over {
			return nil, l, err
		}
		// Its last events may have been committed since the page was read.
	}
}

func (f *follower) over(ctx context.Context, id store.RunID) (bool, error) {
	r, err := f.store.Run(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	return err == nil && r.Status != "active", err
}

// wanted reports whether an event matches the webhook and is not older than it.
func (f *follower) wanted(e store.Event) bool {
	return !e.RecordedAt.Before(f.hook.CreatedAt) && wants(f.hook.Events, e)
}

// body is what is posted for an event.
type body struct {
	Type      timeline.Type `json:"type"`
	Timestamp string        `json:"timestamp"`
	Data      timeline.Doc  `json:"data"`
}

func eventBody(e store.Event) ([]byte, error) {
	doc := timeline.Document(e)
	return json.Marshal(body{doc.Type, doc.Timestamp, doc})
}

// attempt delivers one event.
func (f *follower) attempt(ctx context.Context, e store.Event, number int) (Attempt, error) {
	a := attemptFor(f.hook.ID, ForEvent, e, number)
	b, err := eventBody(e)
	if err != nil {
		return a, err
	}
	return (&sender{url: f.hook.URL, keys: *f.keys.Load(), post: f.post}).send(ctx, a, b)
}

// answered is the status of an answer that is no success.
type answered int

func (a answered) Error() string { return "answered " + http.StatusText(int(a)) }
