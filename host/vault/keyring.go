package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"
	"github.com/zalando/go-keyring"
)

// A Place says where the key of a vault is kept.
type Place string

// The places. Whoever has the whole data directory can open a vault InFile. With InKeyring the
// identity file is sealed by a key in the operating system's keyring of this user.
const (
	InFile    Place = "file"
	InKeyring Place = "keyring"
)

// ErrKeyring means that the operating system's keyring did not return or store the key.
var ErrKeyring = errors.New("the OS keyring cannot be used")

// service is the service name of this program's keyring items; their accounts are the public keys
// of what they hold.
const service = "sluice"

// sealedBy is the prefix of an identity file sealed by the keyring.
const sealedBy = "# sealed by the OS keyring, item " + service + "/"

// Place returns where the key is. The error wraps fs.ErrNotExist if there is none yet.
func (v *Vault) Place() (p Place, err error) {
	err = v.locked(shared, func(o *lockedVault) error {
		text, err := o.identityText()
		defer clear(text)
		if p = InFile; bytes.HasPrefix(text, []byte(sealedBy)) {
			p = InKeyring
		}
		return err
	})
	return p, err
}

// unwrapped returns an identity file without the keyring's seal. The keyring's key is kept to seal
// the file again when it is replaced.
func (o *lockedVault) unwrapped(text []byte) ([]byte, error) {
	rest, sealed := bytes.CutPrefix(text, []byte(sealedBy))
	if !sealed {
		return text, nil
	}
	account, body, _ := bytes.Cut(rest, []byte{'\n'})
	id, err := keyringGet(string(account))
	if err != nil {
		return nil, err
	}
	r, err := age.Decrypt(armor.NewReader(bytes.NewReader(body)), id)
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(r, maxIdentity))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s is damaged; bring back your copy of it", ErrKey, o.data.join(keysDir, identityFile))
	}
	o.sealer = id
	return text, nil
}

// wrapped returns an identity file as it is written: sealed, if the vault's key is in the keyring.
func (o *lockedVault) wrapped(text []byte) ([]byte, error) {
	if o.sealer == nil {
		return text, nil
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s%s\n", sealedBy, o.sealer.Recipient())
	a := armor.NewWriter(&out)
	w, err := age.Encrypt(a, o.sealer.Recipient())
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = errors.Join(w.Close(), a.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("seal identity: %w", err)
	}
	return out.Bytes(), nil
}

// move decides where the next identity file is kept. The keyring stores the key before anything
// needs it, and left removes it once nothing does.
func (o *lockedVault) move(to Place) (left func() error, err error) {
	left = func() error { return nil }
	switch old := o.sealer; {
	case to == InKeyring && old == nil:
		o.sealer, err = keyringNew()
	case to == InFile && old != nil:
		o.sealer, left = nil, func() error { return keyringDelete(old.Recipient().String()) }
	}
	return left, err
}

func keyringNew() (*age.X25519Identity, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	account := id.Recipient().String()
	if err := keyring.Set(service, account, id.String()); err != nil {
		return nil, noKeyring(err)
	}
	if _, err := keyringGet(account); err != nil { // a keyring that does not keep it would lose everything
		return nil, err
	}
	return id, nil
}

func keyringGet(account string) (*age.X25519Identity, error) {
	text, err := keyring.Get(service, account)
	if err != nil {
		return nil, noKeyring(err)
	}
	id, err := age.ParseX25519Identity(text)
	if err != nil || id.Recipient().String() != account {
		return nil, fmt.Errorf("%w: its item %s/%.80s is not the key that was put there", ErrKeyring, service, account)
	}
	return id, nil
}

func keyringDelete(account string) error {
	if err := keyring.Delete(service, account); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return noKeyring(err)
	}
	return nil
}

// noKeyring adds what to do. At most one line of the library's message is kept.
func noKeyring(err error) error {
	why, _, _ := strings.Cut(err.Error(), "\n")
	if errors.Is(err, keyring.ErrNotFound) {
		why = "it does not have the key of this vault"
	}
	return fmt.Errorf("%w: %.200s; start sluice in the session of the user whose keyring has it, unlocked", ErrKeyring,
		why)
}

var errNoSecrets = fmt.Errorf("%w: there is no key yet; store a secret first", fs.ErrNotExist)
