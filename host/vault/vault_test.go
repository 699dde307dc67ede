package vault_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/vault"
)

func open(t *testing.T, dir string) *vault.Vault {
	t.Helper()
	v, err := vault.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func set(t *testing.T, v *vault.Vault, connection, name, value string) {
	t.Helper()
	if err := v.Set(connection, name, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

// get is the value, or the error as it is.
func get(v *vault.Vault, connection, name string) (string, error) {
	s, err := v.Get(connection, name)
	var out string
	s.Use(func(b []byte) { out = string(b) })
	return out, err
}

func want(t *testing.T, v *vault.Vault, connection, name, value string) {
	t.Helper()
	if got, err := get(v, connection, name); got != value || err != nil {
		t.Errorf("%s/%s is %q, %v; want %q", connection, name, got, err, value)
	}
}

func refused(t *testing.T, err, as error) {
	t.Helper()
	if !errors.Is(err, as) {
		t.Errorf("got %v, want an error that is %q", err, as)
	}
}

// files are all files below a directory and what is in them.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	v := open(t, dir)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("something was made before the first secret")
	}
	if got, err := v.List(); len(got) != 0 || err != nil {
		t.Errorf("an empty vault lists %v, %v", got, err)
	}
	_, err := v.Get("mail", "token")
	refused(t, err, vault.ErrNotFound)
	refused(t, v.Remove("mail", "token"), vault.ErrNotFound)
	if err := v.Rotate(""); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error("something was made by looking")
	}

	long := strings.Repeat("\x00\xff", vault.MaxValue/2)
	set(t, v, "mail", "token", "first")
	set(t, v, "mail", "token", "second")
	set(t, v, "mail", "Key.v2", long)
	set(t, v, "other", "token", "x")
	v = open(t, dir)
	want(t, v, "mail", "token", "second")
	want(t, v, "mail", "Key.v2", long)
	want(t, v, "other", "token", "x")
	_, err = v.Get("mail", "absent")
	refused(t, err, vault.ErrNotFound)

	if err := v.Remove("mail", "token"); err != nil {
		t.Fatal(err)
	}
	_, err = v.Get("mail", "token")
	refused(t, err, vault.ErrNotFound)
	want(t, v, "mail", "Key.v2", long)
	if err := v.Remove("other", "token"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "vault", "other")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory of a connection without secrets stayed")
	}
	set(t, v, "other", "token", "again")
	want(t, v, "other", "token", "again")
}

func TestLimits(t *testing.T) {
	v := open(t, t.TempDir())
	refused(t, v.Set("mail", "empty", nil), vault.ErrInvalid)
	refused(t, v.Set("mail", "long", make([]byte, vault.MaxValue+1)), vault.ErrInvalid)
	for i := range vault.MaxPerConnection {
		set(t, v, "mail", fmt.Sprintf("n%d", i), "x")
	}
	refused(t, v.Set("mail", "more", []byte("x")), vault.ErrInvalid)
	set(t, v, "mail", "n7", "replaced")
	set(t, v, "other", "token", "x")
	refused(t, v.Set("other", "TOKEN", []byte("x")), vault.ErrInvalid) // one file on some systems
	want(t, v, "other", "token", "x")
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	v := open(t, filepath.Join(dir, "data"))
	set(t, v, "mail", "token", "x")
	before := files(t, dir)
	for _, n := range []string{"", ".", "..", "...", "../x", "a/b", "/etc/passwd", `a\b`, "a\x00b", "a b", "a\nb", "ä",
		strings.Repeat("n", 65)} {
		for _, pair := range [][2]string{{"mail", n}, {n, "token"}} {
			_, err := v.Get(pair[0], pair[1])
			refused(t, err, vault.ErrInvalid)
			refused(t, v.Set(pair[0], pair[1], []byte("x")), vault.ErrInvalid)
			refused(t, v.Remove(pair[0], pair[1]), vault.ErrInvalid)
		}
	}
	refused(t, v.Set("Mail", "token", []byte("x")), vault.ErrInvalid)
	if d := cmp.Diff(before, files(t, dir)); d != "" {
		t.Errorf("a refused name changed files:\n%s", d)
	}
	for _, n := range []string{".hidden", "..x", "-", "x.age", "x.tmp", strings.Repeat("n", 64)} {
		set(t, v, "mail", n, "value of "+n)
		want(t, v, "mail", n, "value of "+n)
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir)
	for _, s := range [][2]string{{"mail", "token"}, {"mail", "key"}, {"cal", "token"}} {
		set(t, v, s[0], s[1], "x")
	}
	before, err := v.List()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range before {
		names = append(names, e.Connection+"/"+e.Name)
		if e.Set.IsZero() {
			t.Errorf("%s was set at no time", e.Name)
		}
	}
	if d := cmp.Diff([]string{"cal/token", "mail/key", "mail/token"}, names); d != "" {
		t.Error(d)
	}
	if err := v.Rotate(""); err != nil {
		t.Fatal(err)
	}
	after, err := v.List()
	if d := cmp.Diff(before, after); d != "" || err != nil {
		t.Errorf("a rotation changed when secrets were set: %v\n%s", err, d)
	}
	if err := os.Remove(identityOf(dir)); err != nil {
		t.Fatal(err)
	}
	got, err := v.List()
	if d := cmp.Diff(after, got); d != "" || err != nil {
		t.Errorf("without the identity: %v\n%s", err, d)
	}
}

// What is on the disk is for the owner alone, and holds no value.
func TestOnDisk(t *testing.T) {
	const canary = "canary-7f3a9c"
	dir := filepath.Join(t.TempDir(), "data")
	v := open(t, dir)
	v.OnStep(func(step string) { noCanary(t, dir, step, canary) })
	set(t, v, "mail", "token", canary)
	set(t, v, "mail", "token", canary+canary)
	if err := v.Rotate(""); err != nil {
		t.Fatal(err)
	}
	if err := v.Remove("mail", "token"); err != nil {
		t.Fatal(err)
	}
	set(t, v, "mail", "token", canary)
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		fi, err := os.Lstat(path)
		if err == nil && fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	var names []string
	for name := range files(t, dir) {
		names = append(names, name)
	}
	if len(names) != 2 {
		t.Errorf("the disk has %q, want a secret and an identity", names)
	}
}

func noCanary(t *testing.T, dir, step, canary string) {
	for name, text := range files(t, dir) {
		if strings.Contains(text, canary) || strings.Contains(name, canary) {
			t.Errorf("%s: %s holds the value", step, name)
		}
	}
}

// The files are age's own, so that they can be opened without this program.
func TestAgeOpensIt(t *testing.T) {
	dir := t.TempDir()
	set(t, open(t, dir), "mail", "token", "value")
	all := files(t, dir)
	ids, err := age.ParseIdentities(strings.NewReader(all["keys/vault.age-identity"]))
	if err != nil {
		t.Fatal(err)
	}
	r, err := age.Decrypt(strings.NewReader(all["vault/mail/token.age"]), ids...)
	if err != nil {
		t.Fatal(err)
	}
	var plain bytes.Buffer
	if _, err := plain.ReadFrom(r); err != nil || plain.String() != "\x04mail\x05tokenvalue" {
		t.Errorf("plaintext %q, %v", plain.String(), err)
	}
}

func identityOf(dir string) string { return filepath.Join(dir, "keys", "vault.age-identity") }

func fileOf(dir, connection, name string) string {
	return filepath.Join(dir, "vault", connection, name+".age")
}
