package view

import (
	"context"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/patience"
)

// How long control lasts. A dropped connection ends it after ResumeLife, with the session.
const (
	LeaseIdle = 10 * time.Minute
	LeaseLife = 60 * time.Minute
	// taking bounds the wait for the running verb, whose own limit is 60 s.
	taking = 65 * time.Second
)

// A lease is the one control of a run's surface. Its changes:
//
//	free ── take ──► taking ── Surface.Taken ──► held ── release ──► ending ── Surface.Released ──► free
//
// Guarded by Run.mu.
type lease struct {
	state   leaseState
	holder  *session
	until   time.Time // end of LeaseLife
	idle    *time.Timer
	life    *time.Timer
	cancel  context.CancelFunc // cancels taking
	settled chan struct{}      // closed when it is free again; nil while it is free
	guest   page.Viewport      // the viewport before the owner took over
}

type leaseState int

const (
	leaseFree leaseState = iota
	leaseTaking
	leaseHeld
	leaseEnding
)

// take gives a session the lease if it is free. It returns at once; viewers are told when it is
// held.
func (r *Run) take(s *session) bool {
	r.mu.Lock()
	if r.lease.state != leaseFree || s.mode != ModeControl || s.barred || r.screen == nil {
		mine := r.lease.holder == s
		r.mu.Unlock()
		return mine
	}
	ctx, cancel := context.WithTimeout(context.Background(), taking)
	r.lease = lease{state: leaseTaking, holder: s, cancel: cancel, settled: make(chan struct{})}
	screen := r.screen
	r.mu.Unlock()
	r.refresh()
	r.views.work.Go(func() { r.taken(ctx, s, screen) })
	return true
}

// taken waits for the guest's verb to end and starts the lease.
func (r *Run) taken(ctx context.Context, s *session, screen page.Screen) {
	r.acting.Lock()
	defer r.acting.Unlock()
	err := r.surface.Taken(ctx)
	r.mu.Lock()
	gone := err == nil && ctx.Err() != nil // given up meanwhile
	r.lease.cancel()
	if err != nil {
		r.free()
	} else if !gone {
		r.lease.state = leaseHeld
		r.lease.guest = screen.Viewport()
		r.lease.until = time.Now().Add(LeaseLife)
		r.lease.idle = time.AfterFunc(LeaseIdle, func() { r.endLease(s) })
		r.lease.life = time.AfterFunc(LeaseLife, func() { r.endLease(s) })
		if r.broadcast != nil {
			r.broadcast.look()
		}
	}
	r.mu.Unlock()
	switch {
	case gone:
		r.released(screen, nil)
	case err != nil:
		r.tell(outgoing{"type": "notice", "code": "control_not_given"})
	default:
		if s.viewport != nil {
			r.resize(screen, *s.viewport)
		}
	}
	r.refresh()
}

// touch records activity of the holder.
func (r *Run) touch(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lease.state == leaseHeld && r.lease.holder == s {
		r.lease.idle.Reset(LeaseIdle)
	}
}

// holds reports whether a session has control.
func (r *Run) holds(s *session) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lease.state == leaseHeld && r.lease.holder == s
}

// endLease ends the lease if the session holds it.
func (r *Run) endLease(s *session) {
	r.mu.Lock()
	if r.lease.holder != s {
		r.mu.Unlock()
		return
	}
	switch r.lease.state {
	case leaseTaking:
		r.lease.cancel()
		r.mu.Unlock()
		return
	case leaseHeld:
	default:
		r.mu.Unlock()
		return
	}
	r.lease.state = leaseEnding
	r.lease.idle.Stop()
	r.lease.life.Stop()
	screen, guest := r.screen, r.lease.guest
	r.mu.Unlock()
	r.views.work.Go(func() {
		r.acting.Lock()
		defer r.acting.Unlock()
		r.released(screen, &guest)
		r.refresh()
	})
}

// bar ends the lease of a session and prevents it from taking another, since messages of its
// connection may still be queued.
func (r *Run) bar(s *session) {
	r.mu.Lock()
	s.barred = true
	r.mu.Unlock()
	r.endLease(s)
}

// released restores the page's viewport and ends the control. The caller holds acting.
func (r *Run) released(screen page.Screen, guest *page.Viewport) {
	if screen != nil && guest != nil && screen.Viewport() != *guest {
		r.resize(screen, *guest)
	}
	r.surface.Released()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free()
	if r.broadcast != nil {
		r.broadcast.look()
	}
}

// free makes the lease free. The caller holds mu.
func (r *Run) free() {
	close(r.lease.settled)
	r.lease = lease{}
}

// Settled waits while a lease is ending, so that the guest's first verb after an interaction is not
// refused because of it.
func (r *Run) Settled(ctx context.Context) error {
	r.mu.Lock()
	ending, settled := r.lease.state == leaseEnding, r.lease.settled
	r.mu.Unlock()
	if !ending {
		return nil
	}
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// resize sets the page's viewport and updates the picture.
func (r *Run) resize(screen page.Screen, v page.Viewport) {
	ctx, cancel := patience.Within(context.Background(), stepLimit)
	defer cancel()
	if screen.SetViewport(ctx, v) != nil {
		r.tell(outgoing{"type": "notice", "code": "page_busy"})
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broadcast != nil {
		r.broadcast.again()
	}
}
