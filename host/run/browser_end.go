package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run/redact"
)

// How long a browser may take to close: its trace, a graceful end
// and what is in between. A binding that does not keep to it is left behind a
// little later.
const (
	browserClose = 20 * time.Second
	browserLeft  = 2 * time.Second
)

// closeBrowser releases the surface, on every path before the terminal
// event. What the binding says meanwhile is recorded, and the lease is kept.
func (r *run) closeBrowser() {
	b := &r.browser
	if b.binding == nil {
		return
	}
	b.closed = true
	r.abortBrowserCall()
	b.spent = b.binding.Spent()
	ctx, cancel := context.WithTimeout(r.ctx, browserClose)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- b.binding.Close(ctx) }()
	late := time.NewTimer(browserClose + browserLeft)
	defer late.Stop()
	for closed := false; !closed; {
		var err error
		select {
		case err = <-done:
			closed = true
		case <-late.C:
			err, closed = context.DeadlineExceeded, true
		case <-b.wake:
			r.listen()
		case now := <-r.ticks:
			if r.latched == nil && now.After(r.renewAt) {
				r.renew(now)
			}
		}
		if err != nil {
			slog.Error("close browser", "run", r.id, "error", err)
		}
	}
	r.listen()
	b.end()
	r.settled()
}

// unrepeated is the hint of a failure after which a stored password was sent for
// nothing: whatever the connector says of it, its owner looks first.
func (b *browsing) unrepeated(h Hint) Hint {
	switch {
	case !b.spent:
		return h
	case h.Action == abi.RefreshCredentials:
		return Hint{h.Action, false}
	}
	return Hint{abi.ManualActionRequired, false}
}

// abortBrowserCall ends a call that nobody waits for any more, so that the binding
// is not closed under it. One that does not heed its context is left to that.
func (r *run) abortBrowserCall() {
	if !r.browser.calling {
		return
	}
	r.abort()
	late := time.NewTimer(browserLeft)
	defer late.Stop()
	select {
	case f := <-r.finished:
		f.in.Release()
		r.browser.calling = false
	case <-late.C:
	}
}

// endedByBrowser ends collection as failed, as a DONE of the guest with that error
// would. A guest that sent its DONE before has ended it already.
func (r *run) endedByBrowser(f BrowserFailure) {
	if !r.ready() || r.done != nil || r.exit != nil {
		return
	}
	failure := &abi.DoneError{Message: redact.Gap(r.canary.Text(f.Message), 500), Code: f.Code, Retryable: &f.Retryable}
	if f.Hint != "" {
		failure.RecoveryHint = &abi.RecoveryHint{Action: f.Hint, Retryable: &f.Retryable}
	}
	r.done = &abi.DoneMessage{Status: abi.Failed, RecordsEmitted: ptr(r.proto.Records()), Error: failure}
	r.latch(&cause{reason: "connector_reported_failed", origin: "runtime", message: failure.Message})
}
