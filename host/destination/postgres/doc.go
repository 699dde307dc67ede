// Package postgres keeps tables of a PostgreSQL server up to date: COPY into a temporary
// table and one statement that brings it into the real one, in a transaction that also
// moves the mark.
//
// # What a table is like
//
// Tables are in the schema sluice, or in that of ?schema= in the URL, which is made where
// it is missing. Types are boolean, bigint, double precision, timestamptz, jsonb and text.
// A column whose type no longer holds what is collected becomes double precision or text:
// instants as 2006-01-02T15:04:05.000000Z, booleans as true and false. An integer in a
// column of numbers is rounded to what double precision can hold; one of more than 64
// bits, and a number beyond double precision, make the column text, with all digits.
//
// PostgreSQL cannot hold everything that JSON can:
//   - A NUL in a string becomes U+FFFD, in a key, a text and in jsonb.
//   - A number in jsonb that has more than 1,000 digits or an exponent beyond ±1,000
//     becomes a string of its spelling.
//   - A row has about 8 kB of its own; long values lie elsewhere, and each keeps up to 24
//     bytes there. Where a record has more values than fit, its last ones are members of
//     _rest under the names of their fields, and their columns are NULL. A record of fewer
//     than 300 values always fits.
//
// # Who writes
//
// The meta table has one row that says who feeds the schema, with a number that grows with
// each claim. Every transaction locks that row first, so that two processes take turns and
// the one with the older number writes nothing: destination.ErrFenced. The mark is compared
// too: a batch whose commit was not heard of, since the connection broke, is not written
// again.
//
// # What is trusted
//
// The server is the owner's, and its messages are shown to the owner cleaned of control
// characters. The password is in no error and not in the shown URL. Without sslmode in the
// URL a server that is not of this machine must speak TLS.
package postgres
