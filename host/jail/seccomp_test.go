//go:build linux && (amd64 || arm64)

package jail

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const testPID = 7

// decide runs a policy over one system call. The test machine of x/net reads
// packets, most significant byte first, where the kernel reads host words.
func decide(t *testing.T, p policy, arch, call uint32, args ...uint64) uint32 {
	t.Helper()
	vm, err := bpf.NewVM(p.program(unix.AUDIT_ARCH_X86_64))
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[dataNumber:], call)
	binary.BigEndian.PutUint32(data[dataArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(data[dataArgument+8*i:], uint32(a))
		binary.BigEndian.PutUint32(data[dataArgument+8*i+4:], uint32(a>>32))
	}
	verdict, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(verdict)
}

// A list of what may be called, and the process dies of everything else.
// Every number is tried, in the right architecture and in a wrong one.
func TestFilterAllowsTheListAndNothingElse(t *testing.T) {
	for name, p := range map[string]policy{
		"A": filterA(testPID, false), "A to compile": filterA(testPID, true), "B": filterB(testPID),
	} {
		t.Run(name, func(t *testing.T) {
			allowed := map[uint32]bool{}
			for _, call := range p.plain {
				allowed[call] = true
			}
			decided := map[uint32]bool{}
			for _, c := range p.checked {
				decided[c.call] = true
			}
			for call := range uint32(600) {
				if decided[call] {
					continue
				}
				want := uint32(unix.SECCOMP_RET_KILL_PROCESS)
				if allowed[call] {
					want = unix.SECCOMP_RET_ALLOW
				}
				if got := decide(t, p, unix.AUDIT_ARCH_X86_64, call); got != want {
					t.Errorf("call %d: %#x, want %#x", call, got, want)
				}
				if got := decide(t, p, unix.AUDIT_ARCH_I386, call); got != unix.SECCOMP_RET_KILL_PROCESS {
					t.Errorf("call %d of another architecture: %#x", call, got)
				}
				const x32 = 0x40000000
				if got := decide(t, p, unix.AUDIT_ARCH_X86_64, call|x32); got != unix.SECCOMP_RET_KILL_PROCESS {
					t.Errorf("call %d of x32: %#x", call, got)
				}
			}
		})
	}
}

