// Package corpus holds hostile connectors as data: modules that the structure
// walk refuses, and modules that pass it and attack the engine, the protocol,
// the host's memory or the owner's files when they run (docs/spec/security.md,
// "Attacks" and "Structure check"). It owns no test of the host; whoever has one asks Modules and
// compares how each run ends with what its Case wants.
//
// Every module is written here, byte by byte or with the small builder of this
// package, so that no toolchain stands between the attack and its text.
package corpus

import (
	"slices"
	"time"
)

// A Group is a kind of attack.
type Group string

const (
	GroupRefused Group = "refused" // by the structure walk, before anything else
	GroupCompile Group = "compile" // heavy to compile, within the limits of the walk
	GroupLoop    Group = "loop"    // never ends
	GroupMemory  Group = "memory"  // eats memory, tables or stack
	GroupTrap    Group = "trap"    // faults in every way that WebAssembly has
	GroupOrder   Group = "order"   // right calls at the wrong time
	GroupFrame   Group = "frame"   // record frames that lie
	GroupPointer Group = "pointer" // arguments over the u32 square
	GroupJSON    Group = "json"    // texts that parsers disagree about
	GroupStdio   Group = "stdio"   // the same over lines
	GroupFlood   Group = "flood"   // too much of what is allowed
	GroupFiles   Group = "files"   // ways out of the approved directory
	GroupSystem  Group = "system"  // WASI arguments nobody sends
)

// What every manifest of the corpus says, and a run of a case relies on.
const (
	ConnectorID = "hostile"
	Stream      = "items" // the one stream, index 0 of the scope
	MountPath   = "/data" // where GroupFiles expects its directory
)

// Budgets are the limits a run of a case gets; zero means the host's default.
type Budgets struct {
	Compute time.Duration
	Active  time.Duration
	Stall   time.Duration
	Memory  int64 // bytes of linear memory
}

// A Case is one hostile module and how it must end.
type Case struct {
	Name  string // unique, lower case with dashes
	Group Group
	Rule  string // that the case attacks, in words

	// Wasm builds the module; the same bytes at every call.
	Wasm func() []byte `json:"-"`

	// Want is the rule of the refusal in GroupRefused; otherwise the reason of
	// the terminal event, or Succeeded when the attack must achieve nothing.
	Want string
	// Or lists other endings that are as good, where the engine or the host may
	// notice at another moment.
	Or []string
	// Subtype is violation.subtype when Want is Violation.
	Subtype string
	// OrSubtype lists other subtypes that are as good.
	OrSubtype []string
	// Trap is trap.kind when Want is Trapped; empty for any.
	Trap string
	// Deadline is the budget that ends the run when Want is TimedOut; empty for
	// any.
	Deadline string

	Budgets Budgets
	// Files says that the run needs Tree built in a directory, its folder "root"
	// approved for writing as MountPath.
	Files bool
}

// Reasons that cases want.
const (
	Succeeded   = "succeeded"
	Violation   = "connector_protocol_violation"
	Trapped     = "connector_trapped"
	NoDone      = "connector_exit_without_done"
	Failed      = "connector_reported_failed"
	StdinClosed = "connector_stdin_closed"
	TimedOut    = "run_timed_out"
	MemoryLimit = "memory_limit_exceeded"
	LaunchFail  = "launch_failed"
)

// Refused reports whether the structure walk ends this case.
func (c Case) Refused() bool { return c.Group == GroupRefused }

// Accepts reports whether a run may end with reason.
func (c Case) Accepts(reason string) bool {
	return reason == c.Want || slices.Contains(c.Or, reason)
}

// AcceptsSubtype reports whether a violation may be of subtype.
func (c Case) AcceptsSubtype(subtype string) bool {
	return subtype == c.Subtype || slices.Contains(c.OrSubtype, subtype)
}

// Modules returns the whole corpus in a fixed order. The cases are the
// caller's.
func Modules() []Case {
	return slices.Concat(refusedFiles(), refusedDeclarations(), refusedCode(), compileBombs(), loops(),
		memoryBombs(), traps(),
		disorder(), frames(), pointers(), texts(), lines(), floods(), fileAttacks(), systemCalls())
}
