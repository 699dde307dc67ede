// Package webhook tells other servers what happens in runs: signed deliveries
// that follow the timelines (run-api.md section 11).
//
// Whoever calls has checked that the principal may (A28). The server behind a
// URL is hostile: addresses are checked whenever one is dialled (A241), nothing
// of its answer is kept or told but the status and a kind of failure, and all that
// it can use up is bounded.
//
// Every webhook has a cursor for each run, so nothing is lost while its server
// or this process is down. A run knows nothing of its webhooks and never waits
// for one. Deliveries of one run are made in the order of its log, at least
// once; those of different runs are in no order.
package webhook

import "fmt"

// Limits of an installation.
const (
	MaxWebhooks = 64
	maxEvents   = 64
	maxTags     = 32
	maxTag      = 128
	maxURL      = 2048
)

// ErrTooMany: there are MaxWebhooks already.
var ErrTooMany = fmt.Errorf("there are %d webhooks already; delete one first", MaxWebhooks)

// A Refusal is a definition that cannot be taken (400 validation_error). It
// names the member and never repeats its value (A45).
type Refusal struct {
	Member  string // url, events, secret or tags
	Message string
}

func (e *Refusal) Error() string { return e.Member + " " + e.Message }

func refuse(member, format string, args ...any) *Refusal {
	return &Refusal{Member: member, Message: fmt.Sprintf(format, args...)}
}
