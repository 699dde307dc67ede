package vault_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host/vault"
)

// died is what a kill at a step looks like: nothing after it is done.
type died struct{}

// killAt does something and dies at its n-th durable step; false if there is
// none.
func killAt(v *vault.Vault, n int, do func() error) (killed bool, err error) {
	defer v.OnStep(nil)
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(r)
			}
			killed = true
		}
	}()
	v.OnStep(func(string) {
		if n--; n == 0 {
			panic(died{})
		}
	})
	return false, do()
}

// filled is a vault with three secrets.
func filled(t *testing.T) (*vault.Vault, string) {
	dir := t.TempDir()
	v := open(t, dir)
	set(t, v, "mail", "token", "a")
	set(t, v, "mail", "password", "b")
	set(t, v, "shop", "token", "c")
	return v, dir
}

func TestKilledSet(t *testing.T) {
	for n := 1; ; n++ {
		v, dir := filled(t)
		killed, err := killAt(v, n, func() error { return v.Set("mail", "token", []byte("new")) })
		if err != nil {
			t.Fatal(err)
		}
		v = open(t, dir)
		if got, err := get(v, "mail", "token"); err != nil || got != "a" && got != "new" {
			t.Errorf("killed at step %d: %q, %v", n, got, err)
		}
		want(t, v, "mail", "password", "b")
		want(t, v, "shop", "token", "c")
		set(t, v, "mail", "password", "later")
		noTemporaries(t, dir)
		if !killed {
			want(t, v, "mail", "token", "new")
			return
		}
	}
}

// The first Set also makes directories and identity.
func TestKilledFirstSet(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir()
		v := open(t, dir)
		killed, err := killAt(v, n, func() error { return v.Set("mail", "token", []byte("a")) })
		if err != nil {
			t.Fatal(err)
		}
		set(t, open(t, dir), "mail", "password", "b")
		set(t, open(t, dir), "mail", "token", "c")
		want(t, v, "mail", "password", "b")
		want(t, v, "mail", "token", "c")
		noTemporaries(t, dir)
		if !killed {
			return
		}
	}
}

func TestKilledRotate(t *testing.T) {
	steps := 0
	for n := 1; ; n++ {
		v, dir := filled(t)
		old := files(t, dir)["keys/vault.age-identity"]
		killed, err := killAt(v, n, func() error { return v.Rotate("") })
		if err != nil {
			t.Fatal(err)
		}
		all := func() {
			t.Helper()
			want(t, v, "mail", "token", "a")
			want(t, v, "mail", "password", "b")
			want(t, v, "shop", "token", "c")
		}
		v = open(t, dir)
		all()
		// A second one may be killed as well; the third is done.
		if _, err := killAt(v, n, func() error { return v.Rotate("") }); err != nil {
			t.Fatal(err)
		}
		all()
		if n := strings.Count(files(t, dir)["keys/vault.age-identity"], "AGE-SECRET-KEY"); n > 2 {
			t.Errorf("killed rotations piled up %d identities", n)
		}
		if err := v.Rotate(""); err != nil {
			t.Fatal(err)
		}
		all()
		noTemporaries(t, dir)
		now := files(t, dir)["keys/vault.age-identity"]
		if strings.Count(now, "AGE-SECRET-KEY") != 1 || now == old {
			t.Errorf("killed at step %d: the old identity stayed", n)
		}
		if !killed {
			break
		}
		steps++
	}
	if steps < 10 { // two identities and three secrets, two steps each
		t.Errorf("there were only %d steps to be killed at", steps)
	}
}

func noTemporaries(t *testing.T, dir string) {
	t.Helper()
	for name := range files(t, dir) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("%s was left", name)
		}
	}
}

// Two processes are two vaults of one directory. Nothing is lost between them,
// and every reading sees some value in full.
func TestHammer(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for w := range 4 {
		v := open(t, dir)
		wg.Go(func() {
			for i := range 8 {
				own := fmt.Sprintf("n%d.%d", w, i)
				if err := v.Set("mail", own, []byte(own)); err != nil {
					t.Error(err)
				}
				if err := v.Set("mail", "shared", []byte(strings.Repeat("x", 1000+w))); err != nil {
					t.Error(err)
				}
				if got, err := get(v, "mail", "shared"); err != nil || strings.Trim(got, "x") != "" || len(got) < 1000 {
					t.Errorf("%d bytes, %v", len(got), err)
				}
				if w == 0 && i%4 == 0 {
					if err := v.Rotate(""); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	v := open(t, dir)
	for w := range 4 {
		for i := range 8 {
			own := fmt.Sprintf("n%d.%d", w, i)
			want(t, v, "mail", own, own)
		}
	}
}
