package files

import (
	"errors"
	"io/fs"
	"path"
	"slices"
)

// swapName is a hidden folder next to those of tables. It becomes the folder of a table in one step, so that a program
// that lists the folder, and knows of no manifest, finds all parts of one commit and none of another.
const swapName = ".sluice-swap"

// A swap is a folder that is about to be exchanged with that of a table. It holds the same files under their final
// names.
type swap struct {
	folder string
	gone   []part // superseded parts, which only the earlier folder holds
}

// stage makes the folder that a table is to have after a commit. It returns nil if that must be done file by file:
// if no part is superseded, if there are files of others, or if the file system cannot link files.
func (s *Sink) stage(folder string, parts, fresh, gone []part) *swap {
	if len(gone) == 0 || s.clearSwap() != nil {
		return nil
	}
	x := &swap{folder, gone}
	if err := s.link(x, parts, fresh); err != nil {
		_ = s.clearSwap()
		return nil
	}
	return x
}

func (s *Sink) link(x *swap, parts, fresh []part) error {
	fi, err := s.root.Lstat(x.folder)
	if err != nil {
		return err
	}
	entries, err := s.list(x.folder)
	if err != nil {
		return err
	}
	if !fi.IsDir() || slices.ContainsFunc(entries,
		func(n string) bool { return !partPattern().MatchString(n) && !tmpPattern().MatchString(n) }) {
		return errors.ErrUnsupported
	}
	if err := s.root.Mkdir(swapName, 0o700); err != nil {
		return err
	}
	if err := s.root.Chmod(swapName, fi.Mode().Perm()); err != nil {
		return err
	}
	for _, p := range parts {
		from := p.Name
		if slices.ContainsFunc(fresh, func(f part) bool { return f.Number == p.Number }) {
			from = tmpName(p.Number)
		}
		if err := s.root.Link(path.Join(x.folder, from), path.Join(swapName, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// exchange gives a table its new folder. The earlier one is then the hidden one.
func (s *Sink) exchange(x *swap) error {
	if err := hook("exchange"); err != nil {
		return err
	}
	return exchange(s.root, swapName, x.folder)
}

// clearSwap removes the hidden folder. Superseded parts go last: a program that is reading the names in it misses no
// rows, because it either has the name of a file that is not in the new folder, and fails, or no names.
func (s *Sink) clearSwap(gone ...part) error {
	fi, err := s.root.Lstat(swapName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !fi.IsDir() {
		return errors.Join(err, errors.ErrUnsupported)
	}
	names, err := s.list(swapName)
	if err != nil {
		return err
	}
	isGone := func(name string) bool {
		return slices.ContainsFunc(gone, func(p part) bool { return p.Name == name })
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case isGone(a) == isGone(b):
			return 0
		case isGone(a):
			return 1
		}
		return -1
	})
	for _, name := range names {
		if !partPattern().MatchString(name) && !tmpPattern().MatchString(name) {
			return errors.ErrUnsupported
		}
		if err := s.root.Remove(path.Join(swapName, name)); err != nil {
			return err
		}
		if err := hook("cleared"); err != nil {
			return err
		}
	}
	return s.root.Remove(swapName)
}
