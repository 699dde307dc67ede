package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/filesystem"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// A directory is an open data directory: the store, the logs beside it and the identity of this installation.
// Every part of a Host embeds it.
type directory struct {
	Store store.Store
	// DataDir is "" for memory:.
	DataDir string
	Remote  bool // the store is on a server, everything else in DataDir
	Options Options
	ID      string // of the installation
	Epoch   string // of this start of the installation
	started time.Time
	temp    string // scratch space of a host in memory
	copied  bool   // it is the source of a copy, and the store must not change
	filling bool   // it is the target of a copy

	shared *vault.Shared // the secrets that hosts share; nil for a host that shares no store

	refusals *audit.Limited  // nil for memory:
	requests *audit.Requests // nil for memory:

	auditCopied *auditCopied
}

// newDirectory returns a directory that is not open yet.
func newDirectory(o Options) *directory {
	return &directory{Options: o, Epoch: randomID("boot_"), started: time.Now(), auditCopied: &auditCopied{}}
}

// hostPrefix begins the id of an installation.
const hostPrefix = "host_"

// DefaultDataDir returns the data directory of a user who names no store.
func DefaultDataDir() (string, error) {
	if d := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "sluice"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find data directory: %w; name one with --store badger:DIR", err)
	}
	return filepath.Join(home, ".local", "share", "sluice"), nil
}

// DataDir returns the directory of a store by its name, "" for memory:. It need not exist.
func DataDir(store string) (string, error) {
	d := &directory{Options: Options{Store: store}}
	_, err := d.locate()
	return d.DataDir, err
}

// Stored reports whether the named store may hold data. It is always true for a store on a server, which is not
// asked.
func Stored(store string) (bool, error) {
	d := &directory{Options: Options{Store: store}}
	if _, err := d.locate(); err != nil || d.Remote || d.DataDir == "" {
		return d.Remote, err
	}
	_, err := os.Stat(filepath.Join(d.DataDir, "db"))
	return !errors.Is(err, fs.ErrNotExist), nil
}

// Shares reports whether hosts can share the named store, with its secrets.
func Shares(store string) (bool, error) {
	d := &directory{Options: Options{Store: store}}
	_, err := d.locate()
	return d.Remote, err
}

// ErrStoreURL is returned for the name of a store that this build does not understand.
var ErrStoreURL = drivers.ErrAddress

// Home expands a leading ~ in a path to the home directory of the current user.
func Home(path string) string { return filesystem.Home(path) }

// locate is address for a data directory that is to be used: it refuses one that is being restored.
func (d *directory) locate() (url string, err error) {
	if url, err = d.address(); err == nil && d.DataDir != "" {
		err = backup.Unfinished(d.DataDir)
	}
	return url, err
}

// address determines the store's URL and the data directory.
func (d *directory) address() (url string, err error) {
	url = d.Options.Store
	if url == "" {
		dir, err := DefaultDataDir()
		if err != nil {
			return "", err
		}
		url = "badger:" + dir
	}
	a, err := drivers.Parse(url)
	if err != nil {
		return "", fmt.Errorf("store %q: %w", abi.Cut(abi.Clean(drivers.Shown(url)), 200), err)
	}
	if d.Remote = a.Remote; a.Remote && a.Dir == "" {
		if a.Dir, err = DefaultDataDir(); err != nil {
			return "", err
		}
		a.Dir = filepath.Join(a.Dir+"-postgres", a.Name)
	}
	if a.Dir == "" {
		return url, nil
	}
	if a.Dir, err = filepath.Abs(Home(a.Dir)); err != nil {
		return "", fmt.Errorf("store %s: %w", drivers.Shown(url), err)
	}
	if fi, err := os.Stat(a.Dir); err == nil && !fi.IsDir() {
		return "", fmt.Errorf("store %q: it is no directory: %w", abi.Cut(abi.Clean(drivers.Shown(url)), 200), ErrStoreURL)
	}
	d.DataDir = a.Dir
	return a.String(), nil
}

func (d *directory) openStore() error {
	url, err := d.locate()
	if err != nil {
		return err
	}
	return d.openURL(url)
}

// makeDataDir makes the data directory of a store on a server and reads the id of this host. It refuses a directory
// that holds a store of its own.
func (d *directory) makeDataDir() error {
	if !d.Remote {
		return nil
	}
	if _, err := os.Stat(filepath.Join(d.DataDir, "db")); err == nil {
		return fmt.Errorf("%s has a store of its own; name another directory with data=DIR in the URL: %w",
			d.DataDir, ErrStoreURL)
	}
	if err := os.MkdirAll(d.DataDir, 0o700); err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	if d.filling { // the id is copied with it
		return nil
	}
	return d.identify()
}

