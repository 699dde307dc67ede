//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"runtime"
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

// policy is an allow-list of system calls: everything else kills the process.
type policy struct {
	plain   []uint32 // allowed with any argument, most frequent first
	checked []check
}

// check decides one system call by the low half of one of its arguments.
type check struct {
	call     uint32
	argument uint32
	// mask and value: the call is allowed if argument&mask == value.
	mask, value uint32
	// instead, if not 0, is the errno for every use of the call.
	instead uint32
}

// filterA is in force while a worker loads code (S16). pid is the worker's own,
// as it sees itself. A compile worker may also write into its directory.
func filterA(pid int, writable bool) policy {
	p := basis(pid)
	p.plain = append(p.plain, unix.SYS_RECVMSG, unix.SYS_MMAP, unix.SYS_MPROTECT,
		unix.SYS_OPENAT, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_LSEEK, unix.SYS_PREAD64, unix.SYS_READLINKAT,
		unix.SYS_GETDENTS64) // the worker lists the directory it was handed
	p.checked = append(p.checked, equal(unix.SYS_SECCOMP, 0, unix.SECCOMP_SET_MODE_FILTER))
	if writable {
		// What writing a cache entry takes: create, name, flush, discard (S37).
		p.plain = append(p.plain, unix.SYS_MKDIRAT, unix.SYS_RENAMEAT, unix.SYS_UNLINKAT, unix.SYS_FSYNC)
	}
	return p
}

// filterB is in force while a guest runs (S17): nothing is loaded any more, and
// no mapping becomes executable.
func filterB(pid int) policy {
	p := basis(pid)
	p.checked = append(p.checked,
		without(unix.SYS_MMAP, 2, unix.PROT_EXEC),
		without(unix.SYS_MPROTECT, 2, unix.PROT_EXEC))
	return p
}

// basis is what the Go runtime needs to live and the relay to speak. Beyond the
// list of S16 it has two calls: prctl only to name memory regions, which the
// runtime does on every mapping since Go 1.25, and writev, so that a header and
// a payload reach the socket in one call; it can do nothing that write cannot.
func basis(pid int) policy {
	const otherNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	return policy{
		plain: append([]uint32{
			unix.SYS_FUTEX, unix.SYS_READ, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_EPOLL_PWAIT, unix.SYS_NANOSLEEP,
			unix.SYS_SCHED_YIELD, unix.SYS_CLOCK_GETTIME, unix.SYS_MADVISE, unix.SYS_MUNMAP, unix.SYS_RT_SIGRETURN,
			unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_SIGALTSTACK, unix.SYS_GETPID, unix.SYS_GETTID,
			unix.SYS_CLOSE, unix.SYS_FCNTL, unix.SYS_GETRANDOM, unix.SYS_RESTART_SYSCALL, unix.SYS_EPOLL_CREATE1,
			unix.SYS_EPOLL_CTL, unix.SYS_EVENTFD2, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
		}, libc...),
		checked: []check{
			equal(unix.SYS_TGKILL, 0, uint32(pid)),
			{call: unix.SYS_CLONE, mask: unix.CLONE_THREAD | otherNamespaces, value: unix.CLONE_THREAD},
			{call: unix.SYS_CLONE3, instead: uint32(unix.ENOSYS)},
			equal(unix.SYS_PRCTL, 0, unix.PR_SET_VMA),
		},
	}
}

func equal(call, argument, value uint32) check {
	return check{call: call, argument: argument, mask: ^uint32(0), value: value}
}

func without(call, argument, bits uint32) check {
	return check{call: call, argument: argument, mask: bits}
}

// program assembles the policy for one architecture.
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

func (c check) body(allow, kill bpf.Instruction) []bpf.Instruction {
	if c.instead != 0 {
		return []bpf.Instruction{bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | c.instead}}
	}
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: dataArgument + 8*c.argument, Size: 4},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: c.mask},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: c.value, SkipFalse: 1},
		allow,
		kill,
	}
}

// installFilter puts the policy on every thread of the process (S15).
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
