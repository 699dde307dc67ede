package fleet

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/browser/engine"
)

// CheckName refuses an invalid profile name; it returns nil for a valid one.
func CheckName(name string) *engine.Refusal {
	if !abi.IsProfileName(name) {
		return badName()
	}
	return nil
}

func badName() *engine.Refusal {
	return &engine.Refusal{Code: "profile_name_invalid", Verb: engine.Open,
		Message: "profile name required, must be [A-Za-z0-9_-]+"}
}

// Name returns the first non-empty name: of the request, of the owner's setting, of the manifest,
// and otherwise the connection's id. It does not sanitise names.
func Name(request, setting, manifest, connection string) string {
	return cmp.Or(request, setting, manifest, connection)
}

// isElement reports whether a text can be the name of a directory entry that is not one of the
// host's own, which begin with a dot.
func isElement(s string) bool {
	return s != "" && s[0] != '.' && filepath.IsLocal(s) && !strings.ContainsAny(s, "/\\\x00") && len(s) <= 200
}

// temporary is the directory of profiles that end with their browser.
const temporary = ".temporary"

// Folders are the directories of profiles below one root:
//
//	<connection>/<name>        a profile, mode 0700, of the connection's uid
//	<connection>/.copy-<name>  what it was when it opened last, where that is cheap
//	<connection>/.lock-<name>  its lock, which the browser cannot reach
//	<connection>/.uid          the uid of the connection
//	.temporary/<random>        a profile that is removed with its browser
//
// Every path is resolved below the root. The directories above a profile can be
// passed by everybody and listed by the host alone, since the browser has a uid of
// its own.
type folders struct {
	path string
	root *os.Root
	// chown gives a directory to a uid. It does nothing if the host is not root.
	chown bool
	// naming is held from reading a connection's names until a new one is made.
	naming sync.Mutex
}

func openFolders(path string) (*folders, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o711); err != nil { // #nosec G301 -- browsers of other uids pass through it
		return nil, fmt.Errorf("make the directory of profiles: %w", err)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("open the directory of profiles: %w", err)
	}
	f := &folders{path: path, root: root, chown: os.Geteuid() == 0}
	if err := errors.Join(f.passable(), root.Chmod(".", 0o711), f.parent(temporary)); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// passable lets browsers with other uids pass through the host's data directory above. They still
// cannot list it, and its content is private by itself.
func (f *folders) passable() error {
	above := filepath.Dir(f.path)
	fi, err := os.Stat(above)
	if err != nil || !f.chown || fi.Mode().Perm()&0o011 == 0o011 {
		return err
	}
	return os.Chmod(above, fi.Mode().Perm()|0o011) // grants only permission to pass
}

// parent makes a directory above profiles, or keeps an existing one.
func (f *folders) parent(name string) error {
	err := f.root.Mkdir(name, 0o711)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make a directory of profiles: %w", err)
	}
	fi, err := f.root.Lstat(name)
	switch {
	case err != nil:
		return err
	case !fi.IsDir():
		return fmt.Errorf("make a directory of profiles: %w", fs.ErrExist)
	}
	return f.root.Chmod(name, 0o711) // whatever the umask is
}

// connection makes the directory of a connection.
func (f *folders) connection(id string) error {
	if !isElement(id) {
		return fmt.Errorf("make a directory of profiles: %w", fs.ErrInvalid)
	}
	return f.parent(id)
}

// persistent makes the directory of a profile and returns its path. The caller holds its lock. A
// name that differs from another one of the connection only in case is refused.
func (f *folders) persistent(connection, name string, uid int) (string, error) {
	if r := CheckName(name); r != nil {
		return "", r
	}
	f.naming.Lock()
	defer f.naming.Unlock()
	if err := f.sameFolded(connection, name); err != nil {
		return "", err
	}
	return f.private(filepath.Join(connection, name), uid)
}

// sameFolded refuses a name that exists in another case. A connection without a directory has no
// names.
func (f *folders) sameFolded(connection, name string) error {
	if !isElement(connection) {
		return fmt.Errorf("look for profiles: %w", fs.ErrInvalid)
	}
	entries, err := fs.ReadDir(f.root.FS(), connection)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for profiles: %w", err)
	}
	for _, e := range entries {
		if e.Name() != name && strings.EqualFold(e.Name(), name) {
			r := badName()
			r.Message = "a profile whose name differs in case only exists already"
			return r
		}
	}
	return nil
}

// private makes a directory for one uid. An existing one keeps its owner: the driver gives it, with
// its content, to the browser's user.
func (f *folders) private(name string, uid int) (string, error) {
	made := f.root.Mkdir(name, 0o700)
	if made != nil && !errors.Is(made, fs.ErrExist) {
		return "", fmt.Errorf("make a profile: %w", made)
	}
	fi, err := f.root.Lstat(name)
	switch {
	case err != nil:
		return "", fmt.Errorf("make a profile: %w", err)
	case !fi.IsDir():
		return "", fmt.Errorf("make a profile: it is no directory")
	}
	if err := f.root.Chmod(name, 0o700); err != nil {
		return "", fmt.Errorf("make a profile private: %w", err)
	}
	if made == nil && f.chown && uid != 0 {
		if err := f.root.Lchown(name, uid, uid); err != nil {
			return "", fmt.Errorf("give a profile to its uid: %w", err)
		}
	}
	return filepath.Join(f.path, name), nil
}

// temporary makes a directory with a random name; remove removes it.
func (f *folders) temporary(uid int) (path string, remove func() error, err error) {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	name := filepath.Join(temporary, hex.EncodeToString(b[:]))
	path, err = f.private(name, uid)
	if err != nil {
		return "", nil, err
	}
	return path, func() error { return f.root.RemoveAll(name) }, nil
}

// sweep removes the temporary directories of an earlier host.
func (f *folders) sweep() error {
	entries, err := fs.ReadDir(f.root.FS(), temporary)
	for _, e := range entries {
		err = errors.Join(err, f.root.RemoveAll(filepath.Join(temporary, e.Name())))
	}
	return err
}

// singletons are the files of a browser's own lock, which outlive a browser that was killed.
var singletons = []string{"SingletonLock", "SingletonCookie", "SingletonSocket"}

// unlatch removes the browser's own lock. The caller holds the profile's lock.
func (f *folders) unlatch(connection, name string) error {
	for _, file := range singletons {
		if err := f.root.Remove(filepath.Join(connection, name, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove what an ended browser left: %w", err)
		}
	}
	return nil
}

// erase removes all profiles of a connection.
func (f *folders) erase(connection string) error {
	if !isElement(connection) {
		return nil // it cannot have any
	}
	return f.root.RemoveAll(connection)
}

var errInUse = &engine.Refusal{Code: "profile_in_use", Verb: engine.Open,
	Message: "the profile is in use; try again once the run that has it is over"}
