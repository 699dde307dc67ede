// Package store declares what outlives a run: connectors, connections, runs and their
// timelines, records, cursors, detail gaps, open questions, leases.
//
// It has the domain's types and one interface, Store, a sum of small views. The suite in
// store/storetest defines how a Store behaves: a driver is correct if the suite passes.
// Each driver is a folder below this one; store/drivers lists them.
//
// Everything that a run writes passes through Submit as a Commit: facts and the events that
// announce them become durable together or not at all. A commit is refused if its lease is
// not the current one.
//
// The store trusts its callers to have bounded and checked what they pass in,
// but trusts nothing that it reads back from disk.
package store
