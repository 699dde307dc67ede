package vault

import (
	"errors"
	"fmt"
	"io/fs"

	"filippo.io/age"
)

// Rotate seals every secret under a new identity and drops the old one, so that remains of removed
// secrets on the device become unreadable. A secret that cannot be opened makes it fail before
// anything is changed.
//
// Invariant: at every step the identity file opens every secret. It contains the new identity
// beside the old one until the last secret is sealed anew; an interrupted rotation is completed by
// the next. The new identity is kept at to, or where it is now for "".
func (v *Vault) Rotate(to Place) error {
	err := v.locked(exclusive, func(o *lockedVault) error {
		old, err := o.identities()
		if errors.Is(err, fs.ErrNotExist) {
			old, err = nil, nil
		}
		if err != nil {
			return err
		}
		all, err := o.list()
		switch {
		case err != nil:
			return err
		case len(old) == 0 && len(all) == 0:
			return errNone
		case len(old) == 0:
			return o.lost()
		}
		return o.rotate(old, all, to)
	})
	if !errors.Is(err, errNone) {
		return err
	}
	if to != "" {
		return errNoSecrets
	}
	return nil // nothing is set
}

func (o *lockedVault) rotate(old []*age.X25519Identity, all []Entry, to Place) error {
	for _, e := range all {
		if err := o.with(old, e, func(*directory, []byte) error { return nil }); err != nil {
			return fmt.Errorf("rotate nothing: %w, or remove it first", err)
		}
	}
	if len(old) > 1 {
		if err := o.settle(old, all); err != nil {
			return err
		}
	}
	fresh, err := age.GenerateX25519Identity()
	if err != nil {
		return fmt.Errorf("make identity: %w", err)
	}
	left, err := o.move(to)
	if err != nil {
		return err
	}
	both := []*age.X25519Identity{fresh, old[0]}
	if err := o.putIdentities(both); err != nil {
		return err
	}
	if err := o.settle(both, all); err != nil {
		return err
	}
	return left()
}

// settle seals everything under the first identity and drops the others. All of them are in the
// identity file.
func (o *lockedVault) settle(ids []*age.X25519Identity, all []Entry) error {
	for _, e := range all {
		err := o.with(ids, e, func(d *directory, value []byte) error { return o.put(d, ids[0].Recipient(), e, value) })
		if err != nil {
			return err
		}
	}
	return o.putIdentities(ids[:1])
}

// with opens a secret for do and clears it afterwards.
func (o *lockedVault) with(ids []*age.X25519Identity, e Entry, do func(*directory, []byte) error) error {
	d, err := o.top.open(e.Connection)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.sweep(); err != nil {
		return err
	}
	value, err := getFrom(d, ids, e.Connection, e.Name)
	if err != nil {
		return err
	}
	defer clear(value)
	return do(d, value)
}
