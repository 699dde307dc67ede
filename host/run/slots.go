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
func (ps *pause) queue(ctx context.Context) bool {
	if ps.deps.Slots == nil {
		return true
	}
	ps.control.change(func(l *Live) { l.Queued = true })
	err := ps.loop.meanwhile(ctx, ps.deps.Slots.Acquire)
	ps.control.change(func(l *Live) { l.Queued = false })
	ps.placed = err == nil
	if err != nil && !ps.outcome.cancelled() {
		ps.outcome.latch(&cause{reason: "launch_failed", origin: "runtime", code: "host_resources", message: "No place to run: " + err.Error()})
	}
	return ps.outcome.ready()
}

// place gives the run's place away while it waits, and takes it back.
func (ps *pause) place() {
	away := ps.questions.open() || ps.paused != nil
	if !ps.placed || away == ps.away {
		return
	}
	if ps.away = away; away {
		ps.deps.Slots.Leave()
	} else {
		ps.deps.Slots.Return()
	}
}

// release gives the place up.
func (ps *pause) release() {
	if !ps.placed {
		return
	}
	if ps.away {
		ps.deps.Slots.Return()
	}
	ps.deps.Slots.Release()
}
