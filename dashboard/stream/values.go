package stream

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/dashboard/timeline"
)

// values is the Source of snapshots (A121).
type values struct {
	hub    *Hub
	feed   *feed
	query  Query
	fold   *folded
	cursor uint64    // lines before it are in a snapshot that was sent, or asked for none
	sent   uint64    // sequence after the newest that was sent; 0 is none
	at     time.Time // when that was
	due    time.Time // of the next one; zero is none
	end    bool      // the terminal event was seen, so the next one is the last
}

func (v *values) next(ctx context.Context, out *Out) (time.Duration, error) {
	next, ended, ready := v.feed.standing()
	if !ready {
		return 0, nil // the feed wakes everybody once it is
	}
	now := time.Now()
	if v.sent == 0 && next > 0 { // the baseline
		v.due, v.cursor, v.end = now, next, ended
		if ended {
			return 0, v.send(ctx, out, next)
		}
		if v.query.After != nil {
			v.cursor = max(v.cursor, *v.query.After+1)
		}
	}
	if v.sent > 0 && next > v.cursor {
		v.look(now, next)
	}
	if v.end = v.end || ended; v.end && v.sent < next {
		v.due = now // the last one is never skipped, and waits for nothing
	}
	if v.due.IsZero() {
		if v.end {
			return 0, io.EOF
		}
		return 0, nil
	}
	if left := v.due.Sub(now); left > 0 && !out.Closing() {
		return left, nil
	}
	return 0, v.send(ctx, out, next)
}

// look decides from the lines that are new when a snapshot is due.
func (v *values) look(now time.Time, next uint64) {
	v.feed.mu.Lock()
	lines := v.feed.lines
	v.feed.mu.Unlock()
	if len(lines) == 0 || lines[0].seq > v.cursor {
		v.want(now) // it lags: the newest state will do
	}
	for _, l := range lines {
		if l.seq < v.cursor || l.seq >= next {
			continue
		}
		switch l.effect {
		case timeline.AtOnce:
			v.want(later(now, v.at.Add(v.query.Buffer)))
		case timeline.Coalesced:
			v.want(later(now, v.at.Add(max(v.hub.opts.Coalesce, v.query.Buffer))))
		}
	}
	v.cursor = next
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

// send writes the newest snapshot, which settles whatever was owed before it.
func (v *values) send(ctx context.Context, out *Out, need uint64) error {
	if v.fold == nil {
		v.fold = v.hub.folds.of(v.query.Run)
	}
	frame, next, ended, err := v.hub.frameOf(ctx, v.fold, v.query.Run, need)
	if err != nil {
		return err
	}
	v.due = time.Time{}
	if next > v.sent {
		if err := out.Event(strconv.FormatUint(next-1, 10), string(timeline.StateSnapshot), frame); err != nil {
			return err
		}
		v.sent, v.at, v.cursor = next, time.Now(), max(v.cursor, next)
	}
	if ended {
		return io.EOF
	}
	return nil
}
