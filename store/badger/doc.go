// Package badger is the embedded driver of store.Store: one process, one data
// directory, one Badger engine (security.md §11, §16).
//
// It owns DATA/db (the engine), DATA/witness (proof of completeness), DATA/lock
// and DATA/unclean. One committer writes everything (S115): it gathers what all
// runs have ready, lays it into one engine transaction, appends the witness
// entry, and only then answers. Readers see what the witness has seen.
//
// The package trusts its callers to have bounded and checked what they hand in
// (DESIGN.md invariant 1). It trusts nothing it reads back: every value carries
// a checksum bound to its key, every stream counters that a recount must meet,
// every commit a link in a chain that is kept outside the engine as well.
package badger
