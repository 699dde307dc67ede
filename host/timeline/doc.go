// Package timeline says what a run's log means: the catalogue of event types,
// an event as a document, the log as a snapshot, its questions and requests for
// assistance, and what an owner is shown of them (run-api.md sections 6 to 9,
// runtime.md §15).
//
// The package is pure: no I/O, no clock, no goroutine. Everything is derived
// from events and the run row, so that API, streams, webhooks and pages agree.
// Members of event data are text that guests had a hand in: they are
// bounded, never interpreted beyond the fields named here, and no bytes in them
// make the package fail.
package timeline
