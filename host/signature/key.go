package signature

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"

	"aead.dev/minisign"
)

// MaxKey bounds a key file, in bytes.
const MaxKey = 4 << 10

// A PublicKey verifies signatures of its private key. The zero value verifies nothing. Keys are
// comparable with ==.
type PublicKey struct{ text string } // minisign's base64, canonical

// ReadPublicKey parses a .pub file: a comment line and the key, or the key alone.
func ReadPublicKey(text []byte) (PublicKey, error) {
	line := text
	if head, rest, ok := bytes.Cut(text, []byte{'\n'}); ok && bytes.HasPrefix(head, []byte(untrusted)) {
		line = rest
	}
	return ParseKey(string(bytes.TrimRight(line, "\r\n")))
}

// ParseKey parses the result of String and accepts no other spelling.
func ParseKey(text string) (PublicKey, error) {
	var k minisign.PublicKey
	if len(text) > MaxKey || k.UnmarshalText([]byte(text)) != nil || k.String() != text {
		return PublicKey{}, fmt.Errorf("the public key %w; it is one line that begins with RW, below an untrusted comment",
			ErrDamaged)
	}
	return PublicKey{text}, nil
}

// String returns the key in minisign's form, one line of base64.
func (k PublicKey) String() string { return k.text }

// ID returns minisign's id of the key. Anyone can make a key with the same id, so it only helps
// people to tell keys apart.
func (k PublicKey) ID() string { return keyID(k.minisign().ID()) }

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// Marshal returns the content of a .pub file.
func (k PublicKey) Marshal() []byte {
	return []byte(untrusted + "minisign public key " + k.ID() + "\n" + k.text + "\n")
}

func (k PublicKey) minisign() (m minisign.PublicKey) {
	_ = m.UnmarshalText([]byte(k.text)) // it was parsed; the zero key fails every check
	return m
}

// ed25519 returns the key without minisign's header.
func (k PublicKey) ed25519() ed25519.PublicKey {
	b, err := base64.StdEncoding.DecodeString(k.text)
	if err != nil || len(b) < ed25519.PublicKeySize {
		return make(ed25519.PublicKey, ed25519.PublicKeySize)
	}
	return b[len(b)-ed25519.PublicKeySize:]
}

// A PrivateKey signs.
type PrivateKey struct{ key minisign.PrivateKey }

// NewKey generates a key.
func NewKey() (PrivateKey, error) {
	_, k, err := minisign.GenerateKey(nil)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("make a key: %w", err)
	}
	return PrivateKey{k}, nil
}

// Public returns the key that verifies.
func (k PrivateKey) Public() PublicKey {
	return PublicKey{k.key.Public().(minisign.PublicKey).String()}
}

// Sealed returns the key's file encrypted with a password, which takes seconds and 1 GiB of memory,
// as does every guess.
func (k PrivateKey) Sealed(password []byte) ([]byte, error) {
	if len(password) == 0 {
		return nil, errors.New("an empty password seals nothing")
	}
	text, err := minisign.EncryptKey(string(password), k.key)
	return ended(text), err
}

// Plain returns the key's file without a password.
func (k PrivateKey) Plain() ([]byte, error) {
	text, err := k.key.MarshalText()
	return ended(text), err
}

func ended(text []byte) []byte { return append(bytes.TrimRight(text, "\n"), '\n') }

// OpenKey parses a private key's file. It calls password only if the file is encrypted.
func OpenKey(text []byte, password func() ([]byte, error)) (PrivateKey, error) {
	var k PrivateKey
	damaged := fmt.Errorf("the private key %w; sluice sign --new-key FILE makes one", ErrDamaged)
	switch text = bytes.TrimRight(text, "\r\n"); {
	case len(text) > MaxKey:
		return k, damaged
	case !minisign.IsEncrypted(text):
		if k.key.UnmarshalText(text) != nil || !k.consistent() {
			return PrivateKey{}, damaged
		}
		return k, nil
	}
	secret, err := password()
	if err != nil {
		return k, err
	}
	if k.key, err = minisign.DecryptKey(string(secret), text); err != nil {
		return PrivateKey{}, fmt.Errorf("open the private key: %w, or the file is damaged", ErrPassword)
	}
	if !k.consistent() {
		return PrivateKey{}, damaged
	}
	return k, nil
}

// consistent reports whether the public half verifies what the key signs. A file without a password
// has no checksum, and signing with an altered half would reveal the key.
func (k PrivateKey) consistent() bool {
	var probe = []byte("sluice")
	text := minisign.SignWithComments(k.key, probe, "", "")
	return minisign.Verify(k.Public().minisign(), probe, text)
}
