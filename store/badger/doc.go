// Package badger is the embedded driver of store.Store: one process, one data
// directory, one Badger engine.
//
// It owns DATA/db (the engine, and bulk/ beside the engine's files),
// DATA/witness (proof of completeness), DATA/lock, DATA/unclean and
// DATA/ballast. One committer writes everything: it gathers what all runs have
// ready into groups. For each group the bulk is synced first, then the engine's
// transaction, then the witness entry; only then are the runs answered, and only
// then do readers see it.
//
// # Layout
//
//	engine   facts: connectors, connections, leases, runs, events, states, gaps,
//	         counters; and places of bulk
//	bulk     segments: the records of a flush as the run packed them;
//	         pages and filters of index runs (package bulk)
//
// A stream's index says for every key which version is current. It is a small
// log-structured tree: the newest rows in memory, the rest in sorted runs whose
// pages are addressed by the hash of the key, each behind a Bloom filter in
// memory. A new key costs a probe per run; a known key one page, or none when a
// source is read again in the order of the last time. Segments are the log of
// the rows in memory, so a flush writes no index at all. Superseded versions
// are bits; segments of which half is superseded are written again without it,
// and so are bulk files.
//
// # Trust
//
// The package trusts its callers to have bounded and checked what they hand in.
// It trusts nothing it reads back: every value carries a checksum bound to its
// key, every stream counters and a sum that a recount must meet, every version is
// in a segment or marked superseded, every commit is a link in a chain that is
// kept outside the engine as well, and the engine's tables are checked before
// anything is read from them.
package badger
