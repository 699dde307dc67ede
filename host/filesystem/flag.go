package filesystem

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/store"
)

// Flag implements binding.Commander.
func (Kind) Flag() binding.Flag {
	return binding.Flag{
		Name: "mount", Usage: "let the connector see a directory, `NAME=DIR[:rw]`; repeatable",
		Take: "mount", TakeUsage: "only the directory `NAME`; repeatable",
	}
}

// ParseFlag implements binding.Commander: values are NAME=DIR[:rw], each name once.
func (Kind) ParseFlag(v binding.FlagValues) (store.Approved, error) {
	var out store.Approved
	for _, text := range v.Values {
		read := mountHere
		if v.Remote {
			read = mountThere
		}
		m, err := read(v, text)
		if err != nil {
			return out, err
		}
		if slices.ContainsFunc(out.Mounts, func(o store.Mount) bool { return o.Name == m.Name }) {
			return out, fmt.Errorf("--mount %s is given twice", m.Name)
		}
		out.Mounts = append(out.Mounts, m)
	}
	return out, nil
}

// mountHere parses and checks a directory of this machine.
func mountHere(v binding.FlagValues, text string) (store.Mount, error) {
	name, dir, ok := strings.Cut(text, "=")
	if !ok || name == "" || dir == "" {
		return store.Mount{}, fmt.Errorf("--mount %s: want NAME=DIR or NAME=DIR:rw", abi.Clean(text))
	}
	asked := v.Manifest.Bindings[abi.BindingFilesystem].Mounts
	i := slices.IndexFunc(asked, func(r abi.MountRequest) bool { return r.Name == name })
	if i < 0 {
		names := []string{}
		for _, r := range asked {
			names = append(names, r.Name)
		}
		if len(names) == 0 {
			names = append(names, "none")
		}
		return store.Mount{}, fmt.Errorf("--mount %s: the connector asks for no directory of that name; it asks for: %s",
			abi.Clean(name), strings.Join(names, ", "))
	}
	dir, writable := strings.CutSuffix(dir, ":rw")
	dir = strings.TrimSuffix(dir, ":ro")
	if writable && !asked[i].Writable {
		return store.Mount{}, fmt.Errorf("--mount %s: the connector asks to read it only; leave out :rw", name)
	}
	m, err := ApproveMount(name, filepath.Clean(dir), writable, v.DataDir)
	if err != nil {
		return m, fmt.Errorf("--mount %s: %w", name, err)
	}
	return m, nil
}

// mountThere parses a directory of another machine, which checks it itself.
func mountThere(_ binding.FlagValues, text string) (store.Mount, error) {
	name, dir, ok := strings.Cut(text, "=")
	dir, writable := strings.CutSuffix(dir, ":rw")
	if !ok || name == "" || !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
		return store.Mount{}, fmt.Errorf(
			"--mount %s: want NAME=DIR with a whole path of the machine that the host runs on, or ~/ and one in the home of who runs it", abi.Clean(text))
	}
	return store.Mount{Name: name, Path: dir, Writable: writable}, nil
}

// Offer implements binding.Commander: a directory must always be named.
func (Kind) Offer(*abi.Manifest, store.Approved) (words string, more store.Approved) { return "", more }

// Choices implements binding.Commander: required directories.
func (Kind) Choices(m *abi.Manifest, a store.Approved) []binding.Choice {
	b := m.Bindings[abi.BindingFilesystem]
	if !b.Required {
		return nil
	}
	var out []binding.Choice
	for _, r := range b.Mounts {
		if slices.ContainsFunc(a.Mounts,
			func(m store.Mount) bool { return m.Name == r.Name && (m.Writable || !r.Writable) }) {
			continue
		}
		c := binding.Choice{Words: "read a directory it calls " + abi.Clean(r.Name), Purpose: r.Purpose,
			Prompt: "Which directory? (empty: none) "}
		if r.Writable {
			c.Words, c.More = "read and change a directory it calls "+abi.Clean(r.Name), "Let it change files there? [yes/no] "
		}
		c.Take = func(dir, dataDir string, more bool) (store.Approved, error) {
			m, err := ApproveMount(r.Name, filepath.Clean(dir), more, dataDir)
			return store.Approved{Mounts: []store.Mount{m}}, err
		}
		out = append(out, c)
	}
	return out
}
