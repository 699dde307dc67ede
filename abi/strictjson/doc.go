// Package strictjson reads JSON that hostile programs wrote, in place.
//
// # Why it exists
//
// Everything a guest sends is JSON: records by the hundred thousand, messages,
// manifests. Two readers of one text must agree on what it says: the host
// checks a record against the scope, and a program that reads it later must
// not find another value. encoding/json keeps the last of two members of one
// name, replaces bad UTF-8 and half surrogate pairs, and matches names whatever
// their case. Here such texts are refused, and so are NUL, a byte order mark,
// more than MaxDepth open containers, and more values than the caller allows.
// All faults of a text have an order, so every implementation of the contract
// names the same one (testdata/json.json).
//
// A Scanner builds no tree and no map: it returns the members of an object as
// slices of the input and keeps its scratch space, so a record costs no
// allocation. Names of an object are compared one by one while they are few,
// and by a seeded hash when they are many, so that no choice of names makes a
// text slow. A Value finds members and items of a checked text when they are
// asked for. Numbers stay text until somebody asks for an integer or a float.
//
// Measured on a record of 200 bytes with 8 members (BenchmarkObject):
//
//	Scanner.Object           410 ns   0 allocations   names and values found, all checks
//	jsontext.Value.IsValid   380 ns   0 allocations   says yes or no, finds nothing
//	encoding/json.Valid      870 ns   0 allocations   syntax only
//	encoding/json to a map  5270 ns  45 allocations   keeps the last of two members
//
// jsontext of go-json-experiment would do for the checks, but it takes NUL, has
// no bound on the number of values, orders no faults, and is a dependency that
// every guest would link.
//
// # What it trusts
//
// Nothing about the input. Object, Valid and Parse take any bytes; all other
// functions take texts that one of these has accepted.
package strictjson
