package jail

import "golang.org/x/sys/unix"

// auditArchs are the architectures whose system calls were gone through.
var auditArchs = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64,
	"arm64": unix.AUDIT_ARCH_AARCH64,
}
