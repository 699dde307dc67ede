package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// CopyOptions name the source and the target of a copy.
type CopyOptions struct {
	From, To       string
	AllowNetworkFS bool
	Tell           func(store.CopyProgress)
}

// A CopyResult describes a finished copy.
type CopyResult struct {
	store.CopyTotals
	To      string   `json:"to"`
	DataDir string   `json:"data_dir"` // of the target
	Along   []string `json:"along"`    // names in the data directory that were copied too
	Left    []string `json:"left"`     // names that were not
}

var (
	// ErrCopyChoice is returned for a source or target that cannot be used.
	ErrCopyChoice = errors.New("cannot copy")
	// ErrUnfinishedCopy is returned for a store into which a copy was not finished.
	ErrUnfinishedCopy = errors.New("it holds a copy that was not finished")
)

// along are the names in a data directory that are copied with its store. The others belong to the store, are
// rebuilt when missing (compiled code, the tables of queries and search, scratch space), or stay where they are
// (backups, traces).
var along = []string{"assistants", "audit", "backup.recipients", "host-id", "keys", "modules", "profiles", "revocations", "vault"}

// storesOwn are the names in a data directory that belong to its store.
var storesOwn = []string{"db", "witness", "files", "lock", "ballast", "unclean", "sluice.sock"}

