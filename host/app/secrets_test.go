package app_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host"
)

// A value is wiped and nowhere to be found, whether it was taken or not.
func TestSecretValues(t *testing.T) {
	s, h := connected(t)
	for name, c := range map[string]struct {
		secret, value, rule string
	}{
		"taken":     {"token", marker, ""},
		"unknown":   {"nobody", marker, "secret_unknown"},
		"path":      {"../../" + marker, marker, "secret_unknown"},
		"empty":     {"token", "", "length"},
		"too large": {"token", strings.Repeat(marker, 1000), "length"},
		"no text":   {"token", marker + "\xff", "utf8"},
	} {
		value := []byte(c.value)
		err := s.SetSecret(host.As(t.Context(), somebody), "mail", c.secret, value)
		if c.rule == "" && err != nil {
			t.Error(name, err)
		}
		if c.rule != "" {
			refused(t, err, "validation_error", c.rule, marker)
		}
		if !bytes.Equal(value, make([]byte, len(value))) {
			t.Errorf("%s: the value was not wiped", name)
		}
	}
	absent(t, s.SetSecret(host.As(t.Context(), somebody), "nobody", "token", []byte(marker)))
	wrote(t, s, "secret.set")
	err := filepath.WalkDir(h.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(marker)) {
			t.Errorf("%s holds the value", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Secrets are listed without their values, and removed.
func TestSecrets(t *testing.T) {
	s, _ := connected(t)
	if err := s.SetSecret(host.As(t.Context(), somebody), "mail", "token", []byte("t")); err != nil {
		t.Fatal(err)
	}
	all, err := s.Secrets(t.Context(), "mail")
	if err != nil || len(all) != 3 || all[0].Name != "token" || all[0].Label != "Token" || !all[0].Required ||
		!all[0].Set || all[0].Delivery != "sealed" || all[1].Set {
		t.Errorf("%+v, %v", all, err)
	}
	if err := s.RemoveSecret(host.As(t.Context(), somebody), "mail", "token"); err != nil {
		t.Fatal(err)
	}
	absent(t, s.RemoveSecret(host.As(t.Context(), somebody), "mail", "token"))
	absent(t, s.RemoveSecret(host.As(t.Context(), somebody), "nobody", "token"))
	refused(t, s.RemoveSecret(host.As(t.Context(), somebody), "mail", "../token"), "validation_error", "secret_unknown")
	if all, err := s.Secrets(t.Context(), "mail"); err != nil || all[0].Set {
		t.Errorf("%+v, %v", all, err)
	}
	_, err = s.Secrets(t.Context(), "nobody")
	absent(t, err)
	wrote(t, s, "secret.removed")
}
