package app

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/run"
	"github.com/sluicehost/sluice/host/vault"
)

func asking(names ...string) *abi.Manifest {
	m := &abi.Manifest{Sluice: &abi.SluiceBlock{}}
	for _, n := range names {
		m.Sluice.Secrets = append(m.Sluice.Secrets, abi.SecretField{Name: n, Secret: true})
	}
	return m
}

// A run gets what its manifest declares and nobody gave, of its own connection.
func TestStoredSecrets(t *testing.T) {
	dir := t.TempDir()
	v, err := OpenVault("badger:" + dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range [][3]string{{"mail", "token", "stored"}, {"mail", "given", "stored"}, {"mail", "undeclared", "x"},
		{"shop", "other", "x"}} {
		if err := v.Set(s[0], s[1], []byte(s[2])); err != nil {
			t.Fatal(err)
		}
	}
	h := newHost(&directory{DataDir: dir})
	given := map[string]string{"given": "typed"}
	got, err := h.ofRun(asking("token", "given", "other", ".."), "mail", given)
	if d := cmp.Diff(map[string]string{"token": "stored", "given": "typed"}, got); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
	if len(given) != 1 {
		t.Error("the caller's map was changed")
	}

	if err := os.Remove(filepath.Join(dir, "keys", "vault.age-identity")); err != nil {
		t.Fatal(err)
	}
	_, err = h.ofRun(asking("token"), "mail", nil)
	var refused *run.Refusal
	if !errors.As(err, &refused) || refused.Code != "secret_missing" || !errors.Is(err, vault.ErrKey) {
		t.Errorf("without the identity: %v", err)
	}
	if _, err := h.ofRun(asking("given"), "mail", given); err != nil {
		t.Errorf("a given secret needed the vault: %v", err)
	}
	if _, err := h.ofRun(asking(), "mail", nil); err != nil {
		t.Errorf("a connector without secrets needed the vault: %v", err)
	}
}

func TestNoVaultInMemory(t *testing.T) {
	if _, err := OpenVault("memory:"); !errors.Is(err, ErrNoVault) {
		t.Errorf("got %v", err)
	}
	if got, err := (&secretStore{&directory{}}).ofRun(asking("token"), "mail", nil); len(got) != 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}
