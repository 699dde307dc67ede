package stream

import (
	"context"
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A ListQuery selects events of a run.
type ListQuery struct {
	Run           store.RunID
	After, Before *uint64 // exclusive; nil: unbounded
	Limit         int     // 1 to MaxPageEvents; 0: as many as a page holds
	Types         timeline.Filter
}

// ParseLimit parses a limit; "" is 0. The error is a *timeline.ParameterError.
func ParseLimit(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPageEvents {
		return 0, &timeline.ParameterError{Name: "limit", Rule: "an integer from 1 to 10000"}
	}
	return n, nil
}

// List returns a page of events at once: the oldest from After on, or, with Before or Limit alone,
// the newest. Both are in ascending order. It returns store.ErrNotFound or *ExpiredError.
func (h *Hub) List(ctx context.Context, q ListQuery) (Page, error) {
	if err := h.kept(ctx, q.Run, q.After); err != nil {
		return Page{}, err
	}
	r := reader{log: h.log, run: q.Run, filter: q.Types, limit: MaxPageEvents, before: q.Before}
	if q.Limit > 0 {
		r.limit = min(q.Limit, MaxPageEvents)
	}
	if q.After == nil && (q.Before != nil || q.Limit > 0) {
		err := r.newest(ctx)
		return r.page(), err
	}
	if q.After != nil {
		r.from = *q.After + 1
	}
	err := r.read(ctx)
	return r.page(), err
}

// newest collects the newest events before the end of the page. The page is complete if it reaches
// the end of a finished log.
func (r *reader) newest(ctx context.Context) error {
	head, err := r.log.RunHead(ctx, r.run)
	if err != nil || head.Next == 0 {
		return err
	}
	if head.Ended {
		if err := r.last(ctx, head.Next-1); err != nil {
			return err
		}
	}
	end := head.Next
	if r.before != nil {
		end = min(end, *r.before)
	}
	r.ended = head.Ended && end == head.Next
	for full := false; end > 0 && !full; {
		events, err := r.log.EventsBefore(ctx, r.run, end, readAtOnce)
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		end = events[0].Sequence
		for _, e := range slices.Backward(events) {
			if r.filter.Admits(timeline.Type(e.Type)) && !r.add(e) {
				full = true
				break
			}
		}
	}
	slices.Reverse(r.docs)
	return nil
}
