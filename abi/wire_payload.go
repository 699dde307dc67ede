package abi

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Bounds of the payloads below.
const (
	maxWireText   = 2 * KiB  // one detail text
	maxWireEnv    = 256      // variables
	maxWireMounts = 64       // directories
	maxWireString = 64 * KiB // one name, variable or path
	creditBytes   = 8
	clockBytes    = 8
	faultBytes    = 11
)

// Hello is the first message of a worker.
type Hello struct {
	Build string // build id, which must equal the host's
	PID   uint32 // in the worker's own namespace; informative
}

// Append appends the encoded form to b.
func (h Hello) Append(b []byte) []byte {
	return appendString(binary.LittleEndian.AppendUint32(b, h.PID), h.Build)
}

// ParseHello decodes a Hello.
func ParseHello(b []byte) (h Hello, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	h.PID = d.u32()
	h.Build = d.str(maxWireText)
	return h, d.endOf("hello")
}

// A Task is what a worker is started for.
type Task uint8

const (
	TaskRun     Task = 1 // load compiled code, run one guest
	TaskCompile Task = 2 // compile the module into the directory, then exit
)

// A Mount is a directory that a guest sees.
type Mount struct {
	ID   uint32 // by which file calls name it
	Path string // absolute path inside the guest
}

// Load assigns a task to a new worker. File descriptors precede it: the module and, unless
// it is interpreted, a directory for compiled code.
type Load struct {
	Task        Task
	Interpreter bool   // interpret the module and ignore compiled code; for conformance tests only
	Stdio       bool   // a stdio connector: fd 0 and 1 carry messages
	Directory   bool   // a directory descriptor follows that of the module
	ModuleBytes uint64 // of a compilation: where the module ends and its skeleton begins; else the size
	MemoryPages uint32 // cap of linear memory, 64 KiB pages
	Limits      WireLimits
	Jail        []byte   // configuration of the jail, as encoded by host/jail
	Name        string   // args[0]
	Env         []string // NAME=value
	Mounts      []Mount
	Fixed       *Fixed // nil: the real clock and fresh random numbers
}

// Fixed makes time and randomness repeatable for a guest: in a run that is recorded or
// journalled, and when it is replayed.
//
// Invariant: a guest with the same Fixed, the same replies and the same clock messages
// before them reads the same times and random bytes, whatever Instant says.
type Fixed struct {
	Start   uint64   // of the wall clock, milliseconds since 1970
	Seed    [32]byte // of the random bytes
	Instant bool     // sleeps return at once
	Told    bool     // the clock advances to what the host sends before a reply (CallClock)
}

// maxFixedStart is about the year 2109.
const maxFixedStart = 1 << 42

const (
	loadInterpreter = 1 << iota
	loadStdio
	loadDirectory
	loadFixed
	loadInstant
	loadTold
	loadFlags = 1<<iota - 1
)

// Append appends the encoded form to b.
func (l Load) Append(b []byte) []byte {
	var flags byte
	for i, set := range []bool{l.Interpreter, l.Stdio, l.Directory, l.Fixed != nil, l.Fixed != nil && l.Fixed.Instant,
		l.Fixed != nil && l.Fixed.Told} {
		flags |= boolByte(set) << i
	}
	le := binary.LittleEndian
	b = append(b, byte(l.Task), flags)
	b = le.AppendUint64(b, l.ModuleBytes)
	b = le.AppendUint32(b, l.MemoryPages)
	b = le.AppendUint32(b, l.Limits.Frame)
	b = le.AppendUint32(b, l.Limits.Request)
	b = le.AppendUint32(b, l.Limits.Reply)
	b = appendString(b, string(l.Jail))
	b = appendString(b, l.Name)
	b = appendStrings(b, l.Env)
	b = le.AppendUint32(b, uint32(len(l.Mounts)))
	for _, m := range l.Mounts {
		b = appendString(le.AppendUint32(b, m.ID), m.Path)
	}
	if f := l.Fixed; f != nil {
		b = append(le.AppendUint64(b, f.Start), f.Seed[:]...)
	}
	return b
}

