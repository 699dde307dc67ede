package stream

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

// A feed is shared by all followers of one run: one watch of the store, one poll a second as a
// fallback, and the newest lines. It exists while it is followed. The feed of run "" only passes on
// wake-ups.
type feed struct {
	log  Log
	run  store.RunID
	look time.Duration
	stop context.CancelFunc

	mu        sync.Mutex // guards what is below
	followers map[chan struct{}]bool
	ready     bool   // next is the end of the log; no lines are passed on before
	next      uint64 // first sequence that the feed has not read
	ended     bool   // the event before next is terminal
	lines     []line // the newest ones, contiguous up to next; never changed in place
	bytes     int
}

// follow adds a wake-up channel to the feed of a run, creating the feed if necessary.
func (h *Hub) follow(run store.RunID, wake chan struct{}) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[run]
	if f == nil {
		ctx, cancel := context.WithCancel(context.Background())
		f = &feed{log: h.log, run: run, look: h.opts.Look, stop: cancel, followers: map[chan struct{}]bool{}}
		h.feeds[run] = f
		h.work.Go(func() { f.work(ctx) })
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers[wake] = true
	return f
}

// unfollow removes a wake-up channel. The last one ends the feed.
func (h *Hub) unfollow(f *feed, wake chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, wake)
	if len(f.followers) == 0 {
		f.stop()
		delete(h.feeds, f.run)
	}
}

// work reads the log until the run has ended or nobody follows.
func (f *feed) work(ctx context.Context) {
	wake, stop := f.log.Watch(f.run)
	defer stop()
	tick := time.NewTicker(f.look)
	defer tick.Stop()
	if f.run == "" {
		tick.Stop() // followers of all runs poll by themselves
	}
	var p pager
	failed := false
	for {
		err := f.advance(ctx, &p)
		if ctx.Err() != nil || f.over() {
			return
		}
		if err != nil && !failed {
			slog.Error("follow run", "run", f.run, "error", err)
		}
		failed = err != nil
		select {
		case <-wake:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (f *feed) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ready && f.ended
}

// advance reads new events and wakes all followers if there are any.
func (f *feed) advance(ctx context.Context, p *pager) error {
	if f.run == "" {
		f.wakeAll()
		return nil
	}
	if !f.ready { // written by this goroutine only
		head, err := f.log.RunHead(ctx, f.run)
		if err != nil {
			return err
		}
		// Resuming clients are a few events behind, as all are when a host comes back, so these are
		// read once for all.
		events, err := f.log.Events(ctx, f.run, head.Next-min(head.Next, firstPage), p.plan())
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.next, f.ended = head.Next, head.Ended
		f.mu.Unlock()
		if err := f.take(events, p); err != nil {
			return err
		}
		f.mu.Lock()
		f.ready = true
		f.mu.Unlock()
		f.wakeAll()
	}
	for !f.ended {
		events, err := f.log.Events(ctx, f.run, f.next, p.plan())
		if err != nil || len(events) == 0 {
			return err
		}
		limit := p.limit
		if err := f.take(events, p); err != nil {
			return err
		}
		f.wakeAll()
		if len(events) < limit {
			break
		}
	}
	return nil
}

// take renders events and adds them to the newest lines.
func (f *feed) take(events []store.Event, p *pager) error {
	added, bytes := make([]line, 0, len(events)), 0
	for _, e := range events {
		l, err := render(e)
		if err != nil {
			return err
		}
		added, bytes = append(added, l), bytes+l.size()
	}
	p.learn(len(added), bytes)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines, f.bytes = append(f.lines, added...), f.bytes+bytes
	drop := 0
	for len(f.lines)-drop > pageEvents || f.bytes > pageBytes && len(f.lines)-drop > 1 {
		f.bytes -= f.lines[drop].size()
		drop++
	}
	if drop > 0 {
		f.lines = append(make([]line, 0, pageEvents), f.lines[drop:]...)
	}
	if len(added) > 0 {
		last := added[len(added)-1]
		f.next, f.ended = last.seq+1, last.typ.Terminal()
	}
	return nil
}

func (f *feed) wakeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for wake := range f.followers {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// progress returns how far the feed has read, and whether the log has ended there.
func (f *feed) progress() (next uint64, ended, ready bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.next, f.ended, f.ready
}

// page returns at most one page of lines from a cursor. ended means that the log ends before the
// cursor. A follower that is behind the shared lines reads the store by itself.
func (f *feed) page(ctx context.Context, from uint64, p *pager) (lines []line, ended bool, err error) {
	f.mu.Lock()
	shared, next, ready, over := f.lines, f.next, f.ready, f.ended
	f.mu.Unlock()
	if !ready || from >= next {
		return nil, ready && over, nil
	}
	if len(shared) > 0 && from >= shared[0].seq {
		return shared[from-shared[0].seq:], false, nil
	}
	events, err := f.log.Events(ctx, f.run, from, p.plan())
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	for _, e := range events {
		l, err := render(e)
		if err != nil {
			return nil, false, err
		}
		if bytes += l.size(); bytes > pageBytes && len(lines) > 0 {
			break
		}
		lines = append(lines, l)
	}
	p.learn(len(lines), bytes)
	return lines, false, nil
}
