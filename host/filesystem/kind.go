package filesystem

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// Kind is the filesystem binding: directories that an owner approves, and a scratch
// directory.
type Kind struct{}

var _ binding.Kind = Kind{}

// The most directories of one approval, and the longest path of one in bytes.
const (
	maxMounts   = 16
	maxHostPath = 4096
)

// Name implements binding.Kind.
func (Kind) Name() string { return abi.BindingFilesystem }

// Imports implements binding.Kind.
func (Kind) Imports() (prefix, words string) {
	return abi.ModuleWASI + ".path_", "open files in the directories you mount"
}

// Asks implements binding.Kind.
func (Kind) Asks(m *abi.Manifest, a store.Approved) []binding.Ask {
	var out []binding.Ask
	for _, r := range m.Bindings[abi.BindingFilesystem].Mounts {
		out = append(out, askOf(r, a))
	}
	return append(out, binding.Ask{Words: "a scratch directory of its own", Granted: "yes, emptied after each run"})
}

func askOf(r abi.MountRequest, a store.Approved) binding.Ask {
	name := abi.Clean(r.Name)
	read := binding.Want{Kind: "directory", Name: r.Name, Words: "read the directory " + name}
	change := binding.Want{Kind: "change", Name: r.Name, Words: "change files in the directory " + name}
	flag := "--mount " + name + "=DIR"
	ask := binding.Ask{Wants: []binding.Want{read}, Words: read.Words}
	if r.Writable {
		ask.Wants, ask.Words, flag = append(ask.Wants, change), "read and change the directory "+name, flag+":rw"
	}
	if purpose := abi.Clean(r.Purpose); purpose != "" {
		ask.Words += ": " + purpose
	}
	i := slices.IndexFunc(a.Mounts, func(m store.Mount) bool { return m.Name == r.Name })
	switch {
	case i < 0:
		ask.Missing, ask.Lacks = ask.Wants, "directory "+r.Name+" (give it with --mount "+r.Name+"=DIR)"
	case r.Writable && !a.Mounts[i].Writable:
		ask.Missing, ask.Lacks = ask.Wants[1:], "writing to directory "+r.Name+" (give it with --mount "+r.Name+"=DIR:rw)"
	default:
		ask.Granted = "granted: " + a.Mounts[i].Path
		return ask
	}
	ask.Granted, ask.Flag = "only with "+flag, flag
	return ask
}

// Request implements binding.Kind.
func (Kind) Request(b abi.Binding, r *host.RequestedBinding) {
	for _, m := range b.Mounts {
		r.Mounts = append(r.Mounts, host.RequestedMount(m))
	}
}

// Granted implements binding.Kind.
func (Kind) Granted(_ *abi.Manifest, a store.Approved) []string {
	var out []string
	for _, d := range a.Mounts {
		verb := "read "
		if d.Writable {
			verb = "read and change "
		}
		out = append(out, verb+d.Path+", which it calls "+d.Name)
	}
	return out
}

// AddToStart implements binding.Kind. Every START has the filesystem binding, without mounts if
// the connector asks for none.
func (Kind) AddToStart(m *abi.Manifest, c store.Connection, lent *abi.Bindings) error {
	lent.Filesystem = &abi.FilesystemBinding{Mounts: []abi.GuestMount{}}
	if _, declared := m.Bindings[abi.BindingFilesystem]; !declared {
		return nil
	}
	for _, r := range GuestRoots(m, c.Approved.Mounts) {
		lent.Filesystem.Mounts = append(lent.Filesystem.Mounts,
			abi.GuestMount{Path: mountPoint(r.Name), Mode: Mount{Writable: r.Writable}.Mode()})
	}
	lent.Filesystem.Mounts = append(lent.Filesystem.Mounts,
		abi.GuestMount{Path: ScratchPath, Mode: Mount{Writable: true}.Mode()})
	return nil
}

// GuestRoots returns the approved directories that the manifest asks for, as the guest sees
// them.
func GuestRoots(m *abi.Manifest, approved []store.Mount) []store.Mount {
	var out []store.Mount
	asked := m.Bindings[abi.BindingFilesystem].Mounts
	for _, a := range approved {
		if i := slices.IndexFunc(asked, func(r abi.MountRequest) bool { return r.Name == a.Name }); i >= 0 {
			a.Writable = a.Writable && asked[i].Writable
			out = append(out, a)
		}
	}
	return out
}

// Denial implements binding.Kind.
func (Kind) Denial() (code, message string) {
	return "binding_not_approved", "no files are lent to this run"
}

