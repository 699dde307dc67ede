package jail

import (
	"errors"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

func whyNoUID() (cause, remedy string) {
	if os.Geteuid() == 0 {
		return "the host is root without the right to change uid, as in a container that drops capabilities",
			"grant CAP_SETUID, CAP_SETGID and CAP_SETPCAP, or run as an ordinary user where user namespaces work"
	}
	return whyNoNamespaces()
}

// knobs lists settings with which systems deny namespaces to ordinary users.
var knobs = []struct{ path, forbids, cause, remedy string }{
	{"/proc/sys/user/max_user_namespaces", "0",
		"user namespaces are turned off", "sysctl user.max_user_namespaces=10000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0",
		"user namespaces are reserved for root", "sysctl kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
		"AppArmor restricts user namespaces to programs with a profile",
		"install the AppArmor profile for sluice, or sysctl kernel.apparmor_restrict_unprivileged_userns=0"},
}

func whyNoNamespaces() (cause, remedy string) {
	for _, k := range knobs {
		if value, err := os.ReadFile(k.path); err == nil && strings.TrimSpace(string(value)) == k.forbids {
			return k.cause, k.remedy
		}
	}
	if contained() {
		return "a container without privileges",
			"run on the machine itself, or allow user namespaces in the container's seccomp profile"
	}
	return "a policy of this system, a changed root, or a kernel without namespaces",
		"run as root or as a user who may make user namespaces (unshare -Ur true succeeds)"
}

// contained guesses whether this process runs in a container.
func contained() bool {
	for _, path := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(path); err == nil {
			return true
		}
	}
	return os.Getenv("container") != ""
}

func whyNoLandlock() (cause, remedy string) {
	_, err := landlockABI()
	switch {
	case err == nil:
		return "this program was built with cgo, which cannot reach all threads", "use a build made with CGO_ENABLED=0"
	case errors.Is(err, unix.EOPNOTSUPP):
		return "Landlock is not enabled in this kernel", "add landlock to the lsm= boot parameter"
	case errors.Is(err, unix.ENOSYS):
		return "the kernel is older than 5.13 or built without Landlock", "use a newer kernel"
	}
	return "Landlock is forbidden here: " + err.Error(),
		"allow the landlock system calls in the container's seccomp profile"
}

func whyNoSeccomp() (cause, remedy string) {
	if _, known := auditArchs[runtime.GOARCH]; !known {
		return "there is no system call list for " + runtime.GOARCH, "run on amd64 or arm64"
	}
	return "the kernel is older than 4.14 or built without seccomp filters", "use a newer kernel"
}

func whyNoGroup() (cause, remedy string) {
	return "this host may make no control groups",
		"run it as root, or as a systemd service with Delegate=yes; see cgroups(7)"
}

func whyNoLimits() (cause, remedy string) {
	return "limits could not be set", "report this: the kernel refused to lower a limit"
}

// auditArchs lists the architectures whose system calls have been reviewed.
var auditArchs = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64,
	"arm64": unix.AUDIT_ARCH_AARCH64,
}
