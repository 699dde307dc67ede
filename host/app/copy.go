package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

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

	errUsed = errors.New("the target is in use")
)

// fault is called between the steps of a backup, a restore or a copy. Tests replace it.
var fault = func(point string) error { return nil }

// along are the names in a data directory that are copied with its store. The others belong to the store, are
// rebuilt when missing (compiled code, the tables of queries and search, scratch space), or stay where they are
// (backups, traces).
var along = []string{"assistants", "audit", "backup.recipients", "host-id", "keys", "modules", "profiles",
	"revocations", "vault"}

// storesOwn are the names in a data directory that belong to its store.
var storesOwn = []string{"db", "witness", "files", "lock", "ballast", "unclean", "sluice.sock", markName}

// CopyStore copies a store that nobody else uses into an empty one, and verifies that both hold the same. The
// owner's part of the data directory is copied too. A copy that was interrupted is continued by the next call, or begun
// anew if the source has changed since. The source is not changed.
func CopyStore(ctx context.Context, o CopyOptions) (r CopyResult, err error) {
	restrictUmask()
	from, to := newDirectory(Options{Store: o.From, AllowNetworkFS: o.AllowNetworkFS}.settled()),
		newDirectory(Options{Store: o.To, AllowNetworkFS: o.AllowNetworkFS}.settled())
	if err := different(from, to); err != nil {
		return r, err
	}
	from.copied, to.filling = true, true
	source, err := from.openImager()
	if err != nil {
		return r, fmt.Errorf("source: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target := &copyTarget{open: to.openImager, directory: &directoryCopy{from: from.DataDir, to: to.DataDir}}
	if target.url, err = to.locate(); err != nil {
		return r, err
	}
	if target.imager, err = target.open(); err != nil {
		return r, fmt.Errorf("target: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	r.To, r.DataDir = drivers.Shown(o.To), to.DataDir
	if err := fault("copy.opened"); err != nil {
		return r, err
	}
	r.CopyTotals, err = target.fill(ctx, source, o.Tell)
	if err == nil {
		err = fault("copy.filled")
	}
	if err == nil && target.directory.with == nil { // the store had all already
		err = target.directory.take()
	}
	if err != nil {
		return r, explainCopy(err, o)
	}
	r.Along, r.Left = target.directory.with, target.directory.left
	err = to.noteCopied(drivers.Shown(o.From))
	if err == nil {
		err = fault("copy.told")
	}
	if err != nil {
		return r, err
	}
	return r, unmark(to.DataDir)
}

// An imager is a store that can be copied.
type imager interface {
	store.Store
	store.Imager
}

// A copyTarget is a store that is being filled.
type copyTarget struct {
	imager
	url       string
	open      func() (imager, error)
	directory *directoryCopy // nil if nothing is copied beside the store
}

// fill copies everything in source. A target with an unfinished copy of something else, which nobody can have used, is
// emptied first.
func (t *copyTarget) fill(ctx context.Context, source imager, tell func(store.CopyProgress)) (store.CopyTotals, error) {
	totals, err := store.CopyStore(ctx, source, t, tell)
	if other := (*store.OtherCopyError)(nil); !errors.As(err, &other) {
		return totals, err
	}
	if err := errors.Join(t.Close(), drivers.Empty(t.url)); err != nil {
		return totals, fmt.Errorf("empty an unfinished copy: %w", err)
	}
	if t.imager, err = t.open(); err != nil {
		return totals, err
	}
	return store.CopyStore(ctx, source, t, tell)
}

// Fill implements store.Imager. What belongs beside the store is copied first, into a directory and a store that are
// marked, so that neither is used and a copy that is interrupted can be continued or begun anew.
func (t *copyTarget) Fill(ctx context.Context, source string) (f store.Filler, at store.Place, err error) {
	f, at, err = t.imager.Fill(ctx, source)
	if t.directory == nil {
		return f, at, err
	}
	if errors.Is(err, store.ErrNotEmpty) && !t.directory.marked() {
		return nil, at, errUsed // not the end of an interrupted copy
	}
	if err != nil {
		return nil, at, err
	}
	if err = t.begin(ctx, source, at); err != nil {
		f.Close()
	}
	return f, at, err
}

// begin marks the directory and the store, and copies what belongs beside it.
func (t *copyTarget) begin(ctx context.Context, source string, at store.Place) error {
	err := t.directory.mark()
	if err == nil {
		err = fault("copy.marked")
	}
	if err == nil && at.Kind == 0 {
		err = t.note(ctx, source)
	}
	if err == nil {
		err = fault("copy.noted")
	}
	if err == nil {
		err = t.directory.take()
	}
	if err == nil {
		err = fault("copy.taken")
	}
	return err
}

// note writes into the empty store that it is being filled.
func (t *copyTarget) note(ctx context.Context, source string) error {
	text, err := json.Marshal(store.Copied{Source: source})
	if err != nil {
		return err
	}
	return t.Write(ctx, store.Write{Kind: store.Copying, ID: store.CopyNote, Data: text})
}

// Close closes the store, if it is open.
func (t *copyTarget) Close() error {
	if t.imager == nil {
		return nil
	}
	err := t.imager.Close()
	t.imager = nil
	return err
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
		return fmt.Errorf(
			"%w: source and target have the same data directory, %s; name another with badger:DIR, or data=DIR in the URL of a database", ErrCopyChoice, from.DataDir)
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
	return asImager(d.Store, d.Options.Store)
}

// asImager returns a store that was opened for copying, or closes it.
func asImager(s store.Store, url string) (imager, error) {
	i, ok := s.(imager)
	if !ok {
		return nil, errors.Join(ErrNoBackup, s.Close())
	}
	if err := onlyMember(context.Background(), s, url); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if damage := store.Damage(s); damage != nil {
		return nil, errors.Join(damage, s.Close())
	}
	return i, nil
}

// fillerID is the id as which a shared store is filled: two processes cannot both do that, and the next one takes the
// place of one that was killed.
const fillerID = "filler"

// onlyMember refuses a store that another host has open. It waits until hosts that were killed are removed, which is
// when they were not heard of for the duration of a lease.
func onlyMember(ctx context.Context, s store.Store, url string) error {
	shared := store.MembersOf(s)
	if shared == nil {
		return nil
	}
	seen := map[string]time.Time{}
	for {
		all, err := shared.Members(ctx)
		if err != nil || len(all) == 1 {
			return err
		}
		for _, m := range all {
			was, known := seen[m.Epoch]
			if seen[m.Epoch] = m.SeenAt; known && m.Epoch != shared.Self().Epoch && !m.SeenAt.Equal(was) {
				return &store.BusyError{Dir: drivers.Shown(url), PID: m.PID, Host: m.Name}
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func explainCopy(err error, o CopyOptions) error {
	var damage *store.DamageError
	target := drivers.Shown(o.To)
	switch {
	case errors.Is(err, store.ErrNotEmpty), errors.Is(err, errUsed):
		return fmt.Errorf(
			"%w: %s is not empty, and a store is never merged into another; name an empty directory, or a database (or schema=NAME in its URL) without tables", ErrCopyChoice, target)
	case errors.Is(err, store.ErrSourceChanged):
		return fmt.Errorf("%w: %s was used while it was copied; stop its hosts and copy again", ErrCopyChoice,
			drivers.Shown(o.From))
	case errors.As(err, &damage):
		return fmt.Errorf("%w; nothing was changed in the source: sluice doctor --deep tells more", err)
	}
	return err
}

// refuseUnfinished refuses a store that holds an unfinished copy.
func (d *directory) refuseUnfinished(ctx context.Context) error {
	_, err := d.Store.Document(ctx, store.Copying, store.CopyNote)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("the store %s: %w; give the same sluice store copy again, which goes on where it ended",
		drivers.Shown(d.Options.Store), ErrUnfinishedCopy)
}

// noteCopied records in the audit log of the target where the copy came from.
func (d *directory) noteCopied(from string) error {
	if err := d.openLogs(); err != nil {
		return err
	}
	err := d.Audit(audit.Event{Action: audit.StoreCopied, Target: from, Outcome: audit.Done})
	return errors.Join(err, d.closeLogs())
}

// A directoryCopy is what is copied from one data directory to another with the store.
type directoryCopy struct {
	from, to   string
	with, left []string // names that were copied, and others
}

// markName is the file that marks a data directory as the target of a copy: what is along in it is of the copy.
const markName = "copying"

func (b *directoryCopy) marked() bool {
	_, err := os.Lstat(filepath.Join(b.to, markName))
	return err == nil
}

// mark marks the target. It refuses one that has something of its own.
func (b *directoryCopy) mark() error {
	if b.marked() {
		return nil
	}
	for _, name := range along {
		path := filepath.Join(b.to, name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("%w: %s is there already; name an empty data directory", ErrCopyChoice, path))
		}
	}
	if err := os.MkdirAll(b.to, 0o700); err != nil {
		return err
	}
	return writeWhole(filepath.Join(b.to, markName), nil, 0o600)
}

// unmark removes the mark from a data directory whose store is complete.
func unmark(dir string) error {
	err := os.Remove(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, syncDir(dir))
}

// take copies what belongs with the store to the marked target, in place of what an earlier call copied.
func (b *directoryCopy) take() error {
	names, err := os.ReadDir(b.from)
	if err != nil {
		return err
	}
	from, err := os.OpenRoot(b.from)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(b.to)
	if err != nil {
		return err
	}
	defer to.Close()
	for _, name := range along {
		if err := to.RemoveAll(name); err != nil {
			return err
		}
	}
	b.with, b.left = []string{}, []string{}
	for _, e := range names {
		switch name := e.Name(); {
		case slices.Contains(storesOwn, name):
		case !slices.Contains(along, name):
			b.left = append(b.left, name)
		default:
			if err := copyTree(from, to, name); err != nil {
				return fmt.Errorf("take %s along: %w", filepath.Join(b.from, name), err)
			}
			b.with = append(b.with, name)
		}
	}
	return syncDir(b.to)
}

// copyTree copies a file, or a directory with all regular files in it.
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
	if err := b.Mkdir(name, fi.Mode().Perm()); err != nil {
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

func copyOne(a, b *os.Root, name string, fi fs.FileInfo) error {
	in, err := a.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := b.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Chmod(fi.Mode().Perm()), out.Sync(), out.Close())
	if err == nil {
		err = b.Chtimes(name, fi.ModTime(), fi.ModTime())
	}
	return err
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
		return fmt.Errorf(
			"the data directory %s is beside another database than %s: its secrets and modules are not for this one; name another with data=DIR in the URL. "+
				"Where this database took the place of that one for good, remove %s: %w", d.DataDir,
			drivers.Shown(d.Options.Store), path, ErrStoreURL)
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
