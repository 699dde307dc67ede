package webhook

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

const (
	pause    = 100 * time.Millisecond // between two scans
	fallback = time.Minute            // maximum time between scans
	pageRuns = 100
)

// watch scans whenever something was appended to a timeline. Wake-ups are coalesced, so no run waits for it.
func (h *Hooks) watch(ctx context.Context) {
	wake, stop := h.o.Store.Watch("")
	defer stop()
	tick := time.NewTicker(fallback)
	defer tick.Stop()
	var changed <-chan struct{}
	if h.o.Changed != nil {
		var stop func()
		changed, stop = h.o.Changed()
		defer stop()
	}
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		if err := h.scan(ctx); err != nil && ctx.Err() == nil {
			h.o.Log.Warn("webhook: cannot look for runs", "error", err)
		}
		rest.Reset(pause)
		select {
		case <-rest.C:
		case <-ctx.Done():
			return
		}
		select {
		case <-wake:
		case <-h.rescan:
		case <-changed:
			h.reload(ctx)
		case <-tick.C:
			if changed != nil {
				h.reload(ctx)
			}
		case <-ctx.Done():
			return
		}
	}
}

// reload applies changes made by other hosts.
func (h *Hooks) reload(ctx context.Context) {
	if err := h.load(ctx); err != nil && ctx.Err() == nil {
		h.o.Log.Warn("webhook: cannot look for changes", "error", err)
	}
}

// scan tells every follower about runs that it may not know yet. It holds one page of runs in memory, and one id for
// each page.
func (h *Hooks) scan(ctx context.Context) error {
	all := h.followers()
	if len(all) == 0 {
		return nil
	}
	until := h.o.now()
	floor := int64(math.MaxInt64)
	for _, f := range all {
		floor = min(floor, f.floor.Load())
	}
	from := time.UnixMilli(floor)
	if from.After(until) {
		from = until
	}
	tell := func(l scanPart) {
		for _, f := range all {
			f.tell(ctx, l)
		}
	}
	// Read leases first, so that a run that ends meanwhile is in a page.
	active, err := h.active(ctx)
	if err != nil {
		return err
	}
	tell(scanPart{runs: active})
	if err := h.pages(ctx, from, func(runs []foundRun) { tell(scanPart{runs: runs}) }); err != nil {
		return err
	}
	tell(scanPart{from: from, until: until})
	return nil
}

// active returns the runs that hold a lease, regardless of when they started.
func (h *Hooks) active(ctx context.Context) ([]foundRun, error) {
	leases, err := h.o.Store.Leases(ctx)
	if err != nil {
		return nil, err
	}
	var out []foundRun
	for _, l := range leases {
		r, err := h.o.Store.Run(ctx, l.RunID)
		if err != nil {
			return nil, err
		}
		out = append(out, foundRunOf(r, true))
	}
	return out, nil
}

// pages calls tell with the runs that started since from, oldest first, so that a follower with limited room gets the
// oldest.
func (h *Hooks) pages(ctx context.Context, from time.Time, tell func([]foundRun)) error {
	each := func(page []foundRun) {
		slices.Reverse(page)
		tell(page)
	}
	befores := []store.RunID{""}
	for {
		page, more, err := h.page(ctx, befores[len(befores)-1], from)
		if err != nil {
			return err
		}
		if more == "" {
			each(page)
			break
		}
		befores = append(befores, more)
	}
	for i := len(befores) - 2; i >= 0; i-- {
		page, _, err := h.page(ctx, befores[i], from)
		if err != nil {
			return err
		}
		each(page)
	}
	return nil
}

func (h *Hooks) page(ctx context.Context, before store.RunID,
	from time.Time) (page []foundRun, more store.RunID, err error) {
	runs, err := h.o.Store.Runs(ctx, "", before, pageRuns)
	if err != nil {
		return nil, "", err
	}
	for _, r := range runs {
		if r.StartedAt.Before(from) {
			return page, "", nil
		}
		page = append(page, foundRunOf(r, false))
	}
	if len(runs) == pageRuns {
		more = runs[len(runs)-1].ID
	}
	return page, more, nil
}

func foundRunOf(r store.Run, active bool) foundRun {
	return foundRun{id: r.ID, started: r.StartedAt, tags: r.Request.Tags, active: active}
}
