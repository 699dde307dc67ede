//go:build unix

package vault_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/vault"
)

// A file says whose it is: moved to another name or connection it is refused.
func TestSwapped(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir)
	set(t, v, "mail", "token", "a")
	set(t, v, "mail", "password", "b")
	set(t, v, "shop", "token", "c")
	for _, to := range []string{fileOf(dir, "mail", "password"), fileOf(dir, "shop", "token")} {
		write(t, to, read(t, fileOf(dir, "mail", "token")))
	}
	for _, s := range [][2]string{{"mail", "password"}, {"shop", "token"}} {
		got, err := get(v, s[0], s[1])
		refused(t, err, vault.ErrDamaged)
		if got != "" {
			t.Errorf("%v gave %q", s, got)
		}
	}
	want(t, v, "mail", "token", "a")
}

// However a file is cut or bent, its value is never another.
func TestDamaged(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir)
	set(t, v, "mail", "token", "value")
	path := fileOf(dir, "mail", "token")
	good := read(t, path)
	check := func(what string, i int, file []byte) {
		t.Helper()
		write(t, path, file)
		got, err := get(v, "mail", "token")
		if got != "" || !errors.Is(err, vault.ErrDamaged) && !errors.Is(err, vault.ErrKey) {
			t.Errorf("%s %d: %q, %v", what, i, got, err)
		}
	}
	for i := range good {
		check("cut to", i, good[:i])
		bent := append([]byte{}, good...)
		bent[i] ^= 1 << (i % 8)
		check("bent at", i, bent)
	}
	check("longer by", 1, append(append([]byte{}, good...), 0))
	check("filled to", 1<<20, append(append([]byte{}, good...), make([]byte, 1<<20)...))
	before := files(t, dir)
	if err := v.Rotate(""); !errors.Is(err, vault.ErrDamaged) {
		t.Errorf("a damaged vault was rotated: %v", err)
	}
	if d := cmp.Diff(before, files(t, dir)); d != "" {
		t.Errorf("the refused rotation changed files:\n%s", d)
	}
	set(t, v, "mail", "token", "anew")
	want(t, v, "mail", "token", "anew")
}

// Another identity opens nothing and changes nothing.
func TestWrongKey(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	v := open(t, dir)
	set(t, v, "mail", "token", "a")
	set(t, open(t, other), "mail", "token", "b")
	right := read(t, identityOf(dir))
	for what, key := range map[string][]byte{"another": read(t, identityOf(other)), "none": nil,
		"text": []byte("AGE-SECRET-KEY-1CANARY\n"), "missing": []byte("-")} {
		write(t, identityOf(dir), key)
		if what == "missing" {
			must(t, os.Remove(identityOf(dir)))
		}
		before := files(t, dir)
		_, err := open(t, dir).Get("mail", "token")
		refused(t, err, vault.ErrKey)
		refused(t, v.Rotate(""), vault.ErrKey)
		if what != "another" { // what is set under another key can be read with it
			refused(t, v.Set("mail", "more", []byte("x")), vault.ErrKey)
		}
		if d := cmp.Diff(before, files(t, dir)); d != "" {
			t.Errorf("%s: the vault changed:\n%s", what, d)
		}
	}
	write(t, identityOf(dir), right)
	want(t, v, "mail", "token", "a")

	// Who lost the key removes what it opened and begins anew.
	must(t, os.Remove(identityOf(dir)))
	must(t, v.Remove("mail", "token"))
	set(t, v, "mail", "token", "anew")
	want(t, v, "mail", "token", "anew")
}

