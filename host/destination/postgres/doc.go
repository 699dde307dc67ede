// Package postgres keeps tables of a PostgreSQL server up to date. It copies each batch into a temporary table and
// merges that into the real one, in a transaction that also advances the mark.
//
// # Tables
//
// Tables are in the schema sluice, or that of ?schema= in the URL, which is created if it is missing. Types are
// boolean, bigint, double precision, timestamptz, jsonb and text. A column whose type no longer fits the data becomes
// double precision or text: instants as 2006-01-02T15:04:05.000000Z, booleans as true and false. An integer in a double
// precision column is rounded. An integer of more than 64 bits, or a number out of range, makes the column text, with
// all digits.
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
// # Fencing
//
// The meta table has one row with the owner of the schema and a number that each claim increases. Every transaction
// locks that row first, so that processes take turns and one with an older number writes nothing but returns
// destination.ErrFenced. The mark is compared, too, so a batch whose commit was not acknowledged because the connection
// broke is not written again.
// # Trust
//
// The server belongs to the owner, to whom its messages are shown without control characters. The password is in no
// error and not in the displayed URL. Without sslmode in the URL, a server on another machine must support TLS.
package postgres