// ParseLoad decodes a Load and checks what a worker relies on.
func ParseLoad(b []byte) (l Load, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	l.Task = Task(d.u8())
	flags := d.u8()
	l.Interpreter, l.Stdio, l.Directory = flags&loadInterpreter != 0, flags&loadStdio != 0, flags&loadDirectory != 0
	l.ModuleBytes = d.u64()
	l.MemoryPages = d.u32()
	l.Limits = WireLimits{Frame: d.u32(), Request: d.u32(), Reply: d.u32()}
	if text := d.str(maxWireString); text != "" {
		l.Jail = []byte(text)
	}
	l.Name = d.str(maxWireString)
	l.Env = d.strs(maxWireEnv)
	if n := d.count(maxWireMounts); n > 0 {
		l.Mounts = make([]Mount, n)
		for i := range l.Mounts {
			l.Mounts[i] = Mount{ID: d.u32(), Path: d.str(maxWireString)}
		}
	}
	if flags&loadFixed != 0 {
		l.Fixed = &Fixed{Start: d.u64(), Instant: flags&loadInstant != 0, Told: flags&loadTold != 0}
		copy(l.Fixed.Seed[:], d.take(len(l.Fixed.Seed)))
		d.check(l.Fixed.Start <= maxFixedStart, "clock")
	}
	d.check(l.Task >= TaskRun && l.Task <= TaskCompile, "task")
	d.check(flags&^byte(loadFlags) == 0 && (flags&(loadInstant|loadTold) == 0 || flags&loadFixed != 0), "flags")
	d.check(l.MemoryPages <= 65536, "memory pages")
	d.check(l.Limits.Valid(), "limits")
	return l, d.endOf("load")
}

// Ready reports that a worker is ready for the guest's first instruction: the code is
// loaded and the jail is closed.
type Ready struct {
	CPU       time.Duration // used so far by the worker, not the guest
	Enter     time.Duration // building the jail from inside
	Load      time.Duration // loading compiled code, or compiling
	Isolation Isolation     // the isolation that is in force
}

// Isolation describes the isolation of a worker. It is a required member of run.started and
// of results.
type Isolation struct {
	Level      string   `json:"level"` // full, partial or process
	Namespaces []string `json:"namespaces"`
	Landlock   int      `json:"landlock"` // ABI number; 0 is off
	Seccomp    string   `json:"seccomp"`  // strict, load or off
	Rlimits    bool     `json:"rlimits"`
	UID        string   `json:"uid"` // own or shared
}

// Append appends the encoded form to b.
func (r Ready) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint64(b, uint64(r.CPU))
	b = le.AppendUint64(b, uint64(r.Enter))
	b = le.AppendUint64(b, uint64(r.Load))
	return r.Isolation.append(b)
}

func (i Isolation) append(b []byte) []byte {
	b = appendString(b, i.Level)
	b = appendStrings(b, i.Namespaces)
	b = binary.LittleEndian.AppendUint32(b, uint32(i.Landlock))
	b = appendString(b, i.Seccomp)
	b = append(b, boolByte(i.Rlimits))
	return appendString(b, i.UID)
}

// ParseReady decodes a Ready.
func ParseReady(b []byte) (r Ready, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	r.CPU = d.duration()
	r.Enter, r.Load = d.duration(), d.duration()
	i := &r.Isolation
	i.Level = d.str(64)
	i.Namespaces = d.strs(16)
	i.Landlock = int(d.u32())
	i.Seccomp = d.str(64)
	i.Rlimits = d.boolean()
	i.UID = d.str(64)
	d.check(i.Landlock <= 1000, "landlock")
	return r, d.endOf("ready")
}

// Credit returns emit credit to the worker. With an errno in its header it ends emit
// instead: later emits of the guest fail with that errno, without being sent.
type Credit struct {
	Frames uint32
	Bytes  uint32
}

// Append appends the encoded form to b.
func (c Credit) Append(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, c.Frames), c.Bytes)
}

// ParseCredit decodes a Credit, which is never more than the window.
func ParseCredit(b []byte) (c Credit, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	c.Frames, c.Bytes = d.u32(), d.u32()
	d.check(c.Frames <= CreditFrames && c.Bytes <= CreditBytes+WireSlack, "credit")
	return c, d.endOf("credit")
}

// AppendClock encodes the payload of CallClock, a time in milliseconds since 1970.
func AppendClock(b []byte, ms uint64) []byte { return binary.LittleEndian.AppendUint64(b, ms) }

// ParseClock decodes the payload of CallClock.
func ParseClock(b []byte) (ms uint64, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	ms = d.u64()
	d.check(ms <= maxFixedStart, "clock")
	return ms, d.endOf("clock")
}

// FaultKind says why a worker refused to copy a request.
type FaultKind uint8

const (
	FaultPointer FaultKind = 1 // out of guest memory: abi_fault
	FaultTooBig  FaultKind = 2 // a message over its limit: frame_too_large
)

