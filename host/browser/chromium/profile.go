package chromium

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// uidLimit is above every valid uid.
const uidLimit = 1 << 31

// check refuses options with which no browser may be started.
func (o *Options) check() error {
	proxy, err := url.Parse(o.Proxy)
	switch {
	case o.Binary.Path == "":
		return fmt.Errorf("%w: no browser was found", ErrMissing)
	case os.Geteuid() == 0 && (o.UID <= 0 || o.GID <= 0):
		return fmt.Errorf("%w: a browser never runs as root: set browser.uid_range", ErrUnsafe)
	case o.UID < 0 || o.GID < 0 || o.UID >= uidLimit || o.GID >= uidLimit:
		return fmt.Errorf("%w: uid %d is none", ErrUnsafe, o.UID)
	case os.Geteuid() != 0 && (o.UID != 0 || o.GID != 0):
		return fmt.Errorf("%w: only root can give a browser a uid", ErrStart)
	case err != nil || proxy.Scheme != "http" || proxy.Host == "" || proxy.Path != "" || proxy.User != nil:
		return fmt.Errorf("%w: a browser without a proxy reaches everything", ErrUnsafe)
	case !filepath.IsAbs(o.Profile) || !filepath.IsAbs(o.Home):
		return fmt.Errorf("%w: profile and home must be absolute", ErrStart)
	}
	o.Window = viewport(o.Window)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxTabs <= 0 {
		o.MaxTabs = tabLimit
	}
	return o.Binary.safe(o.Namespace)
}

// singletons are the files of a browser's own lock, which a killed browser leaves behind. They may
// be removed because the caller holds the profile's lock.
var singletons = []string{"SingletonLock", "SingletonCookie", "SingletonSocket"}

// prepare gives the directories to the browser's user and removes a stale lock. No process of the
// profile may be running.
func prepare(o *Options) error {
	for _, dir := range []string{o.Profile, o.Home} {
		if err := give(dir, o.UID, o.GID); err != nil {
			return fmt.Errorf("give %s to the browser: %w", filepath.Base(dir), reason(err))
		}
	}
	if err := o.makeScratch(); err != nil {
		return fmt.Errorf("make a place for temporary files: %w", reason(err))
	}
	for _, name := range singletons {
		err := os.Remove(filepath.Join(o.Profile, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the browser's stale lock: %w", reason(err))
		}
	}
	return nil
}

// scratchLength bounds the path of the temporary directory: the browser creates a socket in it,
// whose path has room for 107 bytes, and does not start if that is too long.
const scratchLength = 107 - len("/org.chromium.Chromium.XXXXXX/SingletonSocket")

// makeScratch chooses the directory for temporary files, so that a killed browser leaves none
// elsewhere: its home, or for a long path a directory that is removed by the next browser with this
// home and at the end of this one.
func (o *Options) makeScratch() error {
	if o.scratch = o.Home; len(o.Home) <= scratchLength {
		o.removeScratch()
		return nil
	}
	sum := sha256.Sum256([]byte(o.Home))
	o.scratch = filepath.Join(os.TempDir(), "sluice-"+hex.EncodeToString(sum[:10]))
	o.removeScratch()
	if err := os.Mkdir(o.scratch, 0o700); err != nil {
		return err
	}
	return give(o.scratch, o.UID, o.GID)
}

// temporaries are the prefixes of the browser's temporary files.
var temporaries = []string{"org.chromium.Chromium.", ".org.chromium.Chromium."}

// removeScratch removes temporary files that a killed browser left behind. No process of it may be
// running.
func (o *Options) removeScratch() {
	if o.scratch != o.Home {
		_ = os.RemoveAll(o.scratch)
		return
	}
	root, err := os.OpenRoot(o.Home)
	if err != nil {
		return
	}
	defer root.Close()
	entries, _ := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if slices.ContainsFunc(temporaries, func(t string) bool { return strings.HasPrefix(e.Name(), t) }) {
			_ = root.RemoveAll(e.Name())
		}
	}
}

// give changes the owner of a directory and its content, and its mode to 0700.
func give(dir string, uid, gid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("is not a directory")
	}
	if err = os.Chmod(dir, 0o700); err != nil { // #nosec G302 -- a directory
		return err
	}
	if uid == 0 || ownedBy(info, uid, gid) {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return giveAll(root, ".", uid, gid)
}

// giveAll changes the owner of a tree from the bottom up, so that an interrupted change is
// repeated. It follows no links.
func giveAll(root *os.Root, name string, uid, gid int) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		dir, err := root.Open(name)
		if err != nil {
			return err
		}
		names, err := dir.Readdirnames(-1)
		_ = dir.Close()
		if err != nil {
			return err
		}
		for _, n := range names {
			if err = giveAll(root, filepath.Join(name, n), uid, gid); err != nil {
				return err
			}
		}
	}
	return root.Lchown(name, uid, gid)
}

// Reach reports whether a browser with a uid of its own can reach a directory: it can pass every
// directory above it, or this process can make a mount view in which it can. The error names the
// closed directory and what to do.
func Reach(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	closed := closedAbove(dir)
	if closed == "" {
		return nil
	}
	if err = canView(); err != nil {
		return fmt.Errorf(
			"%w: browsers have uids of their own and cannot pass %s: move the data directory, for example to /var/lib/sluice, or chmod o+x %s (%v)", ErrUnsafe, closed, closed, err)
	}
	return nil
}

// closedAbove returns the topmost directory above a path that only its owner can pass, or "" if
// there is none.
func closedAbove(path string) (closed string) {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if fi, err := os.Stat(dir); err == nil && fi.Mode().Perm()&0o001 == 0 {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed
		}
	}
}

// hidden returns the browser's directories that lie in a closed one, keyed by the closed one. A
// browser that runs as the host's user can pass what the host can.
func (o *Options) hidden() map[string][]string {
	if o.UID == 0 {
		return nil
	}
	out := map[string][]string{}
	for _, dir := range []string{o.Profile, o.Home, o.scratch} {
		if closed := closedAbove(dir); closed != "" {
			out[closed] = append(out[closed], dir)
		}
	}
	return out
}
