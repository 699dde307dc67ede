package webhook

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sluicehost/sluice/store"
)

// settle applies the result of advance to the lane and the webhook.
func (f *follower) settle(ctx context.Context, s step) {
	f.busy--
	t := f.lanes[s.lane.Run]
	t.lane, t.busy, t.kept = s.lane, false, t.kept || s.kept
	t.unread = t.unread || s.more
	switch {
	case errors.Is(s.err, context.Canceled):
		t.unread = true
	case !s.attempted && s.err != nil:
		f.log.Warn("webhook: cannot go on", "webhook", f.hook.ID, "run", s.lane.Run, "error", s.err)
		t.Due, t.unread = f.now().Add(storeWait), true
	case s.attempted && s.err == nil:
		f.succeeded(ctx)
	case s.attempted:
		f.failed(ctx, s)
	}
	if len(f.lanes) >= f.most && 2*f.done() >= f.most {
		f.forgetDone(ctx)
	}
}

func (f *follower) done() (n int) {
	for _, t := range f.lanes {
		if t.Done {
			n++
		}
	}
	return n
}

func (f *follower) succeeded(ctx context.Context) {
	f.observe("delivered")
	if f.hook.Failures == 0 {
		return
	}
	f.hook.Failures, f.hook.FailingSince = 0, time.Time{}
	f.save(ctx)
}

// failed counts a failed attempt. After status 410, or failingTime without a success, it marks the webhook to be
// disabled.
func (f *follower) failed(ctx context.Context, s step) {
	now := f.now()
	f.hook.Failures++
	if f.hook.FailingSince.IsZero() {
		f.hook.FailingSince = now
	}
	outcome := "failed"
	if s.lane.Attempts == 0 {
		outcome = "dropped"
	}
	f.observe(outcome)
	f.log.Info("webhook: delivery "+outcome, "webhook", f.hook.ID, "run", s.lane.Run, "status", s.status, "error", s.err)
	switch {
	case s.status == http.StatusGone:
		f.stopped = BecauseGone
	case now.Sub(f.hook.FailingSince) >= failingTime:
		f.stopped = BecauseFailing
	}
	f.save(ctx)
}

// save stores the failures of the webhook, unless it was deleted meanwhile.
func (f *follower) save(ctx context.Context) {
	err := change(ctx, f.store, f.hook.ID, func(s *stored) {
		s.Failures, s.FailingSince = f.hook.Failures, f.hook.FailingSince
		s.Because, s.DisabledAt = f.hook.Because, f.hook.DisabledAt
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
		f.log.Warn("webhook: failures not stored", "webhook", f.hook.ID, "error", err)
	}
}

// disable disables the webhook for good and deletes its cursors. Remaining events are not delivered.
func (f *follower) disable(ctx context.Context) {
	f.hook.Because, f.hook.DisabledAt = f.stopped, f.now()
	f.save(ctx)
	if err := forget(ctx, f.store, f.hook.ID); err != nil {
		f.log.Warn("webhook: cursors not erased", "webhook", f.hook.ID, "error", err)
	}
	f.observe("disabled")
	f.audit(ctx, f.hook.ID, f.stopped)
}
