package abi

import "fmt"

// A Call numbers everything that can cross the boundary between a guest and the host.
// Numbers below 64 are functions that a module imports, those from 64 on are requests of
// the worker on behalf of WASI, and those from 128 on are the worker's own. Numbers are
// append-only and frozen by a test.
type Call uint16

const (
	CallStart        Call = 1
	CallEmit         Call = 2
	CallCheckpoint   Call = 3
	CallProgress     Call = 4
	CallSkip         Call = 5
	CallGap          Call = 6
	CallCoverage     Call = 7
	CallInteract     Call = 8
	CallAssist       Call = 9
	CallAssistStatus Call = 10
	CallMessage      Call = 11
	CallLog          Call = 12
	CallDone         Call = 13
	CallRecovered    Call = 14 // DETAIL_GAP_RECOVERED; minor 0, see docs/RATIONALE.md
	CallRead         Call = 15
	CallClose        Call = 16
	CallReply        Call = 17 // answered inside the worker, never relayed
	CallAttach       Call = 18 // since minor 2
	CallAttachPart   Call = 19 // since minor 2

	CallNetworkRequest  Call = 32
	CallNetworkExchange Call = 33 // since minor 1
	CallBrowser         Call = 48

	// WASI on behalf of the guest.
	CallStdout       Call = 64 // bytes of fd 1 of a stdio connector
	CallStdin        Call = 65 // u32 cap -> bytes; no bytes is end of file
	CallDiag         Call = 66 // u8 fd, bytes: log text (fd 2; fd 1 of an ABI connector)
	CallSleep        Call = 67 // u64 nanoseconds
	CallStdinEnd     Call = 68 // the guest closed fd 0; no payload
	CallFileOpen     Call = 80 // file calls: file.go
	CallFileRead     Call = 81
	CallFileWrite    Call = 82
	CallFileClose    Call = 83
	CallFileStat     Call = 84
	CallFileLstat    Call = 85
	CallFileReadDir  Call = 86
	CallFileMkdir    Call = 87
	CallFileUnlink   Call = 88
	CallFileRmdir    Call = 89
	CallFileRename   Call = 90
	CallFileTruncate Call = 91
	CallFileSync     Call = 92
	CallFileTimes    Call = 93

	// Messages of the worker itself. The host sends load, credit and clock, the worker the
	// rest.
	CallHello  Call = 128
	CallLoad   Call = 129
	CallReady  Call = 130
	CallCredit Call = 131
	CallFault  Call = 132 // a guest pointer was out of range, or a request over its limit
	CallExit   Call = 133
	CallClock  Call = 134 // u64 milliseconds since 1970, sent before a reply; see Fixed.Told
)

// The import modules of version 1.
const (
	ModuleCore    = "sluice_v1"
	ModuleNetwork = "sluice_v1_network"
	ModuleBrowser = "sluice_v1_browser"
	ModuleWASI    = "wasi_snapshot_preview1"
)

// Major and Minor are the version that START announces.
const (
	Major = 1
	Minor = 2
)

// ManifestSection names the custom section that carries the manifest.
const ManifestSection = "sluice.manifest"

// A Function is a function that a module may import.
type Function struct {
	Module string
	Name   string
	Call   Call
	// Message says whether importing it makes a module an ABI connector.
	Message bool
}

