package stream

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// A Page is the body of a poll or a list.
type Page struct {
	Events []timeline.Doc `json:"events"`
	// IsComplete means that no event can follow this page.
	IsComplete     bool             `json:"isComplete"`
	TerminalStatus *timeline.Status `json:"terminalStatus"` // null while the run is active
}

// Bounds of a page of events. Its size is that of the payloads plus an estimate for each event's
// other members.
const (
	MaxPageEvents = 10_000
	maxPageBytes  = 8 << 20
	aroundPayload = 400
	readAtOnce    = 250
)

// A PollQuery asks for the events that follow one.
type PollQuery struct {
	Run         store.RunID
	After       *uint64       // lastSequence, exclusive; nil: from the start
	Timeout     time.Duration // 1 s to 60 s; 0 is 30 s
	OpenwopOnly bool
}

// ParseTimeout parses a poll's timeout in seconds; "" is 30. The error is a
// *timeline.ParameterError.
func ParseTimeout(text string) (time.Duration, error) {
	if text == "" {
		return defaultTimeout, nil
	}
	n, ok := decimal(text)
	if !ok || n < 1 || n > 60 {
		return 0, &timeline.ParameterError{Name: "timeout", Rule: "an integer from 1 to 60"}
	}
	return time.Duration(n) * time.Second, nil
}

const defaultTimeout = 30 * time.Second

// Poll answers at once if there are events or the run is over, otherwise at the first commit with
// an event, or with an empty page after the timeout or when the hub is closed. Its errors are those
// of Subscribe and c.Check.
func (h *Hub) Poll(ctx context.Context, c Client, q PollQuery) (Page, error) {
	if err := h.kept(ctx, q.Run, q.After); err != nil {
		return Page{}, err
	}
	if err := h.take(q.Run, c); err != nil {
		return Page{}, err
	}
	defer h.leave(q.Run, c)
	if q.Timeout <= 0 {
		q.Timeout = defaultTimeout
	}
	over := time.NewTimer(q.Timeout)
	defer over.Stop()
	r := reader{log: h.log, run: q.Run, filter: timeline.Filter{OpenwopOnly: q.OpenwopOnly}, limit: MaxPageEvents}
	if q.After != nil {
		r.from = *q.After + 1
	}
	if err := r.read(ctx); err != nil || len(r.docs) > 0 || r.ended {
		return r.page(), err
	}
	wake := make(chan struct{}, 1)
	f := h.follow(q.Run, wake)
	defer h.unfollow(f, wake)
	beat := time.NewTicker(h.opts.Heartbeat)
	defer beat.Stop()
	for {
		if err := r.read(ctx); err != nil || len(r.docs) > 0 || r.ended {
			return r.page(), err
		}
		select {
		case <-wake:
		case <-beat.C:
			if c.Check != nil {
				if err := c.Check(ctx); err != nil {
					return Page{}, err
				}
			}
		case <-over.C:
			return r.page(), nil
		case <-h.done:
			return r.page(), nil
		case <-ctx.Done():
			return Page{}, ctx.Err()
		}
	}
}

// A reader collects the events of a page, oldest first.
type reader struct {
	log    Log
	run    store.RunID
	filter timeline.Filter
	limit  int
	before *uint64 // exclusive end of the page

	from   uint64 // the next sequence to read
	docs   []timeline.Doc
	bytes  int
	ended  bool // the log is over and the page reaches its end
	status timeline.Status
}

// read continues to the end of the log or of the page.
func (r *reader) read(ctx context.Context) error {
	head, err := r.log.RunHead(ctx, r.run)
	if err != nil {
		return err
	}
	if head.Ended && head.Next > 0 {
		if err := r.last(ctx, head.Next-1); err != nil {
			return err
		}
	}
	end := head.Next
	if r.before != nil {
		end = min(end, *r.before)
	}
	for r.from < end {
		events, err := r.log.Events(ctx, r.run, r.from, int(min(readAtOnce, end-r.from)))
		if err != nil {
			return err
		}
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			if r.filter.Admits(timeline.Type(e.Type)) && !r.add(e) {
				return nil
			}
			r.from = e.Sequence + 1
		}
	}
	r.ended = head.Ended && r.from >= head.Next
	return nil
}

// add adds an event. It reports false if the page is full.
func (r *reader) add(e store.Event) bool {
	d := timeline.Document(e)
	n := len(d.Payload) + aroundPayload
	if len(r.docs) == r.limit || len(r.docs) > 0 && r.bytes+n > maxPageBytes {
		return false
	}
	r.docs, r.bytes = append(r.docs, d), r.bytes+n
	return true
}

// last learns how the run ended from its last event.
func (r *reader) last(ctx context.Context, seq uint64) error {
	events, err := r.log.Events(ctx, r.run, seq, 1)
	if err == nil && len(events) == 1 {
		r.status = timeline.TerminalStatus(events[0])
	}
	return err
}

func (r *reader) page() Page {
	p := Page{Events: r.docs, IsComplete: r.ended}
	if p.Events == nil {
		p.Events = []timeline.Doc{}
	}
	if r.status != "" {
		p.TerminalStatus = &r.status
	}
	return p
}
