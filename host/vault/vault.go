package vault

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/private"
)

// The limits of a vault.
const (
	MaxValue         = 16 * abi.KiB
	MaxPerConnection = 64
)

// Errors that callers distinguish. Errors that wrap them name the secret or the path and say what
// to do; none contains a value.
var (
	ErrNotFound = errors.New("no such secret")
	ErrInvalid  = errors.New("secret not accepted") // a name, a size or the number of secrets
	ErrKey      = errors.New("the vault's identity does not open it")
	ErrDamaged  = errors.New("the secret is damaged")
	ErrUnsafe   = errors.New("the vault is not safe") // modes, owners, links
	ErrExists   = errors.New("the secret is set")     // returned by Add
)

// A Keeper keeps secrets: a Vault those of one host, a Shared those of hosts that share a store.
type Keeper interface {
	Set(connection, name string, value []byte) error
	// Add sets a secret that is not set yet, otherwise it returns ErrExists.
	Add(connection, name string, value []byte) error
	Get(connection, name string) (Secret, error)
	List() ([]Entry, error)
	Remove(connection, name string) error
}

var (
	_ Keeper = (*Vault)(nil)
	_ Keeper = (*Shared)(nil)
)

// A Vault holds the secrets of one data directory. It keeps no files open and no key in memory. It
// is safe for concurrent use, also by two processes.
type Vault struct {
	dir  string
	step func(string) // called at every durable step, in tests only
}

// An Entry says that a secret is set, and since when.
type Entry struct {
	Connection string
	Name       string
	Set        time.Time
}

// Open returns the vault in a data directory, which need not exist: nothing is created before the
// first Set. The error wraps ErrUnsafe if others have access to what exists.
func Open(dir string) (*Vault, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open vault %s: %w", dir, err)
	}
	v := &Vault{dir: abs}
	err = v.locked(shared, func(o *lockedVault) error {
		_, err := o.identities()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrKey) {
			return nil // reported when a secret is requested
		}
		return err
	})
	if err != nil && !errors.Is(err, errNone) {
		return nil, err
	}
	return v, nil
}

// Set stores a value of 1 byte to MaxValue, replacing an earlier one. It returns once the value is
// durable and does not retain the slice. The first Set creates the identity.
func (v *Vault) Set(connection, name string, value []byte) error {
	return v.set(connection, name, value, func(*directory) error { return nil })
}

// Add implements Keeper.
func (v *Vault) Add(connection, name string, value []byte) error {
	return v.set(connection, name, value, func(d *directory) error {
		_, err := d.file(name + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return cmp.Or(err, exists(connection, name))
	})
}

func exists(connection, name string) error {
	return fmt.Errorf("secret %s of %s: %w", name, connection, ErrExists)
}

func (v *Vault) set(connection, name string, value []byte, may func(*directory) error) error {
	if err := check(connection, name, value); err != nil {
		return err
	}
	if err := v.create(); err != nil {
		return err
	}
	return v.locked(exclusive, func(o *lockedVault) error {
		ids, err := o.ensureIdentities()
		if err != nil {
			return err
		}
		d, err := o.connectionFor(connection, name)
		if err != nil {
			return err
		}
		defer d.Close()
		if err := may(d); err != nil {
			return err
		}
		return o.put(d, ids[0].Recipient(), Entry{Connection: connection, Name: name}, value)
	})
}

// check refuses an invalid secret.
func check(connection, name string, value []byte) error {
	if err := CheckNames(connection, name); err != nil {
		return err
	}
	if len(value) == 0 || len(value) > MaxValue {
		return fmt.Errorf("secret %s of %s has %d bytes, want 1 to %d: %w", name, connection, len(value),
			MaxValue, ErrInvalid)
	}
	return nil
}

// Get opens a secret. The error wraps ErrNotFound, ErrKey, ErrDamaged or ErrUnsafe; the vault is
// unchanged then.
func (v *Vault) Get(connection, name string) (Secret, error) {
	if err := CheckNames(connection, name); err != nil {
		return Secret{}, err
	}
	var value []byte
	err := v.locked(shared, func(o *lockedVault) (err error) {
		value, err = o.get(connection, name)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return Secret{}, missing(connection, name)
	}
	if err != nil {
		return Secret{}, err
	}
	return newSecret(value), nil
}

// List returns the secrets that are set, by connection and name. It opens none and needs no
// identity.
func (v *Vault) List() ([]Entry, error) {
	var out []Entry
	err := v.locked(shared, func(o *lockedVault) (err error) {
		out, err = o.list()
		return err
	})
	if errors.Is(err, errNone) {
		return nil, nil
	}
	return out, err
}

// Remove deletes a secret, readable or not. The error wraps ErrNotFound if there is none. Remains
// of the file on the device stay readable to whoever has the identity, until Rotate.
func (v *Vault) Remove(connection, name string) error {
	if err := CheckNames(connection, name); err != nil {
		return err
	}
	err := v.locked(exclusive, func(o *lockedVault) error { return o.remove(connection, name) })
	if errors.Is(err, fs.ErrNotExist) {
		return missing(connection, name)
	}
	return err
}

func missing(connection, name string) error {
	return fmt.Errorf("secret %s of %s: %w", name, connection, ErrNotFound)
}

// create creates the data directory and the vault's, for the first Set.
func (v *Vault) create() error {
	if _, err := os.Stat(v.dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(v.dir, 0o700); err != nil {
			return fmt.Errorf("make data directory: %w", err)
		}
		if err := private.SyncPath(filepath.Dir(v.dir)); err != nil {
			return err
		}
	}
	data, err := openData(v.dir)
	if err != nil {
		return err
	}
	defer data.Close()
	return data.makeDir(vaultDir)
}

// reach reports a durable step to tests.
func (v *Vault) reach(step string) {
	if v.step != nil {
		v.step(step)
	}
}