// The calls that are allowed for some of their arguments only.
func TestFilterArguments(t *testing.T) {
	const kill, allow = uint32(unix.SECCOMP_RET_KILL_PROCESS), uint32(unix.SECCOMP_RET_ALLOW)
	errno := func(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }
	const thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	const mapped = unix.PROT_READ | unix.PROT_WRITE
	const private = unix.MAP_PRIVATE | unix.MAP_ANON
	const hostClock = 0xffff_fff2 // the process with number 1
	for _, tc := range []struct {
		name string
		call uint32
		args []uint64
		a, b uint32
	}{
		{"signal itself", unix.SYS_TGKILL, []uint64{testPID, 9, 23}, allow, allow},
		{"signal another", unix.SYS_TGKILL, []uint64{testPID + 1, 9, 23}, kill, kill},
		{"queue a signal", unix.SYS_TGKILL, []uint64{testPID, 9, 34}, kill, kill},
		{"thread", unix.SYS_CLONE, []uint64{thread}, errno(unix.EAGAIN), errno(unix.EAGAIN)},
		{"process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, kill, kill},
		{"thread in a new user namespace", unix.SYS_CLONE, []uint64{thread | unix.CLONE_NEWUSER}, kill, kill},
		{"clone3", unix.SYS_CLONE3, nil, errno(unix.ENOSYS), errno(unix.ENOSYS)},
		{"name memory", unix.SYS_PRCTL, []uint64{unix.PR_SET_VMA}, allow, allow},
		{"something new about memory", unix.SYS_PRCTL, []uint64{unix.PR_SET_VMA, 1}, kill, kill},
		{"become dumpable", unix.SYS_PRCTL, []uint64{unix.PR_SET_DUMPABLE, 1}, kill, kill},
		{"filter", unix.SYS_SECCOMP, []uint64{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC}, allow, kill},
		{"filter that listens", unix.SYS_SECCOMP,
			[]uint64{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER}, kill, kill},
		{"strict mode", unix.SYS_SECCOMP, []uint64{unix.SECCOMP_SET_MODE_STRICT}, kill, kill},
		{"map memory", unix.SYS_MMAP, []uint64{0, 4096, mapped, private}, allow, allow},
		{"map memory again", unix.SYS_MMAP, []uint64{0, 4096, mapped, private | unix.MAP_FIXED}, allow, allow},
		{"map shared memory", unix.SYS_MMAP, []uint64{0, 4096, mapped, unix.MAP_SHARED | unix.MAP_ANON}, kill, kill},
		{"map shared memory, checked", unix.SYS_MMAP, []uint64{0, 4096, mapped, unix.MAP_SHARED_VALIDATE | unix.MAP_ANON},
			kill, kill},
		{"map droppable memory", unix.SYS_MMAP, []uint64{0, 4096, mapped, mapDroppable | unix.MAP_ANON}, allow, allow},
		{"map a file", unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ, unix.MAP_PRIVATE, 4}, kill, kill},
		{"map locked memory", unix.SYS_MMAP, []uint64{0, 4096, mapped, private | unix.MAP_LOCKED}, kill, kill},
		{"map huge pages", unix.SYS_MMAP, []uint64{0, 1 << 21, mapped, private | unix.MAP_HUGETLB}, errno(unix.ENOMEM), kill},
		{"map a stack", unix.SYS_MMAP, []uint64{0, 4096, mapped, private | unix.MAP_GROWSDOWN}, kill, kill},
		{"map code", unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC, private}, kill, kill},
		{"map code, high bits set", unix.SYS_MMAP, []uint64{0, 4096, 1<<32 | unix.PROT_EXEC, private}, kill, kill},
		{"protect memory", unix.SYS_MPROTECT, []uint64{0, 4096, mapped}, allow, allow},
		{"hide memory", unix.SYS_MPROTECT, []uint64{0, 4096, unix.PROT_NONE}, kill, kill},
		{"hide memory to read", unix.SYS_MPROTECT, []uint64{0, 4096, unix.PROT_READ}, kill, kill},
		{"make code", unix.SYS_MPROTECT, []uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, allow, kill},
		{"make code to write", unix.SYS_MPROTECT, []uint64{0, 4096, mapped | unix.PROT_EXEC}, kill, kill},
		{"own a descriptor", unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN, 1}, kill, kill},
		{"own a descriptor by thread", unix.SYS_FCNTL, []uint64{3, unix.F_SETOWN_EX, 1}, kill, kill},
		{"choose its signal", unix.SYS_FCNTL, []uint64{3, unix.F_SETSIG, 9}, kill, kill},
		{"lock", unix.SYS_FCNTL, []uint64{3, unix.F_SETLK, 1}, kill, kill},
		{"lock the description", unix.SYS_FCNTL, []uint64{3, unix.F_OFD_SETLK, 1}, kill, kill},
		{"lease", unix.SYS_FCNTL, []uint64{3, unix.F_SETLEASE, 1}, kill, kill},
		{"watch a directory", unix.SYS_FCNTL, []uint64{3, unix.F_NOTIFY, 1}, kill, kill},
		{"widen a pipe", unix.SYS_FCNTL, []uint64{2, unix.F_SETPIPE_SZ, 1 << 20}, kill, kill},
		{"seal", unix.SYS_FCNTL, []uint64{4, unix.F_ADD_SEALS, 1}, kill, kill},
		{"ask for the flags", unix.SYS_FCNTL, []uint64{3, unix.F_GETFL}, allow, allow},
		{"not block", unix.SYS_FCNTL, []uint64{3, unix.F_SETFL, unix.O_RDWR | unix.O_NONBLOCK}, allow, allow},
		{"be signalled", unix.SYS_FCNTL, []uint64{3, unix.F_SETFL, unix.O_RDWR | unix.O_ASYNC}, kill, kill},
		{"write packets", unix.SYS_FCNTL, []uint64{2, unix.F_SETFL, unix.O_DIRECT}, kill, kill},
		{"wait", unix.SYS_FUTEX, []uint64{0, futexWait}, allow, allow},
		{"wake", unix.SYS_FUTEX, []uint64{0, futexWake}, allow, allow},
		{"inherit priority", unix.SYS_FUTEX, []uint64{0, 6 | futexPrivate}, kill, kill},
		{"time", unix.SYS_CLOCK_GETTIME, []uint64{unix.CLOCK_MONOTONIC}, allow, allow},
		{"own time", unix.SYS_CLOCK_GETTIME, []uint64{unix.CLOCK_PROCESS_CPUTIME_ID}, allow, allow},
		{"time of the host", unix.SYS_CLOCK_GETTIME, []uint64{hostClock}, kill, kill},
		{"give memory back", unix.SYS_MADVISE, []uint64{0, 4096, unix.MADV_DONTNEED}, allow, allow},
		{"page out", unix.SYS_MADVISE, []uint64{0, 4096, unix.MADV_PAGEOUT}, kill, kill},
		{"merge pages", unix.SYS_MADVISE, []uint64{0, 4096, unix.MADV_MERGEABLE}, kill, kill},
		{"poison memory", unix.SYS_MADVISE, []uint64{0, 4096, unix.MADV_HWPOISON}, kill, kill},
		{"read a file", unix.SYS_OPENAT, []uint64{5, 0, unix.O_RDONLY | unix.O_CLOEXEC}, allow, kill},
		{"write a file", unix.SYS_OPENAT, []uint64{5, 0, unix.O_RDWR | unix.O_CREAT}, kill, kill},
		{"truncate a file", unix.SYS_OPENAT, []uint64{5, 0, unix.O_RDONLY | unix.O_TRUNC}, kill, kill},
		{"a file without a name", unix.SYS_OPENAT, []uint64{5, 0, unix.O_RDWR | unix.O_TMPFILE}, kill, kill},
	} {
		if got := decide(t, filterA(testPID, false), unix.AUDIT_ARCH_X86_64, tc.call, tc.args...); got != tc.a {
			t.Errorf("A, %s: %#x, want %#x", tc.name, got, tc.a)
		}
		if got := decide(t, filterB(testPID), unix.AUDIT_ARCH_X86_64, tc.call, tc.args...); got != tc.b {
			t.Errorf("B, %s: %#x, want %#x", tc.name, got, tc.b)
		}
	}
}

