package filesystem

import (
	"fmt"
	"path"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// mountPoint returns the guest path of the directory with this name in the manifest.
func mountPoint(name string) string { return "/" + name }

// ScratchPath is the guest path of its scratch directory.
const ScratchPath = "/tmp"

// A Mount is a directory as the guest sees it.
type Mount struct {
	Path     string
	Writable bool
}

// Mode returns "rw" or "ro", as START announces it.
func (m Mount) Mode() string {
	if m.Writable {
		return "rw"
	}
	return "ro"
}

// A Quota bounds what a run may add to one directory. Files counts the files that the run
// created or extended.
type Quota struct {
	Bytes int64
	Files int
	Dirs  int
	Depth int // components of a path below the directory
}

// Quotas are the quotas of one run.
type Quotas struct {
	Scratch Quota // the guest's /tmp
	Root    Quota // each writable root
}

// DefaultQuotas returns the defaults.
func DefaultQuotas() Quotas {
	return Quotas{
		Scratch: Quota{Bytes: 256 * abi.MiB, Files: 10_000, Dirs: 10_000, Depth: 32},
		Root:    Quota{Bytes: 1024 * abi.MiB, Files: 10_000, Dirs: 10_000, Depth: abi.MaxFileComponents},
	}
}

// Check refuses quotas beyond their maxima.
func (q Quotas) Check() error {
	for _, b := range []struct {
		key        string
		value, max int64
	}{
		{"fs.scratch_bytes", q.Scratch.Bytes, 16 * 1024 * abi.MiB},
		{"fs.scratch_files", int64(q.Scratch.Files), 1_000_000},
		{"fs.scratch_dirs", int64(q.Scratch.Dirs), 1_000_000},
		{"fs.scratch_depth", int64(q.Scratch.Depth), abi.MaxFileComponents},
		{"fs.write_bytes", q.Root.Bytes, 1 << 50},
		{"fs.write_files", int64(q.Root.Files), 1_000_000},
		{"fs.write_dirs", int64(q.Root.Dirs), 1_000_000},
		{"fs.write_depth", int64(q.Root.Depth), abi.MaxFileComponents},
	} {
		if b.value < 0 || b.value > b.max {
			return fmt.Errorf("%s is %d: want 0 to %d", b.key, b.value, b.max)
		}
	}
	return nil
}

// checkGuestPaths refuses mounts with equal or invalid guest paths.
func checkGuestPaths(mounts []store.Mount) error {
	taken := []string{ScratchPath}
	for _, m := range mounts {
		p := mountPoint(m.Name)
		if len(p) < 2 || path.Clean(p) != p || len(p) > abi.MaxFileName || strings.ContainsRune(p, 0) {
			return fmt.Errorf("mount %q: not a usable path for a mount: want a clean one", p)
		}
		for _, t := range taken {
			if t == p || strings.HasPrefix(p, t+"/") || strings.HasPrefix(t, p+"/") {
				return fmt.Errorf("mount %q: not a usable path for a mount: it overlaps %q", p, t)
			}
		}
		taken = append(taken, p)
	}
	return nil
}
