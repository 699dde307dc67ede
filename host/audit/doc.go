// Package audit keeps what the owner, or the host in the owner's place, did and refused: one
// line of JSON per entry in DIR/audit/<number>.jsonl, each covering the hash of the one before
// it. The newest hash and the number of entries are also in DIR/witness/audit.head, so that
// lines missing at the end are noticed as well as lines changed, removed or moved.
//
// The log is no part of the store, because the command line changes secrets while another
// process has the store open: any process of the owner may append, under a lock on the
// directory. Nothing is ever rewritten. What is found damaged stays as it is; the next entry
// says so and the log goes on.
//
// An entry has no place for free text: it names what was touched, and its details are counts,
// digests and names made by the functions of this package. Values of secrets, answers and
// records have no way in.
//
// Whoever can change both the log and its witness as the owner's own user can make up a past.
// The hash that Verify returns, kept elsewhere, shows that.
//
// Beside it lies the request log, DIR/audit/requests: one line per hop of a connector's
// requests, bounded in size and without a chain.
package audit
