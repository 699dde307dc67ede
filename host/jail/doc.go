// Package jail turns a command into a command without authority.
//
// It has both halves of the jail around a worker. The outer half, [Launcher], starts the
// host's own executable with the hidden command "worker" in new namespaces, under a
// separate uid, with a replaced environment and a fixed list of descriptors. The inner
// half, [Enter] and [Inside.Seal], is called by that worker before it reads the first byte
// of a module: limits, an empty root, no capabilities, no new privileges, Landlock and two
// seccomp filters. [Launcher.SelfTest] and [Launcher.Probe] test what holds on this
// machine.
//
// It trusts the kernel, the host's executable and its caller in the host. It trusts a
// worker only until [Enter] has returned: nothing that a worker reports later changes what
// it may do.
//
// Linux has every layer. On macOS and the BSDs a worker is a process with limits only, and
// its [Isolation] level is "process". On other systems no worker starts: [ErrUnsupported].
//
// A build with cgo cannot run a system call on all of its threads, so it goes
// without Landlock; builds with CGO_ENABLED=0 have every layer.
package jail
