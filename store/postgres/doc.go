// Package postgres is the store in a PostgreSQL database, version 15 or later. Several hosts
// share a database (store.Members); it is the default of nobody and loses nothing that Badger's
// keeps.
//
// A run's commit is one transaction. It moves the counter of the run's lease, which is the
// fence: a lease that is not the current one moves nothing, and the transaction ends there.
// Where the connection dies between COMMIT and its answer, the server is asked what became of
// the transaction, and nothing is done twice.
//
// A host is a row with a heartbeat, and a start of it an epoch. Each transaction takes a shared
// lock of its host and asks for the row; whoever removes a host whose lease is over takes the
// lock alone, so nothing of that start commits afterwards. Only the clock of the server decides.
// Wake-ups go by NOTIFY, outside of transactions; whoever misses one looks by itself.
//
// Records are in a table for each connection and life of it, records_N, so that erasing one is
// DROP TABLE. Timelines are in a table for each week in which runs began, timeline_N.
//
// What the server says is trusted as far as the rows of its tables are: it keeps the owner's
// data. What it reads back is counted and compared by Verify all the same.
package postgres
