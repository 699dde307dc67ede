// Package abi is the contract between a host and its guests, as code: call names and
// numbers, errnos, record frames, messages, phases, scope and manifest types, and limits.
// Host, workers, SDK and tests compile the same package, so a rule has one implementation.
//
// The package is pure: standard library only, no I/O, no goroutines, no mutable globals.
// All input is untrusted: it is bounded before it is kept, and no length in it decides an
// allocation.
//
// The specification is docs/spec/abi.md and docs/spec/runs.md.
package abi
