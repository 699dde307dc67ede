package filesystem

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/sluicehost/sluice/abi"
)

// rename moves a regular file or a directory. It refuses symlinks, because moving a
// relative one changes its target, which amounts to creating one. It never replaces a
// directory.
func (f *FS) rename(ctx context.Context, q abi.FileRenameRequest) ([]byte, error) {
	m, from, err := f.toChange(q.Mount, q.From)
	if err != nil {
		return nil, err
	}
	to, err := parsePath(q.To)
	if err != nil {
		return nil, err
	}
	if from.depth == 0 || to.depth == 0 {
		return nil, refuse(abi.EDENIED)
	}
	moved, err := m.find(from, false)
	if err != nil {
		return nil, err
	}
	if !moved.IsDir() && !moved.Mode().IsRegular() {
		return nil, refuse(abi.EDENIED)
	}
	if (from.slash || to.slash) && !moved.IsDir() {
		return nil, errNotDirectory
	}
	if err := m.hasParent(to); err != nil {
		return nil, err
	}
	replaced, err := m.replaces(moved, to)
	if err != nil {
		return nil, err
	}
	if err := m.deepens(ctx, moved, from, to); err != nil {
		return nil, err
	}
	if err := m.root.Rename(from.name, to.name); err != nil {
		return nil, err
	}
	if replaced != nil {
		f.removed(m, replaced)
	}
	return nil, nil
}

// replaces returns the file that a rename replaces, or nil, and refuses files that must not
// be replaced.
func (m *mount) replaces(moved fs.FileInfo, to guestPath) (fs.FileInfo, error) {
	there, err := m.find(to, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	a, _ := identify(moved)
	b, _ := identify(there)
	switch {
	case a == b:
		return nil, nil
	case there.IsDir() && !moved.IsDir():
		return nil, errIsDirectory
	case there.IsDir():
		return nil, errExists
	case moved.IsDir():
		return nil, errNotDirectory
	case kindOf(there.Mode()) == abi.FileSpecial:
		return nil, refuse(abi.EDENIED)
	}
	return there, nil
}

// deepens refuses a rename that would make something too deep. It inspects the contents of
// a directory only if it moves deeper.
func (m *mount) deepens(ctx context.Context, moved fs.FileInfo, from, to guestPath) error {
	if to.depth <= from.depth {
		return nil
	}
	if err := m.ledger.depth(to.depth); err != nil || !moved.IsDir() {
		return err
	}
	left := abi.MaxFileEntries
	return m.fits(ctx, from.name, to.depth+1, &left)
}

// fits refuses a directory whose entries, at this depth, would break the quota. It inspects
// at most left entries; a larger tree is ENOSPC, and so cannot move deeper.
func (m *mount) fits(ctx context.Context, name string, depth int, left *int) error {
	dir, err := m.root.OpenFile(name, os.O_RDONLY|openSafely|openDirectory, 0)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		found, err := dir.Readdir(listStep)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if *left -= len(found); *left < 0 {
			return refuse(abi.ENOSPC)
		}
		if err := m.ledger.depth(depth); err != nil {
			return err
		}
		for _, fi := range found {
			if !fi.IsDir() {
				continue
			}
			if err := m.fits(ctx, name+"/"+fi.Name(), depth+1, left); err != nil {
				return err
			}
		}
	}
}
