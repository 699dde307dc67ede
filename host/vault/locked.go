package vault

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"filippo.io/age"

	"github.com/sluicehost/sluice/host/private"
)

// A lockKind is the kind of a lock on a vault.
type lockKind int

const (
	shared    lockKind = iota // others may read
	exclusive                 // others wait
)

// A lockedVault is a vault while it is locked.
type lockedVault struct {
	vault *Vault
	data  *directory // DIR
	top   *directory // DIR/vault
	// sealer is the keyring's key, which seals the identity file; it may be nil.
	sealer *age.X25519Identity
}

// locked calls do while no other process or goroutine changes the vault. The lock is on the vault's
// directory and ends with the process. The error wraps errNone if there is no vault yet.
func (v *Vault) locked(how lockKind, do func(*lockedVault) error) error {
	data, err := openData(v.dir)
	if err != nil {
		return orNone(err)
	}
	defer data.Close()
	top, err := data.open(vaultDir)
	if err != nil {
		return orNone(err)
	}
	defer top.Close()
	f, err := top.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	release, err := private.Lock(f, how == shared)
	if err != nil {
		return fmt.Errorf("lock %s: %w", top.path, err)
	}
	defer release()
	return do(&lockedVault{vault: v, data: data, top: top})
}

// errNone means that there is no vault yet.
var errNone = fmt.Errorf("no vault: %w", fs.ErrNotExist)

func orNone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errNone
	}
	return err
}

// connectionFor opens the directory of a connection to set a secret, creating it if necessary.
func (o *lockedVault) connectionFor(connection, name string) (*directory, error) {
	if err := o.top.makeDir(connection); err != nil {
		return nil, err
	}
	d, err := o.top.open(connection)
	if err != nil {
		return nil, err
	}
	if err := o.accept(d, connection, name); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// accept refuses one secret too many, and a name that some file systems could not distinguish from
// another.
func (o *lockedVault) accept(d *directory, connection, name string) error {
	if err := d.sweep(); err != nil {
		return err
	}
	all, err := o.entries(d, connection)
	if err != nil {
		return err
	}
	return fits(all, connection, name)
}

// fits refuses a name that cannot be added to a connection's secrets.
func fits(all []Entry, connection, name string) error {
	for _, e := range all {
		if e.Name == name {
			return nil
		}
	}
	for _, e := range all {
		if strings.EqualFold(e.Name, name) {
			return fmt.Errorf("secret %s of %s: there is one called %s: %w", name, connection, e.Name, ErrInvalid)
		}
	}
	if len(all) >= MaxPerConnection {
		return fmt.Errorf("secret %s of %s: it has %d already: %w", name, connection, len(all), ErrInvalid)
	}
	return nil
}

// put seals a value into its file.
func (o *lockedVault) put(d *directory, to age.Recipient, e Entry, value []byte) error {
	file, err := seal(to, e.Connection, e.Name, value)
	if err != nil {
		return err
	}
	return d.write(e.Name+suffix, file, e.Set, o.vault.reach)
}

// get opens a secret with the existing identities. The error wraps fs.ErrNotExist if it is not set.
func (o *lockedVault) get(connection, name string) ([]byte, error) {
	d, err := o.top.open(connection)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if _, err := d.file(name + suffix); err != nil {
		return nil, err
	}
	ids, err := o.identities()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, o.lost()
	}
	if err != nil {
		return nil, err
	}
	return getFrom(d, ids, connection, name)
}

func getFrom(d *directory, ids []*age.X25519Identity, connection, name string) ([]byte, error) {
	file, _, err := d.read(name+suffix, maxFile)
	if err != nil {
		return nil, err
	}
	return unseal(ids, connection, name, file)
}

// list returns all secrets. Files whose names cannot be a connection or a secret are ignored.
func (o *lockedVault) list() ([]Entry, error) {
	names, err := o.top.names()
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, connection := range names {
		if !isOwner(connection) {
			continue
		}
		d, err := o.top.open(connection)
		if err != nil {
			return nil, err
		}
		entries, err := o.entries(d, connection)
		if err = errors.Join(err, d.Close()); err != nil {
			return nil, err
		}
		out = append(out, entries...)
	}
	return out, nil
}

// entries returns the secrets of a connection.
func (o *lockedVault) entries(d *directory, connection string) ([]Entry, error) {
	files, err := d.names()
	if err != nil {
		return nil, err
	}
	var out []Entry
	for _, f := range files {
		name, ok := nameOf(f)
		if !ok {
			continue
		}
		fi, err := d.file(f)
		if err != nil {
			return nil, err
		}
		out = append(out, Entry{Connection: connection, Name: name, Set: fi.ModTime()})
	}
	return out, nil
}

// remove deletes a file, or a link in its place, and the directory if that was the last one.
func (o *lockedVault) remove(connection, name string) error {
	d, err := o.top.open(connection)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.root.Remove(name + suffix); err != nil {
		return err
	}
	o.vault.reach("after_remove")
	if err := errors.Join(d.sync(), d.sweep()); err != nil {
		return err
	}
	_ = o.top.root.Remove(connection) // fails while something is in it
	return o.top.sync()
}
