package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// mounts are the directories of a run: those of --mount, then those that are
// required, not approved yet, and named by the owner when asked (S56).
func (c approval) mounts(h *app.Host, known store.Connection, m *abi.Manifest, f *runFlags) ([]store.Mount, error) {
	given, err := approveMounts(h, m, f.mounts)
	if err != nil {
		return nil, err
	}
	t, ok := c.terminal()
	if !ok || f.yes || f.noInteractive {
		return given, nil
	}
	return append(given, t.askMounts(h, m, slices.Concat(known.Approved.Mounts, given))...), nil
}

// approveMounts reads NAME=DIR[:rw] and checks the directories.
func approveMounts(h *app.Host, m *abi.Manifest, args []string) ([]store.Mount, error) {
	var known []string
	changes := map[string]bool{}
	for _, r := range m.Bindings[abi.BindingFilesystem].Mounts {
		known = append(known, r.Name)
		changes[r.Name] = r.Writable
	}
	var out []store.Mount
	for _, a := range args {
		name, dir, ok := strings.Cut(a, "=")
		if !ok || name == "" || dir == "" {
			return nil, usagef("--mount %s: want NAME=DIR or NAME=DIR:rw", abi.Clean(a))
		}
		if !slices.Contains(known, name) {
			return nil, usagef("--mount %s: the connector asks for no directory of that name; it asks for: %s", abi.Clean(name), orNone(known))
		}
		if slices.ContainsFunc(out, func(m store.Mount) bool { return m.Name == name }) {
			return nil, usagef("--mount %s is given twice", name)
		}
		dir, writable := strings.CutSuffix(dir, ":rw")
		dir = strings.TrimSuffix(dir, ":ro")
		if writable && !changes[name] {
			return nil, usagef("--mount %s: the connector asks to read it only; leave out :rw", name)
		}
		approved, err := h.ApproveMount(name, filepath.Clean(dir), writable)
		if err != nil {
			return nil, usage{fmt.Errorf("--mount %s: %w", name, err)}
		}
		out = append(out, approved)
	}
	return out, nil
}

// askMounts asks for each required directory that is not among approved. The
// owner who gives none sees the start refused with its name.
func (t terminal) askMounts(h *app.Host, m *abi.Manifest, approved []store.Mount) []store.Mount {
	b := m.Bindings[abi.BindingFilesystem]
	if !b.Required {
		return nil
	}
	var out []store.Mount
	for _, want := range b.Mounts {
		if slices.ContainsFunc(approved, func(a store.Mount) bool { return a.Name == want.Name && (a.Writable || !want.Writable) }) {
			continue
		}
		if mount, ok := t.askMount(h, m, want); ok {
			out = append(out, mount)
		}
	}
	return out
}

func (t terminal) askMount(h *app.Host, m *abi.Manifest, want abi.MountRequest) (store.Mount, bool) {
	access := "read"
	if want.Writable {
		access = "read and change"
	}
	t.say("── %s wants to %s a directory it calls %s", shownName(m), access, abi.Clean(want.Name))
	if want.Purpose != "" {
		t.say("   It says:")
		t.say("   │ %s", abi.Clean(want.Purpose))
	}
	for {
		t.prompt("Which directory? (empty: none) ")
		dir, err := t.read(false)
		if err != nil || dir == "" {
			return store.Mount{}, false
		}
		mount, err := h.ApproveMount(want.Name, filepath.Clean(dir), false)
		if err == nil && want.Writable && t.choose("Let it change files there? [yes/no] ") {
			mount, err = h.ApproveMount(want.Name, filepath.Clean(dir), true)
		}
		if err == nil {
			return mount, true
		}
		t.say("   %v", err)
	}
}

// shownName is what people call a connector.
func shownName(m *abi.Manifest) string {
	if n := abi.Clean(m.DisplayName); n != "" {
		return n
	}
	return m.Name()
}
