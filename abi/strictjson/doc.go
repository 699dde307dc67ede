// Package strictjson reads JSON from untrusted programs, in place.
//
// # Why it exists
//
// Everything a guest sends is JSON: records by the hundred thousand, messages, manifests.
// All readers of a text must agree on what it says: the host checks a record against the
// scope, and a program that reads it later must not find another value. encoding/json keeps
// the last of two members with the same name, replaces bad UTF-8 and half surrogate pairs,
// and matches names
// without regard to case. This package refuses such texts, and also NUL, a byte order mark,
// more than MaxDepth open containers, and more values than the caller allows. Faults are
// ranked, so that every implementation of the contract reports the same one
// (testdata/json.json).
//
// A Scanner builds no tree and no map: it returns the members of an object as slices of the
// input and reuses its scratch space, so that a record costs no allocation. The names of an
// object are compared one by one while they are few, and by a seeded hash when they are
// many, so that no choice of names makes a text slow to check. A Value finds members and
// items of a checked text on demand. Numbers stay text until an integer or a float is asked
// for.
//
// Measured on a record of 200 bytes with 8 members (BenchmarkObject):
//
//	Scanner.Object           410 ns   0 allocations   names and values found, all checks
//	jsontext.Value.IsValid   380 ns   0 allocations   says yes or no, finds nothing
//	encoding/json.Valid      870 ns   0 allocations   syntax only
//	encoding/json to a map  5270 ns  45 allocations   keeps the last of two members
//
// jsontext of go-json-experiment would serve for the checks, but it accepts NUL, does not
// bound the number of values, does not rank faults, and would be a dependency of every
// guest.
//
// # What it trusts
//
// Nothing about the input. Object, Valid and Parse take any bytes; all other functions take
// texts that one of these has accepted.
package strictjson
