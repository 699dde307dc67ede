// Package schedule decides when a connection runs by itself: which instant is
// due, whether its run may start, whether a failure is tried again, and what is
// written down about it.
//
// It starts nothing itself. A Starter makes a run durable together with the
// schedule's own document, so that a crash repeats nothing and loses nothing;
// how the run went is read from the store. All texts of connectors,
// manifests and owners are data here; an expression reaches the cron library
// only after it was checked.
//
// A Scheduler's methods may be called concurrently.
package schedule
