package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
)

// values is the Source of snapshots: one after every event that updates would show, each of the run
// at that time, and at most one a second for measurements. A client that resumes, or sets a
// distance between snapshots, begins with the present state instead of the first.
type values struct {
	hub    *Hub
	feed   *feed
	query  Query
	pager  pager
	fold   timeline.Fold
	opened bool      // base is known
	base   uint64    // events before it share the first snapshot; 0: none
	sent   uint64    // sequence after the newest one sent; 0: none
	at     time.Time // time of that
	due    time.Time // when the next is due; zero: none
}

func (v *values) next(ctx context.Context, out *Out) (time.Duration, error) {
	if err := v.open(ctx); err != nil {
		return 0, err
	}
	if v.fold.Next() < v.base {
		return Soon, v.catchUp(ctx, out)
	}
	lines, ended, err := v.feed.page(ctx, v.fold.Next(), &v.pager)
	if err != nil {
		return 0, err
	}
	for _, l := range lines {
		if err := v.take(ctx, out, l); err != nil {
			return 0, err
		}
	}
	switch {
	case out.Closing() && !v.due.IsZero():
		return v.settle(ctx, out)
	case len(lines) > 0:
		return Soon, nil
	case ended:
		return 0, io.EOF
	case v.due.IsZero():
		return 0, nil
	}
	if left := time.Until(v.due); left > 0 && !out.Closing() {
		return left, nil
	}
	return v.settle(ctx, out)
}

// open determines what the first snapshot contains.
func (v *values) open(ctx context.Context) error {
	if v.opened || v.query.After == nil && v.query.Buffer == 0 {
		return nil
	}
	head, err := v.hub.log.RunHead(ctx, v.query.Run)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	v.opened, v.base = true, head.Next
	return nil
}

// catchUp reads a page of the first snapshot's events, and sends the snapshot after the last.
func (v *values) catchUp(ctx context.Context, out *Out) error {
	events, err := v.hub.log.Events(ctx, v.query.Run, v.fold.Next(), v.pager.plan())
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	bytes := 0
	for _, e := range events {
		if e.Sequence < v.base {
			v.fold.Add(e)
			bytes += len(e.Data)
		}
	}
	v.pager.learn(len(events), bytes)
	if len(events) == 0 { // deleted meanwhile
		v.base = v.fold.Next()
	}
	if v.fold.Next() < v.base {
		return nil
	}
	if err := v.send(ctx, out); err != nil || !v.fold.Ended() {
		return err
	}
	return io.EOF
}

// take reads one event and sends a snapshot if the event calls for one.
func (v *values) take(ctx context.Context, out *Out, l line) error {
	v.fold.Add(l.event)
	now := time.Now()
	switch {
	case l.typ.Terminal(): // never skipped or delayed
		if err := v.send(ctx, out); err != nil {
			return err
		}
		return io.EOF
	case v.query.After != nil && l.seq <= *v.query.After:
	case l.effect == timeline.AtOnce && v.query.Buffer == 0:
		return v.send(ctx, out)
	case l.effect == timeline.AtOnce:
		v.want(later(now, v.at.Add(v.query.Buffer)))
	case l.effect == timeline.Coalesced:
		v.want(later(now, v.at.Add(max(v.hub.opts.Coalesce, v.query.Buffer))))
	}
	return nil
}

func (v *values) want(at time.Time) {
	if v.due.IsZero() || at.Before(v.due) {
		v.due = at
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// settle sends a snapshot that is due, unless there is more to read first: a page may have split a
// commit, in whose middle a run has no state.
func (v *values) settle(ctx context.Context, out *Out) (time.Duration, error) {
	more, err := v.hub.log.Events(ctx, v.query.Run, v.fold.Next(), 1)
	if err != nil {
		return 0, fmt.Errorf("read events: %w", err)
	}
	if len(more) > 0 && !out.Closing() {
		return 0, nil // the feed has them shortly
	}
	return 0, v.send(ctx, out)
}

// send writes the snapshot of what was read, so no other is due.
func (v *values) send(ctx context.Context, out *Out) error {
	v.due = time.Time{}
	if v.fold.Next() <= v.sent {
		return nil
	}
	frame, err := v.frame(ctx)
	if err != nil {
		return err
	}
	v.sent, v.at = v.fold.Next(), time.Now()
	return out.Event(strconv.FormatUint(v.sent-1, 10), string(timeline.StateSnapshot), frame)
}

func (v *values) frame(ctx context.Context) ([]byte, error) {
	row, err := v.hub.log.Run(ctx, v.query.Run)
	if err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	a, err := v.hub.about(ctx, row)
	if err != nil {
		return nil, err
	}
	if next, _, _ := v.feed.progress(); v.fold.Next() < next {
		a.Live = nil // it describes the present, and this is the past
	}
	raw, err := json.Marshal(v.fold.Snapshot(row, a))
	if err != nil {
		return nil, fmt.Errorf("render snapshot: %w", err)
	}
	return raw, nil
}
