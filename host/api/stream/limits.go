package stream

import (
	"context"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// A Client is a reader.
type Client struct {
	// Key is the API key or session whose limit it counts against.
	Key string
	// Check is called at every heartbeat; an error ends the stream. It may be nil.
	Check func(ctx context.Context) error
}

// A LimitError means that there are too many subscribers: rate_limited.
type LimitError struct {
	Scope string // route (for one run), key or global
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("there are %d subscribers already, which is the limit (%s)", e.Limit, e.Scope)
}

// places counts subscribers.
type places struct {
	total int
	runs  map[store.RunID]int
	keys  map[string]int
}

// take reserves a place for a client. Run "" counts for no run.
func (h *Hub) take(run store.RunID, c Client) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, o := &h.places, h.opts
	switch {
	case h.closed:
		return ErrClosed
	case run != "" && p.runs[run] >= o.PerRun:
		return &LimitError{"route", o.PerRun}
	case p.keys[c.Key] >= o.PerKey:
		return &LimitError{"key", o.PerKey}
	case p.total >= o.Total:
		return &LimitError{"global", o.Total}
	}
	p.total++
	p.runs[run]++
	p.keys[c.Key]++
	h.work.Add(1)
	return nil
}

// leave releases the place.
func (h *Hub) leave(run store.RunID, c Client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.places
	p.total--
	if p.runs[run]--; p.runs[run] == 0 {
		delete(p.runs, run)
	}
	if p.keys[c.Key]--; p.keys[c.Key] == 0 {
		delete(p.keys, c.Key)
	}
	h.work.Done()
}
