package signature

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode"
	"unicode/utf8"

	"aead.dev/minisign"
)

// Errors of signatures. The wrapping error names the key, file or connector.
var (
	// ErrDamaged means that the text is not a signature or key.
	ErrDamaged = errors.New("is damaged, or is none")
	// ErrOtherKey means that the signature was made with another key.
	ErrOtherKey = errors.New("is by another key")
	// ErrOtherModule means that the signature is genuine but belongs to another module.
	ErrOtherModule = errors.New("is of another module")
	// ErrInvalid means that the module, the signature or its comment was changed.
	ErrInvalid = errors.New("does not match")
	// ErrPassword means that the private key is sealed with another password.
	ErrPassword = errors.New("wrong password")
	// ErrNotSignable means that a connector's id or version cannot be part of a comment.
	ErrNotSignable = errors.New("cannot be signed")
)

// MaxSignature bounds a signature, in bytes.
const MaxSignature = 16 << 10

const untrusted = "untrusted comment: "

// A Signature is a parsed signature. None of it is trustworthy before Verify.
type Signature struct {
	s      minisign.Signature
	text   []byte
	claims *Claims
	key    PublicKey
}

// Sign signs a module and its claims.
func Sign(k PrivateKey, module []byte, c Claims, at time.Time) ([]byte, error) {
	comment, err := c.comment(k.Public(), at)
	if err != nil {
		return nil, err
	}
	return hashed(module).SignWithComments(k.key, comment, "signature of a Sluice connector by key "+k.Public().ID()), nil
}

func hashed(module []byte) *minisign.Reader {
	r := minisign.NewReader(bytes.NewReader(module))
	_, _ = io.Copy(io.Discard, r) // from memory into a hash, so it cannot fail
	return r
}

// Parse parses a .minisig file.
func Parse(text []byte) (*Signature, error) {
	s := &Signature{text: bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))}
	damaged := fmt.Errorf("the signature %w; it has four lines, as sluice sign and minisign write them", ErrDamaged)
	if len(text) > MaxSignature || s.s.UnmarshalText(s.text) != nil {
		return nil, damaged
	}
	// Only one spelling is accepted: base64 has unused bits, and there may be no further lines.
	if again, err := s.s.MarshalText(); err != nil || !bytes.Equal(ended(s.text), again) {
		return nil, damaged
	}
	if s.s.Algorithm != minisign.HashEdDSA {
		return nil, fmt.Errorf("the signature %w: it is not over a hash; sign again with minisign -H or sluice sign",
			ErrDamaged)
	}
	if !utf8.ValidString(s.s.TrustedComment) || bytes.ContainsFunc([]byte(s.s.TrustedComment), otherControl) {
		return nil, damaged
	}
	var err error
	s.claims, s.key, err = readComment(s.s.TrustedComment)
	return s, err
}

func otherControl(c rune) bool { return c != '\t' && unicode.IsControl(c) }

// KeyID returns the id of the key that the signature names.
func (s *Signature) KeyID() string { return keyID(s.s.KeyID) }

// Key returns the key that the signature contains, if it does. It proves nothing about its owner;
// trust on first use begins with it.
func (s *Signature) Key() (PublicKey, bool) { return s.key, s.key != PublicKey{} }

// Verify verifies that key signed exactly this module and this comment. want describes the module;
// claims in the comment must equal it. Its errors are ErrOtherKey, ErrOtherModule and ErrInvalid.
func (s *Signature) Verify(key PublicKey, module []byte, want Claims) error {
	switch {
	case key == PublicKey{} || s.KeyID() != key.ID():
		return fmt.Errorf("the signature %w: %s, not %s", ErrOtherKey, s.KeyID(), key.ID())
	case !s.genuine(key):
	case s.claims != nil && *s.claims != want:
		return s.other(want)
	case hashed(module).Verify(key.minisign(), s.text):
		return nil
	default:
		return fmt.Errorf("the signature %w, which key %s signed; this one is not that file, or was changed",
			ErrOtherModule, key.ID())
	}
	return fmt.Errorf(
		"the signature %w the module under key %s; one of the two was changed after signing, or it is forged",
		ErrInvalid, key.ID())
}

// other explains which module a genuine signature is of.
func (s *Signature) other(want Claims) error {
	return fmt.Errorf("the signature %w: of %.100s %.64s with digest %.80s; this is %.100s %.64s with digest %.80s",
		ErrOtherModule,
		s.claims.Connector, s.claims.Version, s.claims.Digest, want.Connector, want.Version, want.Digest)
}

// genuine reports whether key made the signature, whatever file it is of: the
// comment's signature covers the file's.
func (s *Signature) genuine(key PublicKey) bool {
	message := append(s.s.Signature[:len(s.s.Signature):len(s.s.Signature)], s.s.TrustedComment...)
	return ed25519.Verify(key.ed25519(), message, s.s.CommentSignature[:])
}
