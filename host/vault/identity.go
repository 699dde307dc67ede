package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"filippo.io/age"
)

const (
	vaultDir     = "vault"
	keysDir      = "keys"
	identityFile = "vault.age-identity"
	maxIdentity  = 16 << 10
)

// identities reads the identities, the one that seals first. There is more than one only after an
// interrupted rotation. The error wraps fs.ErrNotExist if there is none.
func (o *lockedVault) identities() ([]*age.X25519Identity, error) {
	text, err := o.identityText()
	if err == nil {
		text, err = o.unwrapped(text)
	}
	if err != nil {
		return nil, err
	}
	defer clear(text)
	path := o.data.join(keysDir, identityFile)
	parsed, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // the error's text may quote the file
		return nil, fmt.Errorf("%w: %s is no age identity; bring back your copy of it", ErrKey, path)
	}
	var out []*age.X25519Identity
	for _, p := range parsed {
		id, ok := p.(*age.X25519Identity)
		if !ok {
			return nil, fmt.Errorf("%w: %s holds an identity that is not X25519; bring back your copy of it", ErrKey, path)
		}
		out = append(out, id)
	}
	return out, nil
}

// identityText returns the content of the identity file.
func (o *lockedVault) identityText() ([]byte, error) {
	keys, err := o.data.open(keysDir)
	if err != nil {
		return nil, err
	}
	defer keys.Close()
	text, _, err := keys.read(identityFile, maxIdentity)
	return text, err
}

// ensureIdentities creates the identity at first use. If there are secrets, a missing identity is
// lost, and a new one would open none of them.
func (o *lockedVault) ensureIdentities() ([]*age.X25519Identity, error) {
	ids, err := o.identities()
	if !errors.Is(err, fs.ErrNotExist) {
		return ids, err
	}
	all, err := o.list()
	if err != nil {
		return nil, err
	}
	if len(all) > 0 {
		return nil, o.lost()
	}
	if err := o.data.makeDir(keysDir); err != nil {
		return nil, err
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("make identity: %w", err)
	}
	ids = []*age.X25519Identity{id}
	return ids, o.putIdentities(ids)
}

// lost returns the error for secrets without an identity.
func (o *lockedVault) lost() error {
	return fmt.Errorf("%w: %s is missing; bring back your copy of it, or remove all secrets and set them again",
		ErrKey, o.data.join(keysDir, identityFile))
}

// putIdentities replaces the identity file atomically. It has the format of age-keygen, so that age
// can open a vault without this program.
func (o *lockedVault) putIdentities(ids []*age.X25519Identity) error {
	var text bytes.Buffer
	for _, id := range ids {
		fmt.Fprintf(&text, "# public key: %s\n%s\n", id.Recipient(), id)
	}
	defer func() { clear(text.Bytes()) }()
	sealed, err := o.wrapped(text.Bytes())
	if err != nil {
		return err
	}
	keys, err := o.data.open(keysDir)
	if err != nil {
		return err
	}
	defer keys.Close()
	return keys.write(identityFile, sealed, time.Time{}, o.vault.reach)
}
