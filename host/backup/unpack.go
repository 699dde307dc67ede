package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/store"
)

// A Store is a store that can be copied and loaded.
type Store interface {
	store.Store
	store.Imager
	store.Loader
}

// An Opener opens the store of a data directory. Room returns an error if the given number of bytes cannot be written
// there.
type Opener struct {
	Open func(dir string) (Store, error)
	Room func(dir string, bytes int64) error
}

// Unpack creates a data directory from an archive in an empty directory and verifies that it is the one that was backed
// up: all parts match their digests, every value of the store is readable, every counter is correct, and a copy of the
// restored store is identical to the copy in the archive. After an error the directory is unusable. The digest is that
// of the manifest.
func Unpack(ctx context.Context, archive io.Reader, dir string, o Opener) (m Manifest, digest string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return m, "", fmt.Errorf("unpack backup: %w", err)
	}
	defer root.Close()
	u := &unpacking{ctx: ctx, dir: dir, root: root, o: o}
	m, digest, err = read(archive, u)
	if err == nil {
		err = u.verify(m)
	}
	if err == nil {
		err = u.sync()
	}
	return m, digest, hostile(err)
}

// hostile marks damage in the store of an intact archive: it comes from whoever made the archive.
func hostile(err error) error {
	var damage *store.DamageError
	if errors.As(err, &damage) && !errors.Is(err, ErrRefused) {
		return refuse("%w", err)
	}
	return err
}

// An unpacking is the sink of Unpack.
type unpacking struct {
	ctx  context.Context
	dir  string
	root *os.Root
	o    Opener
	dirs []string // directories that were created
}

func (u *unpacking) begin(m Manifest) error {
	names, err := os.ReadDir(u.dir)
	if err != nil {
		return fmt.Errorf("unpack backup: %w", err)
	}
	if slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() != noteName }) {
		return fmt.Errorf("unpack backup: %s is not empty", u.dir)
	}
	return u.o.Room(u.dir, 2*m.bytes()) // the store writes somewhat more than it is given
}

func (u *unpacking) part(p Part, r io.Reader) error {
	if err := u.ctx.Err(); err != nil {
		return err
	}
	if isImage(p.Name) {
		return u.load(p.Name, r)
	}
	return u.file(p, r)
}

func (u *unpacking) load(name string, r io.Reader) error {
	s, err := u.o.Open(u.dir)
	if err != nil {
		return err
	}
	if name == itemsName {
		return errors.Join(store.LoadItems(u.ctx, r, s), s.Close())
	}
	return errors.Join(s.Load(u.ctx, r), s.Close())
}

// file writes a module or a secret. Its name was checked with the manifest.
func (u *unpacking) file(p Part, r io.Reader) error {
	if err := u.mkdir(path.Dir(p.Name)); err != nil {
		return err
	}
	f, err := u.root.OpenFile(p.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = u.root.Chtimes(p.Name, p.Modified, p.Modified) // lists of secrets show when they were set
	}
	if err == nil && strings.HasPrefix(p.Name, "modules/") {
		err = f.Chmod(0o400)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (u *unpacking) mkdir(dir string) error {
	at := ""
	for name := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, name)
		switch err := u.root.Mkdir(at, 0o700); {
		case err == nil:
			u.dirs = append(u.dirs, at)
		case !errors.Is(err, os.ErrExist):
			return err
		}
	}
	return nil
}

// verify opens what was loaded in the same way as the next start.
func (u *unpacking) verify(m Manifest) (err error) {
	s, err := u.o.Open(u.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Verify(u.ctx); err != nil {
		return fmt.Errorf("recount the restored store: %w", err)
	}
	i, err := s.Image(u.ctx)
	if err != nil {
		return err
	}
	defer i.Close()
	return u.same(m, i)
}

// same verifies that what was loaded is what the archive contains.
func (u *unpacking) same(m Manifest, i store.Image) error {
	part := m.Parts[slices.IndexFunc(m.Parts, func(p Part) bool { return isImage(p.Name) })]
	got, err := i.Counters(u.ctx)
	if err != nil {
		return err
	}
	copied := func(ctx context.Context, w io.Writer) error { return store.WriteItems(ctx, w, i) }
	if part.Name == imageName {
		_, copied = formOf(i)
	} else {
		for n := range got {
			got[n].Sum = "" // specific to the driver
		}
	}
	if err := compare(m.Streams, got); err != nil {
		return err
	}
	again := newMeter(io.Discard)
	if err := copied(u.ctx, again); err != nil {
		return err
	}
	if again.digest() != part.SHA256 {
		return refuse("%s: the restored store is not the one in the backup", part.Name)
	}
	return nil
}

// compare compares counters with those in the manifest.
func compare(want, got []store.Counters) error {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			return refuse("the store: stream %s of %s is missing", want[i].Stream, want[i].Connection)
		case i >= len(want):
			return refuse("the store: stream %s of %s is not in %s", got[i].Stream, got[i].Connection, manifestName)
		case want[i] != got[i]:
			return refuse("the store: stream %s of %s has %d records and %d tombstones, %s says %d and %d; sums equal: %v",
				got[i].Stream, got[i].Connection, got[i].Live, got[i].Tombstones, manifestName, want[i].Live, want[i].Tombstones,
				want[i].Sum == got[i].Sum)
		}
	}
	return nil
}

func (u *unpacking) sync() error {
	for _, d := range append(u.dirs, ".") {
		if err := syncDir(filepath.Join(u.dir, filepath.FromSlash(d))); err != nil {
			return err
		}
	}
	return nil
}
