// Package store holds what outlives a run: connectors, connections, runs and
// their timelines, records, cursors, detail gaps, open questions, leases.
//
// It declares domain types and one interface, Store. What a Store is, beyond
// its method set, is the suite in store/storetest: a driver is right when the
// suite passes. Drivers live in store/badger and store/postgres.
//
// Everything a run writes passes through Submit as one Commit: facts and the
// events that announce them become durable together or not at all (invariant
// 2, R74, R92, R176). A commit is refused when its lease is not the current one
// (R79, R177, R183).
//
// The store trusts its callers to have bounded and checked what they hand in;
// it trusts nothing it reads back from disk.
package store
