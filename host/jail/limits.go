package jail

import (
	"fmt"
	"time"
)

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

// Limits are the resource limits a worker sets on itself. DataBytes,
// AddressBytes and CPU must be set; Files defaults to 16.
type Limits struct {
	// DataBytes is the memory wall: private writable memory, touched or not.
	DataBytes uint64 `json:"data_bytes"`
	// AddressBytes bounds the address space; it includes what the Go runtime only reserves.
	AddressBytes uint64 `json:"address_bytes"`
	// CPU is rounded up to whole seconds; at its end the kernel kills the worker.
	CPU time.Duration `json:"cpu_ns"`
	// FileBytes is the largest file the worker may write, 0 for one that writes none.
	FileBytes uint64 `json:"file_bytes"`
	Files     int    `json:"files"`
}

// RunLimits are the limits of a worker that runs a guest: guest is the
// guest's memory cap, code the size of its compiled code, compute its budget.
func RunLimits(guest, code uint64, compute time.Duration) Limits {
	data := guest + code + overhead
	return Limits{DataBytes: data, AddressBytes: data + reservation, CPU: compute + graceCPU, Files: defaultFiles}
}

// CompileLimits are the limits of a worker that compiles a module into an entry
// of at most entry bytes.
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
	if l.Files == 0 {
		l.Files = defaultFiles
	}
	return l, nil
}

// cpuSeconds is the CPU limit in the kernel's unit.
func (l Limits) cpuSeconds() uint64 {
	return uint64((l.CPU + time.Second - 1) / time.Second)
}
