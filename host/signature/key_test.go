package signature_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/sluicehost/sluice/host/signature"
)

func noPassword() ([]byte, error) { return nil, errors.New("nobody is there to ask") }

func plain(t testing.TB, k signature.PrivateKey) []byte {
	t.Helper()
	text, err := k.Plain()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// rewritten changes the bytes of a private key's file. They are: algorithms 6,
// salt 32, costs 16, id 8, seed 32, public key 32, checksum 32.
func rewritten(t testing.TB, text []byte, change func([]byte)) []byte {
	t.Helper()
	head, line, _ := bytes.Cut(text, []byte("\n"))
	raw, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(line)))
	if err != nil {
		t.Fatal(err)
	}
	change(raw)
	return []byte(string(head) + "\n" + base64.StdEncoding.EncodeToString(raw) + "\n")
}

// posingAs is k under the id of another key.
func posingAs(t testing.TB, k, as signature.PrivateKey) signature.PrivateKey {
	t.Helper()
	public, err := base64.StdEncoding.DecodeString(as.Public().String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := signature.OpenKey(rewritten(t, plain(t, k), func(raw []byte) { copy(raw[54:62], public[2:10]) }), noPassword)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A new key is sealed with its password, at the price that minisign asks.
func TestSealedKey(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: scrypt takes 1 GiB of memory")
	}
	k := newKey(t)
	text, err := k.Sealed([]byte("correct horse"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, bytes.TrimSpace(plain(t, k))[60:]) {
		t.Error("the sealed file holds the key")
	}
	got, err := signature.OpenKey(text, func() ([]byte, error) { return []byte("correct horse"), nil })
	if err != nil || got.Public() != k.Public() {
		t.Errorf("the sealed key does not open: %v", err)
	}
	if _, err := k.Sealed(nil); err == nil {
		t.Error("an empty password seals")
	}
}

// A sealed key opens with its password and no other, and not when it was changed.
func TestPassword(t *testing.T) {
	text, err := os.ReadFile("testdata/sealed.key")
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile("testdata/sealed.key.pub")
	if err != nil {
		t.Fatal(err)
	}
	changed := rewritten(t, text, func(raw []byte) { raw[70] ^= 1 })
	costly := rewritten(t, text, func(raw []byte) { raw[51] = 0xff }) // terabytes
	for _, c := range []struct {
		text     []byte
		password string
		want     error
	}{
		{text, "correct horse", nil}, {text, "correct horse\n", signature.ErrPassword}, {text, "", signature.ErrPassword},
		{changed, "correct horse", signature.ErrPassword}, {costly, "correct horse", signature.ErrPassword},
	} {
		got, err := signature.OpenKey(c.text, func() ([]byte, error) { return []byte(c.password), nil })
		if !errors.Is(err, c.want) || err == nil && !bytes.Equal(got.Public().Marshal(), public) {
			t.Errorf("password %q: %v", c.password, err)
		}
	}
	if _, err := signature.OpenKey(text, noPassword); err == nil || errors.Is(err, signature.ErrPassword) {
		t.Errorf("nobody to ask: %v", err)
	}
}

// A file that was changed is refused, before it signs anything: a signature
// under a changed public half gives the private one away.
func TestChangedKey(t *testing.T) {
	k := newKey(t)
	text := plain(t, k)
	if got, err := signature.OpenKey(text, noPassword); err != nil || got.Public() != k.Public() {
		t.Fatalf("the key does not open: %v", err)
	}
	for name, bad := range map[string][]byte{
		"public half": rewritten(t, text, func(raw []byte) { raw[100] ^= 1 }),
		"seed":        rewritten(t, text, func(raw []byte) { raw[70] ^= 1 }),
		"algorithm":   rewritten(t, text, func(raw []byte) { raw[0] ^= 1 }),
		"cut":         text[:len(text)-9],
		"empty":       nil,
		"a public":    k.Public().Marshal(),
		"long":        bytes.Repeat([]byte("A"), 1<<20),
	} {
		if _, err := signature.OpenKey(bad, noPassword); !errors.Is(err, signature.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A public key is read with and without its comment, in one spelling.
func TestPublicKey(t *testing.T) {
	k := newKey(t).Public()
	for _, text := range []string{string(k.Marshal()), k.String(), k.String() + "\r\n"} {
		if got, err := signature.ReadPublicKey([]byte(text)); err != nil || got != k {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, text := range []string{"", "RW", k.String()[1:], k.String() + "\nmore",
		k.String()[:20] + "\n" + k.String()[20:], "untrusted comment: x"} {
		if _, err := signature.ReadPublicKey([]byte(text)); !errors.Is(err, signature.ErrDamaged) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Key files are their owner's alone, and never replaced.
func TestWriteKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	first, second := newKey(t), newKey(t)
	if err := signature.WriteKey(path, plain(t, first), first.Public()); err != nil {
		t.Fatal(err)
	}
	if err := signature.WriteKey(path, plain(t, second), second.Public()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a key was replaced: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, plain(t, first)) {
		t.Errorf("the key is not what it was: %v", err)
	}
	for _, name := range []string{path, path + signature.PublicSuffix} {
		if fi, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && fi.Mode() != 0o600 {
			t.Errorf("%s: %v %v", name, fi.Mode(), err)
		}
	}
}

// What is read is bounded, and no pipe.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, make([]byte, 11), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := signature.ReadFile(path, 10); err == nil {
		t.Error("a long file was read")
	}
	if b, err := signature.ReadFile(path, 11); err != nil || len(b) != 11 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := signature.ReadFile(dir, 10); err == nil {
		t.Error("a directory was read")
	}
	if _, err := signature.ReadFile(filepath.Join(dir, "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
}

// Half of a pair is worse than none: where one file is in the way, neither is made.
func TestWriteHalf(t *testing.T) {
	k := newKey(t)
	for _, taken := range []string{"", signature.PublicSuffix} {
		dir := t.TempDir()
		path := filepath.Join(dir, "k")
		if err := os.WriteFile(path+taken, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := signature.WriteKey(path, plain(t, k), k.Public()); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%q is taken: %v", taken, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%q is taken: %v, %v", taken, entries, err)
		}
	}
}
