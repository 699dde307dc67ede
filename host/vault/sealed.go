package vault

import (
	"errors"
	"fmt"

	"github.com/sluicehost/sluice/abi"
)

// maxSealed bounds what Sealed returns: more than three thousand secrets of the maximum size.
const maxSealed = 64 * abi.MiB

// A File is a secret as stored on the disk.
type File struct {
	Entry
	Sealed []byte
}

// Sealed returns all secrets in their stored form at one moment, for a backup, so that no rotation
// is half in it. It opens none and does not return the identity. pin is called while none of them
// changes, to pin something of the same moment; it may be called again, and the last call counts.
func (v *Vault) Sealed(pin func() error) ([]File, error) {
	out, err := v.sealed(pin)
	if !errors.Is(err, errNone) {
		return out, err
	}
	if err := pin(); err != nil {
		return nil, err
	}
	if out, err = v.sealed(pin); errors.Is(err, errNone) {
		return nil, nil
	}
	return out, err // the vault was created meanwhile, which happens only once
}

func (v *Vault) sealed(pin func() error) ([]File, error) {
	var out []File
	err := v.locked(shared, func(o *lockedVault) error {
		all, err := o.list()
		if err != nil {
			return err
		}
		total := 0
		for _, e := range all {
			f, err := o.sealed(e)
			if err != nil {
				return err
			}
			if total += len(f.Sealed); total > maxSealed {
				return fmt.Errorf("%w: the secrets have more than %d bytes; remove some", ErrInvalid, maxSealed)
			}
			out = append(out, f)
		}
		return pin()
	})
	return out, err
}

func (o *lockedVault) sealed(e Entry) (File, error) {
	d, err := o.top.open(e.Connection)
	if err != nil {
		return File{}, err
	}
	defer d.Close()
	b, fi, err := d.read(e.Name+suffix, maxFile)
	if err != nil {
		return File{}, err
	}
	e.Set = fi.ModTime()
	return File{e, b}, nil
}