// ballast is disk space in bytes that the store reserves, so that it can be closed cleanly on a full disk.
const ballast = 64 << 20

func (d *directory) openURL(url string) error {
	if err := d.makeDataDir(); err != nil {
		return err
	}
	self := store.Member{ID: d.ID, Epoch: d.Epoch, About: store.About{Version: ThisVersion().Version}}
	if d.filling {
		self.ID = fillerID
	}
	s, err := drivers.Open(url, drivers.Options{
		Logger: d.Options.Log, AllowNetworkFS: d.Options.AllowNetworkFS, AcceptLoss: d.Options.AcceptLoss,
		Ballast: ballast, Self: self,
	})
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("open data directory %s: %w; make it yours, or name another with --store badger:DIR", d.DataDir,
			err)
	}
	if err != nil {
		return err
	}
	d.Store = s
	if err := d.checkStoreOwner(context.Background()); err != nil {
		d.Store = nil
		return errors.Join(err, s.Close())
	}
	if store.MembersOf(s) != nil && !d.copied && !d.filling {
		own, err := vault.Open(d.DataDir)
		if err != nil {
			d.Store = nil
			return errors.Join(err, s.Close())
		}
		d.shared = vault.NewShared(own, s, d.ID)
	}
	if limit := store.MemoryLimit(s); limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit) // process-wide, like the umask
	}
	return nil
}

// checkStoreOwner refuses a store that belongs to another data directory or holds an unfinished copy.
func (d *directory) checkStoreOwner(ctx context.Context) error {
	if d.filling || store.Damage(d.Store) != nil {
		return nil
	}
	if err := d.refuseUnfinished(ctx); err != nil {
		return err
	}
	if !d.copied {
		if err := unmark(d.DataDir); err != nil {
			return err
		}
	}
	if !d.Remote {
		return nil
	}
	return d.bind(ctx)
}

// reconcile closes the runs that an earlier start or another host left active, so that their status is accurate.
// Runs that outlive their host are passed to waits, or left as they are if it is nil.
func (d *directory) reconcile(ctx context.Context, waits func(store.Lease)) error {
	if err := run.Reconcile(ctx, d.Store, d.ID, d.Epoch, waits); err != nil && !errors.Is(err, store.ErrReadOnly) {
		return fmt.Errorf("close runs of an earlier start: %w", err)
	}
	return nil
}

// identify reads or makes the id of this installation. An invalid id, as a power cut or a bad disk may leave it,
// is replaced: what is stored of the one before is of a host that is gone.
func (d *directory) identify() error {
	if d.DataDir == "" {
		d.ID = randomID(hostPrefix)
		return nil
	}
	path := filepath.Join(d.DataDir, "host-id")
	b, err := os.ReadFile(path)
	if d.ID = strings.TrimSpace(string(b)); err == nil && isID(hostPrefix, d.ID) {
		return nil
	}
	if err == nil {
		d.Options.Log.Warn("installation_id_replaced", "was", abi.Cut(abi.Clean(d.ID), 80))
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		d.ID = randomID(hostPrefix)
		err = writeWhole(path, []byte(d.ID), 0o600)
	}
	if err != nil {
		return fmt.Errorf("read installation id: %w", err)
	}
	return nil
}

func (d *directory) cacheDir() (string, error) {
	switch {
	case d.Options.CacheDir != "":
		return d.Options.CacheDir, nil
	case d.DataDir != "":
		return filepath.Join(d.DataDir, "cache"), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find cache directory: %w; set SLUICE_CACHE to one", err)
	}
	return filepath.Join(dir, "sluice"), nil
}

// scratchDir returns the directory of the /tmp directories of runs, which is cleared at start.
func (d *directory) scratchDir() string {
	if d.DataDir != "" {
		return filepath.Join(d.DataDir, "runs")
	}
	return d.temp
}

func (d *directory) clearScratch() error {
	if d.DataDir == "" {
		dir, err := os.MkdirTemp("", "sluice-runs-")
		d.temp = dir
		return err
	}
	if err := os.RemoveAll(d.scratchDir()); err != nil {
		return fmt.Errorf("clear scratch space: %w", err)
	}
	return nil
}

func randomID(prefix string) string {
	var b [8]byte
	rand.Read(b[:])
	return prefix + hex.EncodeToString(b[:])
}

// isID reports whether id has the form that randomID makes.
func isID(prefix, id string) bool {
	digits, ok := strings.CutPrefix(id, prefix)
	b, err := hex.DecodeString(digits)
	return ok && err == nil && len(b) == 8
}

// writeWhole replaces a file atomically and durably: a power cut leaves either the old or the new one.
func writeWhole(path string, data []byte, perm fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	return err
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