// Approve implements binding.Kind. A path must be the absolute, clean path of an existing
// directory, so that its meaning does not depend on this process.
func (Kind) Approve(q binding.Approval, c *store.Connection) error {
	if q.Bindings.Filesystem == nil {
		return nil
	}
	mounts := q.Bindings.Filesystem.Mounts
	if len(mounts) > maxMounts {
		return host.Invalid("filesystem.mounts", "too_many", "want at most %d", maxMounts)
	}
	asked := q.Manifest.Bindings[abi.BindingFilesystem].Mounts
	var out []store.Mount
	for n, w := range mounts {
		path := fmt.Sprintf("filesystem.mounts[%d]", n)
		if slices.ContainsFunc(out, func(o store.Mount) bool { return o.Name == w.Name }) {
			return host.Invalid(path+".name", "duplicate", "each directory once")
		}
		if err := checkMount(asked, w, path); err != nil {
			return err
		}
		a, err := ApproveMount(w.Name, w.HostPath, w.Mode == "rw", q.DataDir)
		if errors.Is(err, ErrRefused) {
			return host.Invalid(path+".hostPath", "directory_refused",
				"no connector may see this directory; approve one that holds only what it may see")
		}
		if err != nil {
			return host.Invalid(path+".hostPath", "directory_missing", "want a directory that exists and can be reached")
		}
		out = append(out, a)
	}
	c.Approved.Mounts = out
	return nil
}

// checkMount checks an approved directory against those asked for.
func checkMount(asked []abi.MountRequest, w host.Mount, path string) error {
	i := slices.IndexFunc(asked, func(r abi.MountRequest) bool { return r.Name == w.Name })
	p := Home(w.HostPath)
	switch {
	case i < 0:
		return host.NotRequested(path + ".name")
	case w.Mode != "" && w.Mode != "ro" && w.Mode != "rw":
		return host.Invalid(path+".mode", "value_unknown", "want ro or rw")
	case w.Mode == "rw" && !asked[i].Writable:
		return host.NotRequested(path + ".mode")
	case !plainPath(p) || filepath.Clean(w.HostPath) != w.HostPath:
		return host.Invalid(path+".hostPath", "path",
			"want the absolute path of a directory, or one that begins with ~/, without dots and doubled slashes")
	}
	return nil
}

// ApproveMount is Approve for a directory with its name in the manifest.
func ApproveMount(name, path string, writable bool, dataDir string) (store.Mount, error) {
	m, err := Approve(Home(path), writable, dataDir)
	m.Name = name
	return m, err
}

// Read implements binding.Kind. The identity of a directory never leaves its host.
func (Kind) Read(q host.Bindings, a *store.Approved) {
	if q.Filesystem == nil {
		return
	}
	a.Mounts = nil
	for _, m := range q.Filesystem.Mounts {
		a.Mounts = append(a.Mounts, store.Mount{Name: m.Name, Path: m.HostPath, Writable: m.Mode == "rw"})
	}
}

// Show implements binding.Kind.
func (Kind) Show(c store.Connection, asked bool, q *host.Bindings) {
	if len(c.Approved.Mounts) == 0 && !asked {
		return
	}
	q.Filesystem = &host.FilesystemBinding{Mounts: []host.Mount{}}
	for _, a := range c.Approved.Mounts {
		q.Filesystem.Mounts = append(q.Filesystem.Mounts,
			host.Mount{Name: a.Name, HostPath: a.Path, Mode: Mount{Writable: a.Writable}.Mode()})
	}
}

// Merge implements binding.Kind. A directory replaces one of the same name.
func (Kind) Merge(a *store.Approved, more store.Approved) {
	kept := slices.DeleteFunc(slices.Clone(a.Mounts), func(m store.Mount) bool {
		return slices.ContainsFunc(more.Mounts, func(n store.Mount) bool { return n.Name == m.Name })
	})
	a.Mounts = append(kept, more.Mounts...)
}

// Withdraw implements binding.Kind: names are those of the manifest.
func (Kind) Withdraw(a *store.Approved, names []string) (missing []string) {
	var have []string
	for _, m := range a.Mounts {
		have = append(have, m.Name)
	}
	left, missing := binding.Without(have, names)
	a.Mounts = slices.DeleteFunc(slices.Clone(a.Mounts),
		func(m store.Mount) bool { return !slices.Contains(left, m.Name) })
	return missing
}

// Narrower implements binding.Kind.
func (Kind) Narrower(old, new store.Approved) bool {
	for _, m := range old.Mounts {
		kept := func(n store.Mount) bool {
			same := n.Name == m.Name && n.Path == m.Path && n.Device == m.Device && n.Inode == m.Inode
			return same && (n.Writable || !m.Writable)
		}
		if !slices.ContainsFunc(new.Mounts, kept) {
			return true
		}
	}
	return false
}

// Binding is the filesystem binding of one run.
type Binding struct{ *FS }

var _ binding.Binding = Binding{}

// Takes implements binding.Binding.
func (Binding) Takes(call abi.Call, _ []byte) bool {
	return call >= abi.CallFileOpen && call <= abi.CallFileTimes
}

// Close implements binding.Binding. It erases the scratch directory.
func (l Binding) Close(context.Context) error { return l.FS.Close() }
