package backup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
)

// FaultMid is a fault point for tests in the middle of writing.
const FaultMid = "backup.mid"

// ErrExists reports that the file already exists.
var ErrExists = errors.New("file exists")

// temporary is the suffix of temporary files, and the prefix for archives.
const temporary = ".tmp"

// unfinished is the beginning of the names of the archives that an installation has not finished.
func unfinished(installation string) string { return temporary + "-" + installation + "-" }

// An Order says where and for whom to write a backup.
type Order struct {
	Path string
	To   Recipients // none for plain text
	// Drill is called with the archive as read back from the file. If it returns an error, there is no backup. If it is
	// nil, the backup is not verified.
	Drill func(ctx context.Context, archive io.Reader) error
	// Room returns an error when the disk is nearly full. It may be nil.
	Room func() error
	// Fault is called at FaultMid. It may be nil.
	Fault func(point string) error
}

// Written describes a backup that was made.
type Written struct {
	Size   int64
	SHA256 string // of the file
}

// Create writes an archive under a temporary name, syncs it, runs the drill, renames it, and syncs the directory. At
// any time there is either nothing or the complete archive under the final name.
func Create(ctx context.Context, p *Plan, o Order) (w Written, err error) {
	if err := vacant(o.Path); err != nil {
		return w, err
	}
	f, err := os.CreateTemp(filepath.Dir(o.Path), unfinished(p.Manifest.Installation)+"*") // 0600
	if err != nil {
		return w, fmt.Errorf("write backup: %w", err)
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	m := newMeter(&guarded{ctx: ctx, w: f, room: o.Room})
	var key age.Identity
	if len(o.To) == 0 {
		err = o.write(p, m)
	} else {
		key, err = o.seal(p, m)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return w, fmt.Errorf("write backup: %w", err)
	}
	if o.Drill != nil {
		if err := o.drill(ctx, f, key); err != nil {
			return w, fmt.Errorf("the backup was written but could not be restored, so it was removed: %w", err)
		}
	}
	if err := vacant(o.Path); err != nil {
		return w, err
	}
	if err := os.Rename(f.Name(), o.Path); err != nil {
		return w, fmt.Errorf("write backup: %w", err)
	}
	if err := syncDir(filepath.Dir(o.Path)); err != nil {
		return w, fmt.Errorf("write backup: %w", err)
	}
	return Written{m.n, m.digest()}, nil
}

func vacant(path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s: %w; name another", path, ErrExists))
	}
	return nil
}

func (o Order) write(p *Plan, w io.Writer) error {
	b := bufio.NewWriterSize(w, 256<<10)
	err := p.Write(b, func() error {
		if o.Fault == nil {
			return nil
		}
		if err := b.Flush(); err != nil {
			return err
		}
		return o.Fault(FaultMid)
	})
	if err != nil {
		return err
	}
	return b.Flush()
}

// seal writes an archive encrypted for the recipients and for the drill.
func (o Order) seal(p *Plan, w io.Writer) (key age.Identity, err error) {
	to := o.To
	if o.Drill != nil {
		id, r, err := ephemeral(to)
		if err != nil {
			return nil, err
		}
		key, to = id, append(to[:len(to):len(to)], r)
	}
	a, err := age.Encrypt(w, to...)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecipient, err)
	}
	if err := o.write(p, a); err != nil {
		return nil, err
	}
	return key, a.Close()
}

func (o Order) drill(ctx context.Context, f *os.File, key age.Identity) error {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r := io.Reader(bufio.NewReaderSize(f, 256<<10))
	if key != nil {
		var err error
		if r, err = decrypt(r, Identities{key}); err != nil {
			return err
		}
	}
	return o.Drill(ctx, r)
}

// Sweep removes what interrupted backups left: everything temporary in Dir(data), which is Sluice's own, and in dir the
// archives that this installation did not finish. The caller holds the lock of the data directory, so nobody else is
// writing one.
func Sweep(data, dir, installation string) error {
	return errors.Join(sweep(Dir(data), func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), temporary+"-") }),
		sweep(dir, func(e fs.DirEntry) bool {
			return e.Type().IsRegular() && strings.HasPrefix(e.Name(), unfinished(installation))
		}))
}

func sweep(dir string, left func(fs.DirEntry) bool) error {
	all, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		if left(e) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// A guarded writer checks the context, and the free space every guardEvery bytes.
type guarded struct {
	ctx  context.Context
	w    io.Writer
	room func() error
	n    int
}

const guardEvery = 16 << 20

func (g *guarded) Write(p []byte) (int, error) {
	if err := g.ctx.Err(); err != nil {
		return 0, err
	}
	if g.n -= len(p); g.n <= 0 && g.room != nil {
		if err := g.room(); err != nil {
			return 0, err
		}
		g.n = guardEvery
	}
	return g.w.Write(p)
}
