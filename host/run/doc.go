// Package run is one run: it takes a resolved start, drives a guest through
// the run protocol and leaves one result and one timeline.
//
// A run is a single goroutine that owns all of its state. Guest calls, store
// receipts, answers of the owner, timers and cancellation reach it over
// channels and are handled one at a time, so the protocol needs no locks.
// What a message means stands in calls.go, on one page; whether it is
// allowed is decided by abi.Protocol, which is pure.
//
// Accept makes a run durable, Do performs it. Others steer it with Cancel, Pause
// and Resume and look at it with Live; none of them waits for the run. A wait for
// the disk does not keep the run from being cancelled.
//
// The guest and every byte from it are hostile. The package trusts its Plan,
// which Prepare has checked, and the store's acknowledgements, and nothing
// else.
package run
