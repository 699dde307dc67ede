package jail

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Descriptors of a worker. 0 and 1 are the null device, 2 is a pipe to the host.
const (
	SocketFD = 3
	ModuleFD = 4
	DirFD    = 5
	// NoDir is passed to [Enter] by a worker without a directory.
	NoDir = -1
)

var (
	// ErrPromise reports that a required layer could not be set up. The run ends with launch_failed, failure_code
	// isolation_unavailable.
	ErrPromise = errors.New("promised isolation is unavailable")
	// ErrOrphan reports that the host died before the worker was ready. The worker exits.
	ErrOrphan = errors.New("host is gone")
	// ErrLimits reports that a worker was given incomplete limits.
	ErrLimits = errors.New("resource limits are incomplete")
	// ErrNoUID reports that live workers have all uids of the range.
	ErrNoUID = errors.New("no free worker uid")
	// ErrClosed reports that the launcher is closed.
	ErrClosed = errors.New("launcher is closed")
	// ErrUnsupported reports that the operating system lacks a feature.
	ErrUnsupported = errors.New("not supported on this operating system")
)

// Identity is what the host tells a worker about the worker itself.
type Identity struct {
	// UID and GID are the ids to which the worker switches, -1 to keep its own.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Parent is the host's pid outside of any namespace.
	Parent int `json:"parent"`
	// Namespaces lists the new namespaces in which it was started.
	Namespaces []string `json:"namespaces"`
}

// Config is the configuration of a worker. The host gets it from [Process.Config], adds
// Limits, Promised and Writable, and sends it over the socket with the descriptors.
type Config struct {
	Identity Identity `json:"identity"`
	Walls    Walls    `json:"walls"`
	Limits   Limits   `json:"limits"`
	// Promised is the isolation that the host requires, usually the result of its
	// self-test; nil accepts any. A worker with less fails.
	Promised *Isolation `json:"promised,omitempty"`
	// Writable makes the directory a fresh output directory instead of compiled code to read.
	Writable bool `json:"writable,omitempty"`
}

// Walls selects the layers to build. The zero value selects all that the machine offers. Omitting one is only for
// benchmarks and for tests that another layer holds by itself; a host's configuration never does.
type Walls struct {
	// Off omits all of them, including limits.
	Off          bool `json:"off,omitempty"`
	NoNamespaces bool `json:"no_namespaces,omitempty"`
	NoUID        bool `json:"no_uid,omitempty"`
	NoLandlock   bool `json:"no_landlock,omitempty"`
	NoSeccomp    bool `json:"no_seccomp,omitempty"`
	NoLimits     bool `json:"no_limits,omitempty"`
}

// resolved expands Off.
func (w Walls) resolved() Walls {
	if w.Off {
		return Walls{Off: true, NoNamespaces: true, NoUID: true, NoLandlock: true, NoSeccomp: true, NoLimits: true}
	}
	return w
}

const mebibyte = 1 << 20

const (
	// overhead is a worker's data memory in addition to guest memory and code.
	overhead = 384 * mebibyte
	// reservation is the address space that the Go runtime reserves at start.
	reservation = 2048 * mebibyte
	// graceCPU is CPU time in addition to the compute budget, so that the host ends a run first.
	graceCPU = 5 * time.Second

	defaultFiles = 16
)

// Limits are the resource limits that a worker sets for itself. DataBytes, AddressBytes and
// CPU are required; Files defaults to 16.
type Limits struct {
	// DataBytes limits private writable memory, touched or not.
	DataBytes uint64 `json:"data_bytes"`
	// AddressBytes limits the address space, including what the Go runtime only reserves.
	AddressBytes uint64 `json:"address_bytes"`
	// CPU is rounded up to whole seconds. Afterwards the kernel kills the worker.
	CPU time.Duration `json:"cpu_ns"`
	// FileBytes is the size of the largest file that the worker may write, 0 if it writes none.
	FileBytes uint64 `json:"file_bytes"`
	Files     int    `json:"files"`
}

// RunLimits returns the limits of a worker that runs a guest with this memory cap, size of
// compiled code and compute budget.
func RunLimits(guest, code uint64, compute time.Duration) Limits {
	data := guest + code + overhead
	return Limits{DataBytes: data, AddressBytes: data + reservation, CPU: compute + graceCPU, Files: defaultFiles}
}

// CompileLimits returns the limits of a worker that compiles a module into an entry of up
// to entry bytes.
func CompileLimits(entry uint64) Limits {
	const data = 1024 * mebibyte
	return Limits{DataBytes: data, AddressBytes: data + reservation, CPU: 30 * time.Second, FileBytes: entry,
		Files: defaultFiles}
}

// completed validates l and sets defaults.
func (l Limits) completed() (Limits, error) {
	if l.DataBytes == 0 || l.AddressBytes < l.DataBytes || l.CPU <= 0 || l.Files < 0 {
		return l, fmt.Errorf("%w: data %d, address space %d, CPU %v, files %d",
			ErrLimits, l.DataBytes, l.AddressBytes, l.CPU, l.Files)
	}
	l.Files = cmp.Or(l.Files, defaultFiles)
	return l, nil
}

// cpuSeconds returns the CPU limit in seconds, the kernel's unit.
func (l Limits) cpuSeconds() uint64 {
	return uint64((l.CPU + time.Second - 1) / time.Second)
}
