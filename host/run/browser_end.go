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
func (br *browsing) closeBrowser() {
	b := br
	if b.binding == nil {
		return
	}
	b.closed = true
	br.abortBrowserCall()
	b.spent = b.binding.Spent()
	ctx, cancel := context.WithTimeout(br.ctx, browserClose)
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
			br.listen()
		case now := <-br.loop.ticking():
			if !br.outcome.over() {
				br.lease.renew(now)
			}
		}
		if err != nil {
			slog.Error("close browser", "run", br.id, "error", err)
		}
	}
	br.listen()
	b.end()
	br.loop.settled()
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
func (br *browsing) abortBrowserCall() {
	if !br.calling {
		return
	}
	br.calls.abortCall()
	late := time.NewTimer(browserLeft)
	defer late.Stop()
	select {
	case f := <-br.calls.ended():
		f.in.Release()
		br.calling = false
	case <-late.C:
	}
}

// endedByBrowser ends collection as failed, as a DONE of the guest with that error
// would. A guest that sent its DONE before has ended it already.
func (br *browsing) endedByBrowser(f BrowserFailure) {
	if !br.outcome.ready() || br.outcome.proposal() != nil || br.outcome.left() != nil {
		return
	}
	failure := &abi.DoneError{Message: redact.Gap(br.canary.Text(f.Message), 500), Code: f.Code, Retryable: &f.Retryable}
	if f.Hint != "" {
		failure.RecoveryHint = &abi.RecoveryHint{Action: f.Hint, Retryable: &f.Retryable}
	}
	br.outcome.propose(&abi.DoneMessage{Status: abi.Failed, RecordsEmitted: ptr(br.proto.Records()), Error: failure})
	br.outcome.latch(&cause{reason: "connector_reported_failed", origin: "runtime", message: failure.Message})
}
