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

// A Query is a subscription to a run.
type Query struct {
	Run   store.RunID
	Modes timeline.Modes // 0 is Updates
	// Buffer is bufferMs: frames are sent in batches; for values it is the least time between
	// snapshots.
	Buffer      time.Duration
	OpenwopOnly bool    // vocabulary=openwop
	After       *uint64 // Last-Event-ID; nil: from the beginning
}

// MaxBuffer bounds bufferMs.
const MaxBuffer = 5 * time.Second

// ParseBuffer parses a bufferMs parameter; "" is 0. The error is a *timeline.ParameterError; values
// are not clamped.
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

// MaxSequence is the largest sequence that JSON readers represent exactly.
const MaxSequence = 1<<53 - 1

// ParseLastEventID parses a Last-Event-ID; an invalid one counts as absent.
func ParseLastEventID(text string) *uint64 {
	if n, ok := decimal(text); ok && n <= MaxSequence {
		return &n
	}
	return nil
}

// ParseSequence parses an optional sequence parameter; "" is absent. The error is a
// *timeline.ParameterError.
func ParseSequence(name, text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	if n := ParseLastEventID(text); n != nil {
		return n, nil
	}
	return nil, &timeline.ParameterError{Name: name, Rule: "an integer of at least 0"}
}

// decimal parses a text of digits only.
func decimal(text string) (uint64, bool) {
	if text == "" || text[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	return n, err == nil
}

// An ExpiredError means that the log was deleted: events_expired.
type ExpiredError struct {
	LastEventID    *uint64 // nil if none was given
	RetentionFloor uint64
}

func (e *ExpiredError) Error() string { return "the events of this run are no longer kept" }

// Subscribe opens an event stream of a run. It returns every error that needs an answer with its
// own status: store.ErrNotFound, *ExpiredError, *LimitError, ErrClosed, or an error of the store.
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

// kept returns an error if the log of a run cannot be read.
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

// A follower is the Source of updates, messages, debug and their unions.
type follower struct {
	feed   *feed
	query  Query
	cursor uint64 // next sequence to read
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
		if l.typ.Terminal() { // decided by having read it
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

// admits reports whether a line is a frame of this stream.
func (f *follower) admits(l line) bool {
	return l.modes&f.query.Modes != 0 && !(f.query.OpenwopOnly && l.vocabulary != timeline.Openwop)
}

// take sends a line or adds it to the batch.
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
