package app_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/vault"
)

// What a webhook is signed with is found by a later host, and by nobody who reads the files; a
// connection's secrets do not count among those.
func TestSigningSecrets(t *testing.T) {
	for name, dir := range map[string]string{"vault": t.TempDir(), "memory": ""} {
		t.Run(name, func(t *testing.T) {
			s := app.SigningSecretsIn(dir)
			if _, err := s.Get("whk_1"); !errors.Is(err, vault.ErrNotFound) {
				t.Errorf("got %v of none", err)
			}
			given := []byte("planted-signing-secret")
			if err := errors.Join(s.Set("whk_1", given), s.Set("whk_2", []byte("another one"))); err != nil {
				t.Fatal(err)
			}
			clear(given)
			if dir != "" {
				s = app.SigningSecretsIn(dir)
				keepAnother(t, dir)
				nowhere(t, dir, "planted-signing-secret")
			}
			if got, err := s.Get("whk_1"); err != nil || string(got) != "planted-signing-secret" {
				t.Errorf("got %q, %v", got, err)
			}
			if err := errors.Join(s.Remove("whk_1"), s.Remove("whk_1"), s.Remove("whk_3")); err != nil {
				t.Error(err)
			}
			if ids, err := s.IDs(); err != nil || !slices.Equal(ids, []string{"whk_2"}) {
				t.Errorf("left %q, %v", ids, err)
			}
		})
	}
}

func keepAnother(t *testing.T, dir string) {
	t.Helper()
	v, err := vault.Open(dir)
	if err == nil {
		err = v.Set("shop", "whk_9", []byte("of a connection"))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// nowhere fails if a file below dir has the text in it.
func nowhere(t *testing.T, dir, text string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), text) {
			t.Errorf("%s has %q in it", path, text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
