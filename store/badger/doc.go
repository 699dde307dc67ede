// Package badger implements store.Store on Badger, an embedded key-value engine, for one process with one data
// directory.
//
// It owns DATA/db (the engine's files, and bulk/ next to them), DATA/witness (proof of completeness), DATA/lock,
// DATA/unclean and DATA/ballast. A single committer makes all writes: it combines what the runs have ready into groups.
// For each group it syncs first the bulk, then the engine's transaction, then the witness entry. Only then are the runs
// answered and the writes visible to readers.
//
// # Layout
//
//	engine   facts: connectors, connections, leases, runs, events, states, gaps,
//	         counters; and places of bulk
//	bulk     segments: the records of a flush as the run packed them;
//	         pages and filters of index runs (package bulk)
//
// The index of a stream maps each key to its current version. It is a small log-structured merge tree: the newest rows
// are in memory, the others in sorted runs whose pages are addressed by the hash of the key, each run with a Bloom
// filter in memory. Looking up a new key costs one filter probe per run. Looking up a known key costs one page, or none
// when a source is read in the same order as before. Segments are the log of the rows in memory, so a flush writes no
// index. Streams that are only read have an index in memory as well, from the first record that is looked up by its
// key. Superseded versions are marked by bits. Segments and bulk files of which half is superseded are rewritten
// without it.
//
// # Trust
//
// The package relies on its callers to have checked and bounded their input, but not on what it reads back. Every value
// carries a checksum over its key, every stream carries counters and a sum that a recount must match, every version is
// in a segment or marked as superseded, every commit is a link in a chain whose head is also kept outside the engine,
// and the engine's tables are verified before anything is read from them.
package badger
