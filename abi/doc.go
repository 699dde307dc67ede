// Package abi is the contract between a host and its guests, as code: call
// names and numbers, errnos, record frames, messages, phases, scope and
// manifest types, limits, and the strict JSON both sides speak. Host, workers,
// SDK and tests compile the same package, so a rule has one implementation.
//
// The package is pure: standard library only, no I/O, no goroutines, no
// globals that change. Everything it decodes is taken to be hostile: it is
// bounded before it is kept and never trusted for an allocation.
//
// The text form is docs/spec/abi.md and docs/spec/runs.md.
package abi
