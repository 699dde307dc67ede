package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/drivers"
)

// errCut ends a copy at a step.
var errCut = errors.New("cut off")

// cutAt has the next copy end at a step.
func cutAt(t *testing.T, point string) {
	t.Helper()
	app.SetFault(func(p string) error {
		if p == point {
			return errCut
		}
		return nil
	})
	t.Cleanup(func() { app.SetFault(func(string) error { return nil }) })
}

// keep writes a document into a store, and a secret beside it.
func keep(t *testing.T, dir, value string) {
	t.Helper()
	s, err := drivers.Open("badger:"+dir, drivers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(value)
	err = errors.Join(s.Write(t.Context(), store.Write{Kind: store.Keys, ID: value, Data: text}), s.Close())
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(dir)
	if err == nil {
		err = v.Set("mail", value, []byte(value))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A copy that was cut off is refused as a store, and finished by the next one: also if its source was used, and secrets
// set and removed, in between.
func TestCopyAnew(t *testing.T) {
	for _, point := range []string{"copy.opened", "copy.marked", "copy.noted", "copy.taken", "copy.filled", "copy.told"} {
		for _, changed := range []bool{false, true} {
			from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
			keep(t, from, "first")
			o := app.CopyOptions{From: "badger:" + from, To: "badger:" + to, Tell: func(store.CopyProgress) {}}
			cutAt(t, point)
			if _, err := app.CopyStore(t.Context(), o); !errors.Is(err, errCut) {
				t.Fatalf("%s: %v", point, err)
			}
			app.SetFault(func(string) error { return nil })
			if point == "copy.noted" || point == "copy.taken" {
				if h, err := app.Open(t.Context(), app.Options{Store: o.To, NoSandbox: true, Prespawn: -1}); !errors.Is(err,
					app.ErrUnfinishedCopy) {
					t.Errorf("%s: opened: %v, %v", point, h, err)
				}
			}
			if changed {
				keep(t, from, "second")
				if err := os.Remove(filepath.Join(from, "vault", "mail", "first.age")); err != nil {
					t.Fatal(err)
				}
			}
			_, err := app.CopyStore(t.Context(), o)
			if changed && (point == "copy.filled" || point == "copy.told") { // the store was whole, as it was then
				if !errors.Is(err, app.ErrCopyChoice) || !strings.Contains(err.Error(), "is not empty") {
					t.Errorf("%s, source changed: %v", point, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s, source changed: %v: %v", point, changed, err)
			}
			if left, _ := filepath.Glob(filepath.Join(to, "copying")); len(left) > 0 {
				t.Errorf("%s: left %v", point, left)
			}
			a, b := secrets(t, from), secrets(t, to)
			if a != b {
				t.Errorf("%s, source changed: %v: secrets are %s, want %s", point, changed, b, a)
			}
			if _, err := app.CopyStore(t.Context(), o); !errors.Is(err, app.ErrCopyChoice) {
				t.Errorf("%s: copied once more: %v", point, err)
			}
		}
	}
}

// secrets lists the files of a vault.
func secrets(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "vault", "mail", "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	var b bytes.Buffer
	for _, name := range names {
		b.WriteString(filepath.Base(name) + " ")
	}
	return b.String()
}

// What somebody has in the target is refused and stays, also where the store is empty.
func TestCopyToSomebodys(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	keep(t, from, "mine")
	used := filepath.Join(t.TempDir(), "used")
	keep(t, used, "theirs")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.MkdirAll(filepath.Join(empty, "keys"), 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{used: "is not empty, and a store is never merged",
		empty: "is there already; name an empty data directory"} {
		o := app.CopyOptions{From: "badger:" + from, To: "badger:" + dir, Tell: func(store.CopyProgress) {}}
		for range 2 {
			if _, err := app.CopyStore(t.Context(), o); !errors.Is(err, app.ErrCopyChoice) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", dir, err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "copying")); err == nil {
			t.Errorf("%s was marked", dir)
		}
		h, err := app.Open(t.Context(), app.Options{Store: o.To, NoSandbox: true, Prespawn: -1})
		if err == nil {
			err = h.Close()
		}
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if got := secrets(t, used); !strings.Contains(got, "theirs.age") {
		t.Errorf("they have %s", got)
	}
}
