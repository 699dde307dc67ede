package signature_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/signature"
)

var (
	module = []byte("\x00asm\x01\x00\x00\x00 and what a module is made of")
	claims = signature.Claims{Connector: "https://connectors.example/mailbox", Version: "1.4.0", Digest: "sha256:00ff"}
	at     = time.Unix(1_800_000_000, 0)
)

func newKey(t testing.TB) signature.PrivateKey {
	t.Helper()
	k, err := signature.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sign(t testing.TB, k signature.PrivateKey, module []byte, c signature.Claims) []byte {
	t.Helper()
	text, err := signature.Sign(k, module, c, at)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// verify parses and verifies.
func verify(text []byte, key signature.PublicKey, module []byte, want signature.Claims) error {
	s, err := signature.Parse(text)
	if err != nil {
		return err
	}
	return s.Verify(key, module, want)
}

// What was signed verifies, with the key that the signature carries.
func TestSigned(t *testing.T) {
	k := newKey(t)
	text := sign(t, k, module, claims)
	for _, spelling := range [][]byte{text, bytes.TrimRight(text, "\n"),
		bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))} {
		if err := verify(spelling, k.Public(), module, claims); err != nil {
			t.Errorf("%q: %v", spelling, err)
		}
	}
	s, err := signature.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if carried, ok := s.Key(); !ok || carried != k.Public() || s.KeyID() != k.Public().ID() {
		t.Errorf("the signature carries %v, want %v", carried, k.Public())
	}
}

// Every byte of the module, of the signature and of the key counts. Only
// the untrusted comment, whose name says it, does not.
func TestFlipped(t *testing.T) {
	k := newKey(t)
	text, pub := sign(t, k, module, claims), k.Public().Marshal()
	for i := range module {
		if err := verify(text, k.Public(), flipped(module, i), claims); !errors.Is(err, signature.ErrOtherModule) {
			t.Fatalf("module byte %d flipped: %v", i, err)
		}
	}
	for i := bytes.IndexByte(text, '\n') + 1; i < len(text); i++ {
		for _, bit := range []byte{1, 2, 4, 8, 16, 32, 64, 128} {
			bad := bytes.Clone(text)
			if bad[i] ^= bit; i == len(text)-1 && bad[i] == '\r' {
				continue
			}
			if err := verify(bad, k.Public(), module, claims); !known(err) {
				t.Fatalf("signature byte %d flipped, %q: %v", i, bad, err)
			}
		}
	}
	for i := bytes.IndexByte(pub, '\n') + 1; i < len(pub)-1; i++ {
		other, err := signature.ReadPublicKey(flipped(pub, i))
		if err == nil {
			err = verify(text, other, module, claims)
		}
		if !known(err) {
			t.Fatalf("key byte %d flipped: %v", i, err)
		}
	}
}

func flipped(b []byte, i int) []byte {
	b = bytes.Clone(b)
	b[i] ^= 1
	return b
}

// known: an error of this package, not nil and not a surprise.
func known(err error) bool {
	return errors.Is(err, signature.ErrDamaged) || errors.Is(err, signature.ErrOtherKey) ||
		errors.Is(err, signature.ErrOtherModule) || errors.Is(err, signature.ErrInvalid)
}

// What is wrong is said: four ways to fail are four errors.
func TestRefused(t *testing.T) {
	k, other := newKey(t), newKey(t)
	text := sign(t, k, module, claims)
	older := claims
	older.Version = "1.3.0"
	elsewhere := claims
	elsewhere.Connector = "https://connectors.example/bank"
	lines := strings.Split(string(text), "\n")
	swapped := strings.Join([]string{lines[0], lines[1],
		strings.Split(string(sign(t, k, []byte("older"), older)), "\n")[2], lines[3], ""}, "\n")
	unclaimed := strings.Replace(string(text), "\tkey:"+k.Public().String(), "", 1)
	for _, c := range []struct {
		name string
		text []byte
		key  signature.PublicKey
		want signature.Claims
		is   error
	}{
		{"another key", text, other.Public(), claims, signature.ErrOtherKey},
		{"no key", text, signature.PublicKey{}, claims, signature.ErrOtherKey},
		{"signed again by another", sign(t, other, module, claims), k.Public(), claims, signature.ErrOtherKey},
		{"of another file", sign(t, k, []byte("older"), older), k.Public(), claims, signature.ErrOtherModule},
		{"this file, called an older version", sign(t, k, module, older), k.Public(), claims, signature.ErrOtherModule},
		{"this file, called another connector", sign(t, k, module, elsewhere), k.Public(), claims, signature.ErrOtherModule},
		{"claims of another signature", []byte(swapped), k.Public(), claims, signature.ErrInvalid},
		{"claims cut", []byte(unclaimed), k.Public(), claims, signature.ErrDamaged},
		{"empty", nil, k.Public(), claims, signature.ErrDamaged},
		{"cut off", text[:len(text)-20], k.Public(), claims, signature.ErrDamaged},
		{"more behind it", append(bytes.Clone(text), "\nmore\n"...), k.Public(), claims, signature.ErrDamaged},
		{"a key for a signature", k.Public().Marshal(), k.Public(), claims, signature.ErrDamaged},
		{"endless", append(bytes.Clone(text), bytes.Repeat([]byte("\n"), 1<<20)...), k.Public(), claims,
			signature.ErrDamaged},
		{"escape codes in the comment", bytes.Replace(text, []byte("timestamp"), []byte("\x1b[2Jtimestamp"), 1), k.Public(),
			claims, signature.ErrDamaged},
	} {
		if err := verify(c.text, c.key, module, c.want); !errors.Is(err, c.is) {
			t.Errorf("%s: %v, want: %v", c.name, err, c.is)
		}
	}
}

// A key's id is chosen by whoever makes the key: one made to look like the
// pinned one does not pass for it.
func TestSameID(t *testing.T) {
	k, thief := newKey(t), newKey(t)
	posing := posingAs(t, thief, k)
	if posing.Public().ID() != k.Public().ID() || posing.Public() == k.Public() {
		t.Fatal("the fixture does not pose")
	}
	if err := verify(sign(t, posing, module, claims), k.Public(), module, claims); !errors.Is(err, signature.ErrInvalid) {
		t.Errorf("signed by a key that poses: %v", err)
	}
}

// What cannot stand in a comment is not signed: a tab would begin another claim.
func TestNotSignable(t *testing.T) {
	for _, c := range []signature.Claims{{"", "1", "d"}, {"a\tversion:9", "1", "d"}, {"a", "1\n", "d"},
		{"a", "1", "\xff"}} {
		if _, err := signature.Sign(newKey(t), module, c, at); !errors.Is(err, signature.ErrNotSignable) {
			t.Errorf("%q: %v", c, err)
		}
	}
}

// FuzzParse: what parses is written back as it was read, but for line ends.
func FuzzParse(f *testing.F) {
	k := newKey(f)
	f.Add(sign(f, k, module, claims))
	f.Add([]byte("untrusted comment: x\nRUQ=\ntrusted comment: y\nAA==\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := signature.Parse(text); err == nil {
			if key, ok := s.Key(); ok {
				if again, err := signature.ParseKey(key.String()); err != nil || again != key {
					t.Errorf("%q carries a key that does not parse", text)
				}
			}
			if s.Verify(k.Public(), []byte("what nobody signed"), claims) == nil {
				t.Errorf("%q is a forgery", text)
			}
		} else if !errors.Is(err, signature.ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
