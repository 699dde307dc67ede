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

// S16: a list of what may be called, and the process dies of everything else.
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

// S16, S17: the calls that are allowed for some of their arguments only.
func TestFilterArguments(t *testing.T) {
	const kill, allow = uint32(unix.SECCOMP_RET_KILL_PROCESS), uint32(unix.SECCOMP_RET_ALLOW)
	const thread = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD
	const mapped = unix.PROT_READ | unix.PROT_WRITE
	for _, tc := range []struct {
		name string
		call uint32
		args []uint64
		a, b uint32
	}{
		{"signal itself", unix.SYS_TGKILL, []uint64{testPID, 9, 23}, allow, allow},
		{"signal another", unix.SYS_TGKILL, []uint64{testPID + 1, 9, 23}, kill, kill},
		{"thread", unix.SYS_CLONE, []uint64{thread}, allow, allow},
		{"process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, kill, kill},
		{"thread in a new user namespace", unix.SYS_CLONE, []uint64{thread | unix.CLONE_NEWUSER}, kill, kill},
		{"clone3", unix.SYS_CLONE3, nil, unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS), unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{"name memory", unix.SYS_PRCTL, []uint64{unix.PR_SET_VMA}, allow, allow},
		{"become dumpable", unix.SYS_PRCTL, []uint64{unix.PR_SET_DUMPABLE, 1}, kill, kill},
		{"filter", unix.SYS_SECCOMP, []uint64{unix.SECCOMP_SET_MODE_FILTER}, allow, kill},
		{"strict mode", unix.SYS_SECCOMP, []uint64{unix.SECCOMP_SET_MODE_STRICT}, kill, kill},
		{"map memory", unix.SYS_MMAP, []uint64{0, 4096, mapped}, allow, allow},
		{"map code", unix.SYS_MMAP, []uint64{0, 4096, unix.PROT_READ | unix.PROT_EXEC}, allow, kill},
		{"map code, high bits set", unix.SYS_MMAP, []uint64{0, 4096, 1<<32 | unix.PROT_EXEC}, allow, kill},
		{"protect memory", unix.SYS_MPROTECT, []uint64{0, 4096, unix.PROT_NONE}, allow, allow},
		{"make code", unix.SYS_MPROTECT, []uint64{0, 4096, unix.PROT_EXEC}, allow, kill},
	} {
		if got := decide(t, filterA(testPID, false), unix.AUDIT_ARCH_X86_64, tc.call, tc.args...); got != tc.a {
			t.Errorf("A, %s: %#x, want %#x", tc.name, got, tc.a)
		}
		if got := decide(t, filterB(testPID), unix.AUDIT_ARCH_X86_64, tc.call, tc.args...); got != tc.b {
			t.Errorf("B, %s: %#x, want %#x", tc.name, got, tc.b)
		}
	}
}

// S17: filter B has none of the calls that load code, and receives nothing.
func TestFilterBLoadsNothing(t *testing.T) {
	loading := map[uint32]string{
		unix.SYS_OPENAT: "openat", unix.SYS_FSTAT: "fstat", unix.SYS_NEWFSTATAT: "newfstatat", unix.SYS_LSEEK: "lseek",
		unix.SYS_PREAD64: "pread64", unix.SYS_READLINKAT: "readlinkat", unix.SYS_RECVMSG: "recvmsg", unix.SYS_GETDENTS64: "getdents64",
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
