// Package destination keeps tables of other programs up to date with what connectors
// collected: in a database, or as files.
//
// The store numbers the changes of each stream, and lists of each key the newest one. A
// destination holds, beside its tables, a mark for each stream: the number through which it
// has everything. A mark and the rows that it speaks of are written in one step of the
// destination, so a host that is killed at any instant goes on exactly where the
// destination is.
//
// A Kind is one sort of destination and lives in a folder of its own. It knows how to
// write a Batch. Everything else is here: what is read, how JSON becomes columns (Shape),
// when, and what happens when it fails (Feed).
package destination