// CopyStore copies a store that nobody else uses into an empty one, and verifies that both hold the same. The
// owner's part of the data directory is copied too. A copy that was interrupted is continued by the next call.
// The source is not changed.
func CopyStore(ctx context.Context, o CopyOptions) (r CopyResult, err error) {
	restrictUmask()
	from, to := newDirectory(Options{Store: o.From, AllowNetworkFS: o.AllowNetworkFS}.settled()), newDirectory(Options{Store: o.To, AllowNetworkFS: o.AllowNetworkFS}.settled())
	if err := different(from, to); err != nil {
		return r, err
	}
	from.copied, to.filling = true, true
	source, err := from.openImager()
	if err != nil {
		return r, fmt.Errorf("source: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := to.openImager()
	if err != nil {
		return r, fmt.Errorf("target: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	r.To, r.DataDir = drivers.Shown(o.To), to.DataDir
	copied := &accompanied{imager: target, along: func() error { r.Along, r.Left, err = takeAlong(from.DataDir, to.DataDir); return err }}
	if r.CopyTotals, err = store.CopyStore(ctx, source, copied, o.Tell); err != nil {
		return r, explainCopy(err, o)
	}
	return r, to.noteCopied(drivers.Shown(o.From))
}

// An imager is a store that can be copied.
type imager interface {
	store.Store
	store.Imager
}

// accompanied copies the data directory before its store is filled, so that a copy that is interrupted in
// between can be continued.
type accompanied struct {
	imager
	along func() error
}

func (a *accompanied) Fill(ctx context.Context, source string) (store.Filler, store.Place, error) {
	f, at, err := a.imager.Fill(ctx, source)
	if err == nil {
		if err = a.along(); err != nil {
			f.Close()
		}
	}
	return f, at, err
}

// different locates source and target, and refuses a source that holds nothing or a target with the same data
// directory.
func different(from, to *directory) error {
	for _, d := range []*directory{from, to} {
		if _, err := d.locate(); err != nil {
			return err
		}
		if d.DataDir == "" {
			return fmt.Errorf("%w: a memory: store keeps nothing; name badger:DIR or postgres://…", ErrCopyChoice)
		}
	}
	if there, err := Stored(from.Options.Store); err != nil || !there {
		return errors.Join(err, fmt.Errorf("%w: nothing is stored in %s", ErrCopyChoice, from.DataDir))
	}
	if same(from.DataDir, to.DataDir) {
		return fmt.Errorf("%w: source and target have the same data directory, %s; name another with badger:DIR, or data=DIR in the URL of a database", ErrCopyChoice, from.DataDir)
	}
	return nil
}

// same reports whether two paths name the same directory.
func same(a, b string) bool {
	fa, err1 := os.Stat(a)
	fb, err2 := os.Stat(b)
	return a == b || err1 == nil && err2 == nil && os.SameFile(fa, fb)
}

// openImager opens a store for copying. It refuses a store that another host uses or that is damaged.
func (d *directory) openImager() (imager, error) {
	if err := d.openStore(); err != nil {
		return nil, err
	}
	if err := d.onlyMember(); err != nil {
		return nil, errors.Join(err, d.Store.Close())
	}
	s, ok := d.Store.(imager)
	if !ok {
		return nil, errors.Join(ErrNoBackup, d.Store.Close())
	}
	if damage := store.Damage(s); damage != nil {
		return nil, errors.Join(damage, s.Close())
	}
	return s, nil
}

// onlyMember refuses a store that another host has open.
func (d *directory) onlyMember() error {
	shared := store.MembersOf(d.Store)
	if shared == nil {
		return nil
	}
	all, err := shared.Members(context.Background())
	for _, m := range all {
		if m.Epoch != shared.Self().Epoch {
			return &store.BusyError{Dir: drivers.Shown(d.Options.Store), PID: m.PID, Host: m.Name}
		}
	}
	return err
}

func explainCopy(err error, o CopyOptions) error {
	var other *store.OtherCopyError
	var damage *store.DamageError
	target := drivers.Shown(o.To)
	switch {
	case errors.Is(err, store.ErrNotEmpty):
		return fmt.Errorf("%w: %s is not empty, and a store is never merged into another; name an empty directory, or a database (or schema=NAME in its URL) without tables", ErrCopyChoice, target)
	case errors.As(err, &other):
		return fmt.Errorf("%w: %s holds an unfinished copy of another store, or of this one before it changed; empty it (remove the directory, or DROP SCHEMA … CASCADE) and copy again", ErrCopyChoice, target)
	case errors.Is(err, store.ErrSourceChanged):
		return fmt.Errorf("%w: %s was used while it was copied; stop its hosts, empty the target and copy again", ErrCopyChoice, drivers.Shown(o.From))
	case errors.As(err, &damage):
		return fmt.Errorf("%w; nothing was changed in the source: sluice doctor --deep tells more", err)
	}
	return err
}

// finished refuses a store that holds an unfinished copy.
func (d *directory) finished(ctx context.Context) error {
	_, err := d.Store.Document(ctx, store.Copying, store.CopyNote)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the store %s: %w; give the same sluice store copy again, which goes on where it ended", drivers.Shown(d.Options.Store), ErrUnfinishedCopy)
}

// noteCopied records in the audit log of the target where the copy came from.
func (d *directory) noteCopied(from string) error {
	if err := d.openLogs(); err != nil {
		return err
	}
	err := d.Audit(audit.Event{Action: audit.StoreCopied, Target: from, Outcome: audit.Done})
	return errors.Join(err, d.closeLogs())
}

// takeAlong copies what belongs with a store, and returns the copied names and the others.
func takeAlong(from, to string) (with, left []string, err error) {
	names, err := os.ReadDir(from)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return nil, nil, err
	}
	a, err := os.OpenRoot(from)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	b, err := os.OpenRoot(to)
	if err != nil {
		return nil, nil, err
	}
	defer b.Close()
	with, left = []string{}, []string{}
	for _, e := range names {
		switch name := e.Name(); {
		case slices.Contains(storesOwn, name):
		case !slices.Contains(along, name):
			left = append(left, name)
		default:
			if err := copyTree(a, b, name); err != nil {
				return nil, nil, fmt.Errorf("take %s along: %w", filepath.Join(from, name), err)
			}
			with = append(with, name)
		}
	}
	return with, left, syncDir(to)
}

// copyTree copies a file, or a directory with all regular files in it. A file that exists already must be
// identical.
func copyTree(a, b *os.Root, name string) error {
	fi, err := a.Lstat(name)
	switch {
	case err != nil:
		return err
	case fi.Mode().IsRegular():
		return copyOne(a, b, name, fi)
	case !fi.IsDir(): // a link or socket, such as a running browser leaves in its profile
		return nil
	}
	if err := b.Mkdir(name, fi.Mode().Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	d, err := a.Open(name)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, n := range names {
		if err := copyTree(a, b, filepath.Join(name, n)); err != nil {
			return err
		}
	}
	made, err := b.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(made.Sync(), made.Close())
}

// copying is the suffix of files that are being copied.
const copying = ".copying"

func copyOne(a, b *os.Root, name string, fi fs.FileInfo) error {
	if _, err := b.Lstat(name); err == nil {
		return sameContent(a, b, name)
	}
	in, err := a.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := b.OpenFile(name+copying, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(fi.Mode().Perm()), out.Sync(), out.Close())
	if err == nil {
		err = b.Chtimes(name+copying, fi.ModTime(), fi.ModTime())
	}
	if err == nil {
		err = b.Rename(name+copying, name)
	}
	return err
}

// sameContent refuses an existing file whose content differs.
func sameContent(a, b *os.Root, name string) error {
	x, err := a.Open(name)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := b.Open(name)
	if err != nil {
		return err
	}
	defer y.Close()
	p, q := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err1 := io.ReadFull(x, p)
		m, err2 := io.ReadFull(y, q)
		if !bytes.Equal(p[:n], q[:m]) {
			return fmt.Errorf("%w: %s is there and is another file; name an empty data directory", ErrCopyChoice, y.Name())
		}
		if err1 != nil {
			if errors.Is(err1, io.EOF) || errors.Is(err1, io.ErrUnexpectedEOF) {
				return nil
			}
			return err1
		}
		if err2 != nil {
			return err2
		}
	}
}

// boundName is the file in a data directory that holds the id of its database.
const boundName = "store-id"

// bind ties a data directory to its database, and refuses another one: secrets, modules and profiles belong to
// one database.
func (d *directory) bind(ctx context.Context) error {
	path := filepath.Join(d.DataDir, boundName)
	known, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read which database a data directory is beside: %w", err)
	}
	id, err := d.storeID(ctx)
	if err != nil {
		return err
	}
	if len(known) > 0 && string(known) != id {
		return fmt.Errorf("the data directory %s is beside another database than %s: its secrets and modules are not for this one; name another with data=DIR in the URL. "+
			"Where this database took the place of that one for good, remove %s: %w", d.DataDir, drivers.Shown(d.Options.Store), path, ErrStoreURL)
	}
	if len(known) > 0 || d.copied {
		return nil
	}
	if id == "" {
		if id, err = d.nameStore(ctx); err != nil {
			return err
		}
	}
	return writeWhole(path, []byte(id), 0o600)
}

// storeID returns the id of the store, "" if it has none yet.
func (d *directory) storeID(ctx context.Context) (id string, err error) {
	doc, err := d.Store.Document(ctx, store.Installation, boundName)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	if err == nil {
		err = json.Unmarshal(doc.Data, &id)
	}
	return id, err
}

// nameStore gives the store an id, unless another host has done so meanwhile, and returns it.
func (d *directory) nameStore(ctx context.Context) (string, error) {
	text, err := json.Marshal(randomID("store_"))
	if err == nil {
		err = d.Store.Write(ctx, store.Write{Kind: store.Installation, ID: boundName, Data: text, If: store.Absent()})
	}
	var conflict *store.ConflictError
	if err != nil && !errors.As(err, &conflict) {
		return "", err
	}
	return d.storeID(ctx)
}
