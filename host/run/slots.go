package run

import "context"

// Slots are the places of runs that execute (host.runs of security.md §17). One
// value serves one run, and is called by that run's goroutine alone.
//
// A run takes a place before its guest is started and has it to the end, but not
// while it waits for its owner or is paused: then it uses no processor, and may
// do so for days.
type Slots interface {
	Acquire(ctx context.Context) error // waits for a place
	Leave()                            // the place is free for another
	Return()                           // it goes on at once, also beyond the limit
	Release()                          // the end; after Acquire, and not while away
}

// queue waits for a place.
func (r *run) queue(ctx context.Context) bool {
	if r.deps.Slots == nil {
		return true
	}
	r.control.change(func(l *Live) { l.Queued = true })
	err := r.meanwhile(ctx, r.deps.Slots.Acquire)
	r.control.change(func(l *Live) { l.Queued = false })
	r.placed = err == nil
	if err != nil && r.cancel == nil {
		r.latch(&cause{reason: "launch_failed", origin: "runtime", code: "host_resources", message: "No place to run: " + err.Error()})
	}
	return r.ready()
}

// place gives the run's place away while it waits, and takes it back.
func (r *run) place() {
	away := r.asking != nil || r.paused != nil
	if !r.placed || away == r.away {
		return
	}
	if r.away = away; away {
		r.deps.Slots.Leave()
	} else {
		r.deps.Slots.Return()
	}
}

// release gives the place up.
func (r *run) release() {
	if !r.placed {
		return
	}
	if r.away {
		r.deps.Slots.Return()
	}
	r.deps.Slots.Release()
}
