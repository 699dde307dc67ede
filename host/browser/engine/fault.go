package engine

import (
	"context"
	"errors"

	"github.com/sluicehost/sluice/host/browser/page"
)

// What cuts a verb short (B68).
var (
	errDeadline = errors.New("the deadline of the verb is over")
	errLost     = page.ErrLost
	errLease    = errors.New("the owner is in control")
)

// Details of faults (B90, B91).
const (
	detailLost      = "surface_lost"
	detailInternal  = "internal"
	detailDialog    = "dialog_open"
	detailOwner     = "owner_in_control"
	detailHost      = "host_denied"
	detailScheme    = "scheme_denied"
	detailUntrusted = "no_trusted_events"
	detailAlready   = "already_true_before"
	detailAbsent    = "delta_target_absent"
	detailRestless  = "changes_by_itself"
	detailNever     = "never_verified"
	detailUnread    = "state_unavailable"
)

// A fault is why an action, or one pass of it, failed.
type fault struct {
	code   Code
	detail string
	stage  Stage
}

// rawFault is the table of errors (B91): it looks at their kind and never at their
// text.
func rawFault(err error, stage Stage) *fault {
	f := &fault{code: Unknown, detail: detailInternal, stage: stage}
	switch {
	case errors.Is(err, page.ErrLost):
		f.detail = detailLost
	case errors.Is(err, errLease):
		f.code, f.detail = ActionRejected, detailOwner
	case errors.Is(err, errDeadline), errors.Is(err, page.ErrHung), errors.Is(err, context.DeadlineExceeded):
		f.code, f.detail = Timeout, ""
	case errors.Is(err, page.ErrDialog):
		f.code, f.detail = ActionRejected, detailDialog
	case errors.Is(err, page.ErrGone):
		f.code, f.detail = StaleReference, ""
	case errors.Is(err, page.ErrScheme):
		f.code, f.detail = ActionRejected, detailScheme
	case errors.Is(err, page.ErrHost):
		f.code, f.detail = ActionRejected, detailHost
	case errors.Is(err, page.ErrKind):
		f.code, f.detail = SemanticMismatch, ""
	case errors.Is(err, page.ErrCertificate):
		f.detail = "certificate_error"
	}
	return f
}

// refusedFault is that of an address which a page went to and which was taken back
// (B24); nil for none.
func refusedFault(h page.Happened) *fault {
	if len(h.Refused) == 0 {
		return nil
	}
	return rawFault(h.Refused[0], StageDispatch)
}

// unsent reports that an error says by its kind that nothing reached the browser.
// Every other one leaves it open, and what is open counts as sent (B96).
func unsent(err error) bool {
	for _, before := range []error{page.ErrKey, page.ErrScheme, page.ErrHost, page.ErrKind, page.ErrGone, page.ErrDialog} {
		if errors.Is(err, before) {
			return true
		}
	}
	return false
}
