package vault_test

import (
	"bytes"
	"path/filepath"
	"testing"
)

// S134: what a backup gets is what lies on the disk, without the identity.
func TestSealed(t *testing.T) {
	v, dir := filled(t)
	got, err := v.Sealed(func() error { return nil })
	if err != nil || len(got) != 3 {
		t.Fatalf("%d files, %v", len(got), err)
	}
	for _, f := range got {
		if !bytes.Equal(f.Sealed, read(t, filepath.Join(dir, "vault", f.Connection, f.Name+".age"))) || f.Set.IsZero() {
			t.Errorf("%s of %s is not the file", f.Name, f.Connection)
		}
	}
	none, err := open(t, t.TempDir()).Sealed(func() error { return nil })
	if err != nil || len(none) != 0 {
		t.Errorf("no vault: %v, %v", none, err)
	}
}

// A rotation is in a backup before or after, never half.
func TestSealedWhileRotating(t *testing.T) {
	v, _ := filled(t)
	done := make(chan error)
	go func() {
		for range 10 {
			if err := v.Rotate(""); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		got, err := v.Sealed(func() error { return nil })
		if err != nil || len(got) != 3 {
			t.Fatalf("%d files, %v", len(got), err)
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}
