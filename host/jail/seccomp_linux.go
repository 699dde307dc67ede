//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The layout of struct seccomp_data that a filter reads. Both supported
// architectures are little-endian, so the low half of an argument comes first.
//
//	0    4      8                    16       24            64
//	┌────┬──────┬────────────────────┬────────┬─────────────┐
//	│ nr │ arch │ instruction pointer│ arg 0  │ arg 1 … 5   │
//	└────┴──────┴────────────────────┴────────┴─────────────┘
const (
	dataNumber   = 0
	dataArch     = 4
	dataArgument = 16
)

// Futex operations as numbered in uapi/linux/futex.h.
const (
	futexPrivate  = 128
	futexRealtime = 256
	futexWait     = 0 | futexPrivate
	futexWake     = 1 | futexPrivate
	futexWaitBits = 9 | futexPrivate
	futexWakeBits = 10 | futexPrivate
)

// A policy is an allow-list of system calls. All others kill the process.
type policy struct {
	plain   []uint32 // allowed with any argument, most frequent first
	checked []check
}

// A check decides about one system call by its arguments.
type check struct {
	call uint32
	// any lists alternatives; the call is allowed if all conditions of one hold.
	any [][]condition
	// If the conditions in refused hold, the call fails with errno, as on a kernel that does not support it. Otherwise
	// it kills.
	refused []condition
	errno   uint32
}

// A condition holds if the low half of an argument, under mask, is one of values.
type condition struct {
	argument uint32
	mask     uint32
	values   []uint32
}

const every = ^uint32(0) // the mask of a whole argument

// is returns the condition that an argument is one of values.
func is(argument uint32, values ...uint32) condition { return condition{argument, every, values} }

// only returns the condition that an argument has no other bits than these.
func only(argument, bits uint32) condition { return condition{argument, ^bits, []uint32{0}} }

// without returns the condition that an argument has none of these bits.
func without(argument, bits uint32) condition { return condition{argument, bits, []uint32{0}} }

// when returns a check that allows the call if all conditions hold.
func when(call uint32, all ...condition) check { return check{call: call, any: [][]condition{all}} }

// filterA returns the policy while a worker loads code. pid is the worker's own, as it sees it. A compile worker may
// also write to its directory.
func filterA(pid int, writable bool) policy {
	p := basis(pid)
	p.plain = append(p.plain, unix.SYS_RECVMSG, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_LSEEK, unix.SYS_PREAD64,
		unix.SYS_GETDENTS64) // the worker lists its directory
	creates := uint32(unix.O_CREAT | unix.O_EXCL)
	if writable {
		// The calls for writing a cache entry: create, rename, flush. Removing is not allowed, so that every file can
		// be counted, and the directory is made before the filter is installed.
		p.plain = append(p.plain, unix.SYS_RENAMEAT, unix.SYS_FSYNC)
		p.checked = append(p.checked, check{call: unix.SYS_UNLINKAT, refused: []condition{}, errno: uint32(unix.EPERM)},
			check{call: unix.SYS_MKDIRAT, refused: []condition{}, errno: uint32(unix.EPERM)})
		creates |= unix.O_RDWR | unix.O_WRONLY
	} else {
		creates = 0
	}
	p.checked = append(p.checked,
		when(unix.SYS_OPENAT, only(2, creates|unix.O_CLOEXEC|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|largeFile)),
		check{call: unix.SYS_MMAP, any: [][]condition{privateMemory}, refused: hugePages, errno: uint32(unix.ENOMEM)},
		when(unix.SYS_MPROTECT, is(2, unix.PROT_READ|unix.PROT_WRITE, unix.PROT_READ|unix.PROT_EXEC)),
		when(unix.SYS_SECCOMP, is(0, unix.SECCOMP_SET_MODE_FILTER), is(1, unix.SECCOMP_FILTER_FLAG_TSYNC)))
	return p
}

// largeFile is the flag that a C library passes to open; the kernel sets it anyway.
const largeFile = 0o100000 | 0o400000

// privateMemory allows only mappings that RLIMIT_DATA counts, or that have no content yet: no limit counts shared
// memory, files and growing stacks. Code is not mapped executable but written first and then protected.
var privateMemory = []condition{
	without(2, unix.PROT_EXEC),
	{argument: 3, mask: ^uint32(unix.MAP_FIXED | unix.MAP_NORESERVE | unix.MAP_STACK),
		values: []uint32{unix.MAP_PRIVATE | unix.MAP_ANON, mapDroppable | unix.MAP_ANON}},
}

// mapDroppable is private memory that the kernel may take away at any time. The runtime keeps the state of its random
// numbers there (vgetrandom). RLIMIT_DATA counts it.
const mapDroppable = 8

// hugePages matches the mappings that the engine prefers for large code; it also works without them.
var hugePages = []condition{{argument: 3, mask: unix.MAP_HUGETLB, values: []uint32{unix.MAP_HUGETLB}}}