// RequestFault is sent in place of a request that was refused.
type RequestFault struct {
	Call   Call
	Kind   FaultKind
	Length uint64 // bytes the guest asked for
}

// Append appends the encoded form to b.
func (f RequestFault) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, uint16(f.Call))
	return binary.LittleEndian.AppendUint64(append(b, byte(f.Kind)), f.Length)
}

// ParseRequestFault decodes a RequestFault.
func ParseRequestFault(b []byte) (f RequestFault, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	f.Call, f.Kind, f.Length = Call(d.u16()), FaultKind(d.u8()), d.u64()
	d.check(f.Kind == FaultPointer || f.Kind == FaultTooBig, "kind")
	d.check(f.Call < CallStdout, "call")
	return f, d.endOf("fault")
}

// ExitKind says how a worker ended, by its own account.
type ExitKind uint8

const (
	ExitExited  ExitKind = 1 // _start returned or proc_exit was called
	ExitTrapped ExitKind = 2
	ExitFailed  ExitKind = 3 // the worker could not do its task; see Detail
	ExitDone    ExitKind = 4 // a compilation finished
)

// The stages in which a task can fail, in Exit.TrapKind with ExitFailed.
const (
	StageIsolation = "isolation" // a required isolation could not be set up
	StageEngine    = "engine"    // no compiler for this platform
	StageCode      = "code"      // compiled code missing or damaged
	StageModule    = "module"    // the module cannot be linked or compiled
	StageMemory    = "memory"
)

// The kinds of traps.
const (
	TrapUnreachable  = "unreachable"
	TrapMemory       = "memory_out_of_bounds"
	TrapInteger      = "integer_fault"
	TrapIndirectCall = "indirect_call"
	TrapStack        = "stack_overflow"
	TrapOther        = "other"
)

// Exit is the last message of a worker.
type Exit struct {
	Kind             ExitKind
	Code             uint32 // of ExitExited
	TrapKind         string // of ExitTrapped; the stage of ExitFailed
	Detail           string // for diagnostics; may contain names chosen by the guest
	GuestMemoryBytes uint64 // peak linear memory
	Instantiate      time.Duration
}

// Append appends the encoded form to b. Detail is cut to its limit.
func (e Exit) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, byte(e.Kind))
	b = le.AppendUint32(b, e.Code)
	b = appendString(b, e.TrapKind)
	b = appendString(b, e.Detail[:min(len(e.Detail), maxWireText)])
	b = le.AppendUint64(b, e.GuestMemoryBytes)
	return le.AppendUint64(b, uint64(e.Instantiate))
}

// ParseExit decodes an Exit.
func ParseExit(b []byte) (e Exit, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	e.Kind = ExitKind(d.u8())
	e.Code = d.u32()
	e.TrapKind = d.str(64)
	e.Detail = d.str(maxWireText)
	e.GuestMemoryBytes = d.u64()
	e.Instantiate = d.duration()
	d.check(e.Kind >= ExitExited && e.Kind <= ExitDone, "kind")
	d.check(e.GuestMemoryBytes <= 1<<32, "memory")
	return e, d.endOf("exit")
}

// AppendRead encodes the request of CallRead: up to most bytes from a handle.
func AppendRead(b []byte, handle, most uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, handle), most)
}

// ParseRead decodes the request of CallRead.
func ParseRead(b []byte) (handle, most uint32, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	handle, most = d.u32(), d.u32()
	d.check(most <= MaxReadChunk, "size")
	return handle, most, d.endOf("read")
}

// ParseClose decodes the request of CallClose.
func ParseClose(b []byte) (handle uint32, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	handle = d.u32()
	return handle, d.endOf("close")
}

// ParseStdin decodes the request of CallStdin: the most bytes wanted.
func ParseStdin(b []byte) (most uint32, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	most = d.u32()
	d.check(most >= 1 && most <= MaxReadChunk, "size")
	return most, d.endOf("stdin")
}

// ParseSleep decodes the request of CallSleep.
func ParseSleep(b []byte) (time.Duration, error) {
	d := decoder{b: b, sentinel: ErrWire}
	t := d.duration()
	return t, d.endOf("sleep")
}

// ParseDiag decodes the request of CallDiag. text shares memory with b.
func ParseDiag(b []byte) (fd uint8, text []byte, err error) {
	d := decoder{b: b, sentinel: ErrWire}
	fd = d.u8()
	d.check(fd == 1 || fd == 2, "fd")
	if err := d.err; err != nil {
		return 0, nil, fmt.Errorf("diag: %w", err)
	}
	return fd, d.b, nil
}
