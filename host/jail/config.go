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
	// ErrPromise says that a required layer could not be set up. The run ends with
	// launch_failed, failure_code isolation_unavailable.
	ErrPromise = errors.New("promised isolation is unavailable")
	// ErrOrphan: the host died before the worker was ready; the worker exits.
	ErrOrphan = errors.New("host is gone")
	// ErrLimits says that a worker was given incomplete limits.
	ErrLimits = errors.New("resource limits are incomplete")
	// ErrNoUID says that every uid of the range belongs to a live worker.
	ErrNoUID = errors.New("no free worker uid")
	// ErrClosed says that the launcher was closed.
	ErrClosed = errors.New("launcher is closed")
	// ErrUnsupported: the operating system does not offer this.
	ErrUnsupported = errors.New("not supported on this operating system")
)

// Identity is what the host tells a worker about itself.
type Identity struct {
	// UID and GID are what the worker switches to, -1 to keep its own.
	UID int `json:"uid"`
	GID int `json:"gid"`
	// Parent is the host's pid outside of any namespace.
	Parent int `json:"parent"`
	// Namespaces are the fresh ones it was started in.
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

// Walls selects the layers to build. The zero value builds all that the machine offers.
// Leaving one out is for benchmarks and for tests that another layer holds without it; no
// configuration of a host does.
type Walls struct {
	// Off leaves out all of them, limits included.
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
	// overhead is the data memory of a worker beside guest memory and code.
	overhead = 384 * mebibyte
	// reservation is the address space that the Go runtime takes before it does anything.
	reservation = 2048 * mebibyte
	// graceCPU is CPU time beyond the compute budget, so that the host's clock ends a run first.
	graceCPU = 5 * time.Second

	defaultFiles = 16
)

// Limits are the resource limits that a worker sets for itself. DataBytes, AddressBytes and
// CPU are required; Files defaults to 16.
type Limits struct {
	// DataBytes limits private writable memory, touched or not.
	DataBytes uint64 `json:"data_bytes"`
	// AddressBytes bounds the address space; it includes what the Go runtime only reserves.
	AddressBytes uint64 `json:"address_bytes"`
	// CPU is rounded up to whole seconds; then the kernel kills the worker.
	CPU time.Duration `json:"cpu_ns"`
	// FileBytes is the largest file the worker may write, 0 for one that writes none.
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
	return Limits{DataBytes: data, AddressBytes: data + reservation, CPU: 30 * time.Second, FileBytes: entry, Files: defaultFiles}
}

// completed checks l and fills in what has a default.
func (l Limits) completed() (Limits, error) {
	if l.DataBytes == 0 || l.AddressBytes < l.DataBytes || l.CPU <= 0 || l.Files < 0 {
		return l, fmt.Errorf("%w: data %d, address space %d, CPU %v, files %d",
			ErrLimits, l.DataBytes, l.AddressBytes, l.CPU, l.Files)
	}
	l.Files = cmp.Or(l.Files, defaultFiles)
	return l, nil
}

// cpuSeconds is the CPU limit in the kernel's unit.
func (l Limits) cpuSeconds() uint64 {
	return uint64((l.CPU + time.Second - 1) / time.Second)
}