// filterB returns the policy while a guest runs: nothing can be loaded, and no mapping can become executable, or
// read-only, which would exclude it with its content from RLIMIT_DATA.
func filterB(pid int) policy {
	p := basis(pid)
	p.checked = append(p.checked,
		when(unix.SYS_MMAP, privateMemory...),
		when(unix.SYS_MPROTECT, is(2, unix.PROT_READ|unix.PROT_WRITE)))
	return p
}

// basis returns what the Go runtime and the communication with the host need. prctl is only allowed for naming memory
// regions, which the runtime does for every mapping since Go 1.25. writev sends a header and a payload in one call and
// can do nothing that write cannot.
//
// Arguments are checked wherever they could affect something outside the process: the owner and signal of a descriptor
// (fcntl), another process's clock, a queued real-time signal, a lock in the kernel. All threads exist already (see
// makeThreads), so none can be made.
func basis(pid int) policy {
	return policy{
		plain: append([]uint32{
			unix.SYS_READ, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_EPOLL_PWAIT, unix.SYS_NANOSLEEP,
			unix.SYS_SCHED_YIELD, unix.SYS_MUNMAP, unix.SYS_RT_SIGRETURN,
			unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_SIGALTSTACK, unix.SYS_GETPID, unix.SYS_GETTID,
			unix.SYS_CLOSE, unix.SYS_GETRANDOM, unix.SYS_RESTART_SYSCALL, unix.SYS_EPOLL_CREATE1,
			unix.SYS_EPOLL_CTL, unix.SYS_EVENTFD2, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
		}, libc...),
		checked: []check{
			when(unix.SYS_FUTEX, is(1, futexes...)),
			when(unix.SYS_CLOCK_GETTIME, only(0, 15)), // clocks of the system; others name a process or a descriptor
			when(unix.SYS_MADVISE, is(2, unix.MADV_DONTNEED, unix.MADV_FREE, unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE,
				unix.MADV_COLLAPSE)),
			{call: unix.SYS_FCNTL, any: [][]condition{
				{is(1, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_DUPFD_CLOEXEC)},
				{is(1, unix.F_SETFL), only(2, unix.O_ACCMODE|unix.O_APPEND|unix.O_NONBLOCK|largeFile)},
			}},
			when(unix.SYS_TGKILL, is(0, uint32(pid)), only(2, 31)),
			{call: unix.SYS_CLONE, refused: []condition{{argument: 0, mask: clones, values: []uint32{unix.CLONE_THREAD}}},
				errno: uint32(unix.EAGAIN)},
			{call: unix.SYS_CLONE3, refused: []condition{}, errno: uint32(unix.ENOSYS)},
			when(unix.SYS_PRCTL, is(0, unix.PR_SET_VMA), is(1, unix.PR_SET_VMA_ANON_NAME)),
		},
	}
}

// clones has the flags by which a thread differs from other clones.
const clones = unix.CLONE_THREAD | unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// program returns the filter program of the policy for one architecture.
func (p policy) program(arch uint32) []bpf.Instruction {
	kill := bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	out := []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: dataNumber, Size: 4},
	}
	for i, call := range p.plain {
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipTrue: uint8(len(p.plain) - i)})
	}
	out = append(out, bpf.Jump{Skip: 1}, allow)
	for _, c := range p.checked {
		body := c.body(allow, kill)
		out = append(out, bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.call, SkipFalse: uint8(len(body))})
		out = append(out, body...)
	}
	return append(out, kill)
}

// body returns the instructions that decide about a call of c.
func (c check) body(allow, kill bpf.Instruction) []bpf.Instruction {
	var out []bpf.Instruction
	for _, way := range c.any {
		out = append(out, path(way, allow)...)
	}
	if c.errno != 0 {
		out = append(out, path(c.refused, bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | c.errno})...)
	}
	return append(out, kill)
}

// path returns instructions that end in verdict if all conditions hold, and otherwise continue after the last one.
func path(conditions []condition, verdict bpf.Instruction) []bpf.Instruction {
	out := []bpf.Instruction{verdict}
	for _, c := range slices.Backward(conditions) {
		test := []bpf.Instruction{
			bpf.LoadAbsolute{Off: dataArgument + 8*c.argument, Size: 4},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask},
		}
		for i, value := range c.values {
			test = append(test, bpf.JumpIf{Cond: bpf.JumpEqual, Val: value, SkipTrue: uint8(len(c.values) - i)})
		}
		test = append(test, bpf.Jump{Skip: uint32(len(out))})
		out = append(test, out...)
	}
	return out
}

// installFilter installs the policy for all threads of the process.
func installFilter(p policy) error {
	raw, err := bpf.Assemble(p.program(auditArchs[runtime.GOARCH]))
	if err != nil {
		return fmt.Errorf("assemble filter: %w", err)
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		filter[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("install filter: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("install filter: thread %d has another one", thread)
	}
	return nil
}
