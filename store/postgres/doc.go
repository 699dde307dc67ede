// Package postgres implements store.Store in a PostgreSQL database, version 15 or later. Several hosts can share a
// database (store.Members). It has to be chosen explicitly and offers the same guarantees as package badger.
//
// A run's commit is one transaction. It begins by advancing the counter of the run's lease, which is the fence: if the
// lease is not the current one, no row changes and the transaction fails. If the connection breaks between COMMIT and
// its answer, the store asks the server for the outcome, so nothing is done twice.
//
// A host is a row with a heartbeat, and each start of it has an epoch. Every transaction takes a lock of its host in
// shared mode and checks the row. Removing a host whose lease has expired requires that lock in exclusive mode, so
// nothing of that epoch commits afterwards. Only the server's clock counts. Wake-ups are sent with NOTIFY outside of
// transactions; whoever misses one polls.
//
// Records are in a table records_N for each connection, with a new one after erasing, so that erasing is DROP TABLE.
// Timelines are in a table timeline_N for each week in which runs started.
//
// The server is trusted with the owner's data and so with the rows of its tables. Verify recounts and compares them
// nevertheless.
package postgres