// What others can reach is refused, with the command that repairs it.
func TestExposed(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir)
	set(t, v, "mail", "token", "a")
	for _, path := range []string{identityOf(dir), filepath.Join(dir, "keys"), filepath.Join(dir, "vault"),
		filepath.Join(dir, "vault", "mail"), fileOf(dir, "mail", "token")} {
		fi, err := os.Stat(path)
		must(t, err)
		for _, more := range []os.FileMode{0o040, 0o004, 0o020, 0o010} {
			must(t, os.Chmod(path, fi.Mode().Perm()|more))
			_, err := v.Get("mail", "token")
			refused(t, err, vault.ErrUnsafe)
			refused(t, v.Set("mail", "token", []byte("b")), vault.ErrUnsafe)
			refused(t, v.Rotate(""), vault.ErrUnsafe)
		}
		must(t, os.Chmod(path, fi.Mode().Perm()))
		want(t, v, "mail", "token", "a")
	}
	must(t, os.Chmod(identityOf(dir), 0o640))
	_, err := vault.Open(dir)
	refused(t, err, vault.ErrUnsafe)
}

func TestForeignOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can give files away")
	}
	dir := t.TempDir()
	v := open(t, dir)
	set(t, v, "mail", "token", "a")
	for _, path := range []string{identityOf(dir), filepath.Join(dir, "keys"), filepath.Join(dir, "vault"),
		filepath.Join(dir, "vault", "mail"), fileOf(dir, "mail", "token")} {
		must(t, os.Chown(path, 65534, 65534))
		_, err := v.Get("mail", "token")
		refused(t, err, vault.ErrUnsafe)
		refused(t, v.Set("mail", "token", []byte("b")), vault.ErrUnsafe)
		must(t, os.Chown(path, 0, 0))
	}
	want(t, v, "mail", "token", "a")
}

// A link, a pipe or a directory in the place of anything is neither followed
// nor waited for.
func TestNotAFile(t *testing.T) {
	replace := map[string]func(path, aside string) error{
		"link": func(path, aside string) error { return os.Symlink(aside, path) },
		"pipe": func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"loop": func(path, _ string) error { return os.Symlink(filepath.Base(path), path) },
		"dir":  func(path, _ string) error { return os.Mkdir(path, 0o700) },
	}
	for what, with := range replace {
		for _, rel := range []string{"vault", "keys", "vault/mail", "vault/mail/token.age", "keys/vault.age-identity"} {
			if what == "dir" && filepath.Ext(rel) == "" {
				continue // a directory in the place of a directory is one
			}
			t.Run(what+" "+rel, func(t *testing.T) {
				dir := t.TempDir()
				v := open(t, dir)
				set(t, v, "mail", "token", "a")
				aside := filepath.Join(dir, "aside")
				must(t, os.Rename(filepath.Join(dir, rel), aside))
				must(t, with(filepath.Join(dir, rel), aside))
				before := files(t, dir)
				_, err := v.Get("mail", "token")
				refused(t, err, vault.ErrUnsafe)
				refused(t, v.Set("mail", "token", []byte("b")), vault.ErrUnsafe)
				refused(t, v.Rotate(""), vault.ErrUnsafe)
				if d := cmp.Diff(before, files(t, dir)); d != "" {
					t.Errorf("files changed:\n%s", d)
				}
			})
		}
	}
}

// A link that waits where a file is written next is removed, not followed.
func TestPlantedTemporary(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	write(t, victim, []byte("untouched"))
	v := open(t, dir)
	set(t, v, "mail", "token", "a")
	must(t, os.Symlink(victim, fileOf(dir, "mail", "token")+".tmp"))
	must(t, os.Symlink(victim, identityOf(dir)+".tmp"))
	set(t, v, "mail", "token", "b")
	must(t, v.Rotate(""))
	want(t, v, "mail", "token", "b")
	if got := string(read(t, victim)); got != "untouched" {
		t.Errorf("the link was followed: %q", got)
	}
}

// Removing takes the link away, not what it leads to.
func TestRemoveLink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	write(t, victim, []byte("untouched"))
	v := open(t, dir)
	set(t, v, "mail", "token", "a")
	must(t, os.Remove(fileOf(dir, "mail", "token")))
	must(t, os.Symlink(victim, fileOf(dir, "mail", "token")))
	must(t, v.Remove("mail", "token"))
	if got := string(read(t, victim)); got != "untouched" {
		t.Errorf("the link was followed: %q", got)
	}
}