// Functions lists everything that a guest can import besides WASI, in the order of the
// contract.
var Functions = []Function{
	{ModuleCore, "start", CallStart, true},
	{ModuleCore, "emit", CallEmit, true},
	{ModuleCore, "checkpoint", CallCheckpoint, true},
	{ModuleCore, "progress", CallProgress, true},
	{ModuleCore, "skip", CallSkip, true},
	{ModuleCore, "gap", CallGap, true},
	{ModuleCore, "recovered", CallRecovered, true},
	{ModuleCore, "coverage", CallCoverage, true},
	{ModuleCore, "interact", CallInteract, true},
	{ModuleCore, "assist", CallAssist, true},
	{ModuleCore, "assist_status", CallAssistStatus, true},
	{ModuleCore, "message", CallMessage, true},
	{ModuleCore, "log", CallLog, true},
	{ModuleCore, "done", CallDone, true},
	{ModuleCore, "reply", CallReply, false},
	{ModuleCore, "read", CallRead, false},
	{ModuleCore, "close", CallClose, false},
	{ModuleCore, "attach", CallAttach, false},
	{ModuleCore, "attach_part", CallAttachPart, false},
	{ModuleNetwork, "request", CallNetworkRequest, false},
	{ModuleNetwork, "exchange", CallNetworkExchange, false},
	{ModuleBrowser, "call", CallBrowser, false},
}

// A BindingModule is an import module whose functions a binding of the manifest serves.
type BindingModule struct{ Module, Binding string }

// BindingModules lists the import modules of bindings, in the order of the contract.
var BindingModules = []BindingModule{
	{ModuleNetwork, BindingNetwork},
	{ModuleBrowser, BindingBrowser},
}

// Binding returns the name of the binding that serves c, or "" if none does.
func (c Call) Binding() string {
	for _, f := range Functions {
		if f.Call != c {
			continue
		}
		for _, b := range BindingModules {
			if b.Module == f.Module {
				return b.Binding
			}
		}
	}
	return ""
}

// Signature returns the parameter and result types of an import as one letter
// each, i for i32 and I for i64: "ii>I" for the common type.
func (f Function) Signature() string {
	switch f.Call {
	case CallReply:
		return "ii>i" // dst, cap
	case CallRead:
		return "iii>I" // handle, dst, cap
	case CallClose:
		return "i>I" // handle
	default:
		return "ii>I" // ptr, len
	}
}

// An Errno is what a call of a sluice_v1 module returns, negated, when it
// fails. The numbers are part of the contract: the list is append-only.
type Errno uint16

const (
	OK        Errno = 0
	EPROTO    Errno = 1  // the run was ended for a protocol violation; exit
	EINVAL    Errno = 2  // malformed request of a function that takes no message
	EFAULT    Errno = 3  // pointer outside of memory
	ETOOBIG   Errno = 4  // over a limit that the text names
	EDENIED   Errno = 5  // not granted
	ENOTSUP   Errno = 6  // unknown verb, or one of a later minor version
	ECANCELED Errno = 7  // the run is being cancelled; send done and exit
	ETIMEOUT  Errno = 8  // the named limit expired
	EUNAVAIL  Errno = 9  // granted, but not reachable now
	ERATE     Errno = 10 // the rate limiter would wait longer than allowed
	EIO       Errno = 11 // the host failed
	ENOENT    Errno = 12 // no such handle, file or element
	EBUSY     Errno = 13 // in use, or the owner holds control
	ENOSPC    Errno = 14 // a quota or the disk is full
)

var errnoNames = [...]string{
	OK: "OK", EPROTO: "EPROTO", EINVAL: "EINVAL", EFAULT: "EFAULT", ETOOBIG: "ETOOBIG",
	EDENIED: "EDENIED", ENOTSUP: "ENOTSUP", ECANCELED: "ECANCELED", ETIMEOUT: "ETIMEOUT",
	EUNAVAIL: "EUNAVAIL", ERATE: "ERATE", EIO: "EIO", ENOENT: "ENOENT", EBUSY: "EBUSY", ENOSPC: "ENOSPC",
}

// String returns the name used in error texts, such as "EDENIED".
func (e Errno) String() string {
	if int(e) < len(errnoNames) {
		return errnoNames[e]
	}
	return fmt.Sprintf("errno(%d)", uint16(e))
}

// Error makes a non-zero Errno usable as a Go error in hosts and guests.
func (e Errno) Error() string { return "sluice: " + e.String() }

// Known reports whether e is a number of this version of the contract.
func (e Errno) Known() bool { return int(e) < len(errnoNames) }
