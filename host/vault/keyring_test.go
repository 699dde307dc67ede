package vault_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/sluicehost/sluice/host/vault"
)

// S84: the key moves into the OS keyring and back; every secret stays, and while
// it is there the data directory alone opens nothing.
func TestKeyring(t *testing.T) {
	keyring.MockInit()
	dir := t.TempDir()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Rotate(vault.InKeyring); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a key: %v", err)
	}
	want := map[string]string{"token": "correct horse", "other": "battery staple"}
	for name, value := range want {
		if err := v.Set("mail", name, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	all := func() {
		t.Helper()
		for name, value := range want {
			s, err := v.Get("mail", name)
			if err != nil {
				t.Fatal(err)
			}
			s.Use(func(b []byte) {
				if string(b) != value {
					t.Errorf("%s is %q", name, b)
				}
			})
		}
	}
	key := filepath.Join(dir, "keys", "vault.age-identity")
	for _, step := range []struct{ to, is vault.Place }{
		{"", vault.InFile}, {vault.InKeyring, vault.InKeyring}, {"", vault.InKeyring}, {vault.InKeyring, vault.InKeyring},
		{vault.InFile, vault.InFile}, {vault.InFile, vault.InFile}, {vault.InKeyring, vault.InKeyring},
	} {
		before, err := os.ReadFile(key)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Rotate(step.to); err != nil {
			t.Fatalf("to %q: %v", step.to, err)
		}
		all()
		if p, err := v.Place(); p != step.is || err != nil {
			t.Errorf("to %q: in %q, %v", step.to, p, err)
		}
		after, err := os.ReadFile(key)
		if err != nil || bytes.Equal(before, after) {
			t.Errorf("to %q: the identity is the old one: %v", step.to, err)
		}
		if bytes.Contains(after, []byte("AGE-SECRET-KEY")) != (step.is == vault.InFile) {
			t.Errorf("to %q: the identity file is %.80q", step.to, after)
		}
	}
	keyring.MockInit() // another session: its keyring is empty
	if _, err := v.Get("mail", "token"); !errors.Is(err, vault.ErrKeyring) {
		t.Errorf("without the keyring: %v", err)
	}
	before, _ := os.ReadFile(key)
	if err := v.Set("mail", "new", []byte("x")); !errors.Is(err, vault.ErrKeyring) {
		t.Errorf("set without the keyring: %v", err)
	}
	if err := v.Rotate(vault.InFile); !errors.Is(err, vault.ErrKeyring) {
		t.Errorf("rotate without the keyring: %v", err)
	}
	if after, _ := os.ReadFile(key); !bytes.Equal(before, after) {
		t.Error("the identity file was changed")
	}
}

// S84: a keyring that cannot be reached is an error, and changes nothing.
func TestNoKeyring(t *testing.T) {
	keyring.MockInitWithError(errors.New("no session bus\nand more"))
	v, err := vault.Open(t.TempDir())
	if err == nil {
		err = v.Set("mail", "token", []byte("correct horse"))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Rotate(vault.InKeyring); !errors.Is(err, vault.ErrKeyring) {
		t.Errorf("%v", err)
	}
	if _, err := v.Get("mail", "token"); err != nil {
		t.Error(err)
	}
	if p, err := v.Place(); p != vault.InFile || err != nil {
		t.Errorf("in %q, %v", p, err)
	}
}
