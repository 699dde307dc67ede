package stream

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A Query is what a subscriber wants of a run.
type Query struct {
	Run   store.RunID
	Modes timeline.Modes // 0 is Updates
	// Buffer is bufferMs: frames are sent together; in values the least time between
	// two snapshots.
	Buffer      time.Duration
	OpenwopOnly bool    // vocabulary=openwop
	After       *uint64 // Last-Event-ID; nil is the beginning
}

// MaxBuffer is the largest bufferMs.
const MaxBuffer = 5 * time.Second

// ParseBuffer reads a bufferMs parameter; "" is 0. The error is a
// *timeline.ParameterError: nothing is clamped.
func ParseBuffer(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	n, ok := decimal(text)
	if !ok || n > uint64(MaxBuffer/time.Millisecond) {
		return 0, &timeline.ParameterError{Name: "bufferMs", Rule: "an integer from 0 to 5000"}
	}
	return time.Duration(n) * time.Millisecond, nil
}

// MaxSequence is the largest sequence that JSON readers can tell apart.
const MaxSequence = 1<<53 - 1

// ParseLastEventID reads a Last-Event-ID; what is none is as if it were absent.
func ParseLastEventID(text string) *uint64 {
	if n, ok := decimal(text); ok && n <= MaxSequence {
		return &n
	}
	return nil
}

// ParseSequence reads a parameter that must be a sequence if it is there; "" is
// absent. The error is a *timeline.ParameterError.
func ParseSequence(name, text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	if n := ParseLastEventID(text); n != nil {
		return n, nil
	}
	return nil, &timeline.ParameterError{Name: name, Rule: "an integer of at least 0"}
}

// decimal is digits and nothing else.
func decimal(text string) (uint64, bool) {
	if text == "" || text[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// An ExpiredError says that the log was deleted: events_expired.
type ExpiredError struct {
	LastEventID    *uint64 // nil when none was given
	RetentionFloor uint64
}

func (e *ExpiredError) Error() string { return "the events of this run are no longer kept" }

// Subscribe makes an event stream of a run. Everything that an answer with a
// status of its own must say is said here: store.ErrNotFound, *ExpiredError,
// *LimitError, ErrClosed, and whatever the store says.
func (h *Hub) Subscribe(ctx context.Context, c Client, q Query) (*Stream, error) {
	if err := h.kept(ctx, q.Run, q.After); err != nil {
		return nil, err
	}
	if q.Modes == 0 {
		q.Modes = timeline.Updates
	}
	s, err := h.Open(c, q.Run, nil)
	if err != nil {
		return nil, err
	}
	if q.Modes.Has(timeline.Values) {
		s.source = (&values{hub: h, feed: s.feed, query: q}).next
		return s, nil
	}
	f := &follower{feed: s.feed, query: q}
	if q.After != nil {
		f.cursor = *q.After + 1
	}
	s.source = f.next
	return s, nil
}

// kept reports whether the log of a run can be read.
func (h *Hub) kept(ctx context.Context, id store.RunID, after *uint64) error {
	row, err := h.log.Run(ctx, id)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if !row.Pruned {
		return nil
	}
	head, err := h.log.RunHead(ctx, id)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	return &ExpiredError{after, head.Next}
}

// follower is the Source of updates, messages, debug and their unions.
type follower struct {
	feed   *feed
	query  Query
	cursor uint64 // the next sequence to read
	pager  pager
	batch  batch
}

func (f *follower) next(ctx context.Context, out *Out) (time.Duration, error) {
	lines, ended, err := f.feed.page(ctx, f.cursor, &f.pager)
	if err != nil {
		return 0, err
	}
	for _, l := range lines {
		f.cursor = l.seq + 1
		if err := f.take(out, l); err != nil {
			return 0, err
		}
		if l.typ.Terminal() { // Decided by having read it
			return 0, io.EOF
		}
	}
	if ended || out.Closing() || f.batch.due() {
		if err := f.batch.flush(out); err != nil {
			return 0, err
		}
	}
	switch {
	case ended:
		return 0, io.EOF
	case len(lines) > 0:
		return Soon, nil
	}
	return f.batch.wait(), nil
}

// admits says whether a line is a frame of this stream.
func (f *follower) admits(l line) bool {
	return l.modes&f.query.Modes != 0 && !(f.query.OpenwopOnly && l.vocabulary != timeline.Openwop)
}

// take sends a line or keeps it for the batch.
func (f *follower) take(out *Out, l line) error {
	if f.query.Buffer == 0 {
		if !f.admits(l) {
			return nil
		}
		event, data := l.typ, l.doc
		if l.typ == timeline.OutputChunk && f.query.Modes.Has(timeline.Messages) {
			event, data = timeline.AIMessageChunk, l.chunk
		}
		return out.Event(strconv.FormatUint(l.seq, 10), string(event), data)
	}
	if f.admits(l) {
		f.batch.add(l, f.query.Buffer)
	}
	if f.batch.full() || l.typ.Terminal() || l.typ == timeline.NodeSuspended {
		return f.batch.flush(out)
	}
	return nil
}
