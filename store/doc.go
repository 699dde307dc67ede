// Package store declares what outlives a run: connectors, connections, runs and
// their timelines, records, cursors, detail gaps, open questions, leases.
//
// It has the domain's types and one interface, Store, which is a sum of small
// views. What a Store is, beyond its method set, is the suite in store/storetest:
// a driver is right when the suite passes. A driver is a folder below this one;
// store/drivers lists them.
//
// Everything a run writes passes through Submit as one Commit: facts and the
// events that announce them become durable together or not at all. A commit is
// refused when its lease is not the current one.
//
// The store trusts its callers to have bounded and checked what they hand in;
// it trusts nothing it reads back from disk.
package store
