// Package destination keeps tables of other programs, in a database or as files, up to date with what connectors
// collected.
//
// The store numbers the changes of each stream and lists the newest one of each key. In addition to its tables, a
// destination stores a mark for each stream: the version up to which it has everything. A mark and the rows that it
// covers are written in one atomic step, so a host that is killed at any time resumes exactly where the destination is.
//
// A Kind is a type of destination and has a package of its own. It knows how to write a Batch. The rest is in this
// package: what is read, how JSON is mapped to columns (Shape), when that happens, and what follows a failure.
package destination