// What a compile worker may do with files beyond others: make one, name it, flush it.
func TestFilterToCompile(t *testing.T) {
	const kill, allow = uint32(unix.SECCOMP_RET_KILL_PROCESS), uint32(unix.SECCOMP_RET_ALLOW)
	const refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	for _, tc := range []struct {
		name string
		call uint32
		args []uint64
		want uint32
	}{
		{"create", unix.SYS_OPENAT, []uint64{5, 0, unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC}, allow},
		{"truncate", unix.SYS_OPENAT, []uint64{5, 0, unix.O_RDWR | unix.O_TRUNC}, kill},
		{"create without a name", unix.SYS_OPENAT, []uint64{5, 0, unix.O_RDWR | unix.O_TMPFILE}, kill},
		{"rename", unix.SYS_RENAMEAT, nil, allow},
		{"flush", unix.SYS_FSYNC, nil, allow},
		{"make a directory", unix.SYS_MKDIRAT, nil, refuse},
		{"remove", unix.SYS_UNLINKAT, nil, refuse},
		{"link", unix.SYS_LINKAT, nil, kill},
		{"grow", unix.SYS_FALLOCATE, nil, kill},
		{"receive", unix.SYS_RECVMSG, nil, allow},
	} {
		if got := decide(t, filterA(testPID, true), unix.AUDIT_ARCH_X86_64, tc.call, tc.args...); got != tc.want {
			t.Errorf("%s: %#x, want %#x", tc.name, got, tc.want)
		}
	}
}

// Filter B has none of the calls that load code, and receives nothing.
func TestFilterBLoadsNothing(t *testing.T) {
	loading := map[uint32]string{
		unix.SYS_FSTAT: "fstat", unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_LSEEK: "lseek",
		unix.SYS_PREAD64: "pread64", unix.SYS_RECVMSG: "recvmsg", unix.SYS_GETDENTS64: "getdents64",
	}
	a, b := filterA(testPID, false), filterB(testPID)
	for _, call := range slices.Sorted(maps.Keys(loading)) {
		if decide(t, a, unix.AUDIT_ARCH_X86_64, call) != unix.SECCOMP_RET_ALLOW {
			t.Errorf("A kills for %s", loading[call])
		}
		if decide(t, b, unix.AUDIT_ARCH_X86_64, call) != unix.SECCOMP_RET_KILL_PROCESS {
			t.Errorf("B lets %s pass", loading[call])
		}
	}
}
