//go:build unix

package backup_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// everything lists what a data directory holds.
func everything(t *testing.T, dir string) (out []string) {
	t.Helper()
	s, err := opener.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	note := func(v any, err error) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%+v", v))
	}
	ctx := t.Context()
	note(s.Connectors(ctx))
	note(s.Connections(ctx))
	note(s.Leases(ctx))
	runs, err := s.Runs(ctx, "", "", 100)
	note(runs, err)
	for _, r := range runs {
		note(s.Events(ctx, r.ID, 0, 1000))
		note(s.Staged(ctx, r.ID))
		note(s.Pending(ctx, r.ID))
	}
	for _, c := range []store.ConnectionID{"mail", "shop"} {
		note(s.States(ctx, c, ""))
		note(s.Gaps(ctx, c, "", ""))
		streams, err := s.Streams(ctx, c)
		note(streams, err)
		for _, st := range streams {
			q := store.RecordQuery{Connection: c, Stream: st.Stream, Deleted: true, Limit: 1000}
			for more := true; more; {
				page, err := s.Records(ctx, q)
				note(page, err)
				for _, r := range page.Records {
					q.After = r.Version
				}
				more = page.More
			}
		}
	}
	return out
}

// What is restored is what was backed up: records, tombstones, versions, cursors, gaps,
// questions, runs, timelines, modules, secrets and since when they are set. The host's own
// files are its own.
func TestRoundTrip(t *testing.T) {
	from := data(t, 6000)
	before := everything(t, from)
	p, done, err := preparePlan(from)
	if err != nil {
		t.Fatal(err)
	}
	sum := p.Manifest.Summary()
	if sum.Records < 5000 || sum.Streams != 4 || sum.Modules != 1 || sum.Secrets != 2 {
		t.Errorf("manifest: %+v", sum)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "b.age")
	drills := 0
	order := backup.Order{Path: file, To: backup.Recipients{id.Recipient()},
		Drill: func(ctx context.Context, r io.Reader) error {
			drills++
			_, got, err := backup.UnpackApart(ctx, r, t.TempDir(), nil)
			if got != p.Digest() {
				t.Errorf("digest %s, want %s", got, p.Digest())
			}
			return err
		}}
	w, err := backup.Create(t.Context(), p, order)
	done()
	if err != nil || drills != 1 {
		t.Fatal(err, drills)
	}
	text, err := os.ReadFile(file)
	if err != nil || int64(len(text)) != w.Size || digest(text) != w.SHA256 {
		t.Errorf("%d bytes, %+v, %v", len(text), w, err)
	}
	if fi, err := os.Stat(file); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}

	to := filepath.Join(t.TempDir(), "new", "data")
	got, err := restore(t.Context(), file, to, backup.Identities{id}, backup.UnpackApart)
	if err != nil || got != sum {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := cmp.Diff(before, everything(t, to)); d != "" {
		t.Errorf("restored otherwise: %s", d)
	}
	for _, path := range []string{"vault/mail/token.age", "vault/mail/password.age",
		"modules/" + digest([]byte("\x00asm and so on")) + ".wasm"} {
		a, err1 := os.ReadFile(filepath.Join(from, path))
		b, err2 := os.ReadFile(filepath.Join(to, path))
		fa, err3 := os.Stat(filepath.Join(from, path))
		fb, err4 := os.Stat(filepath.Join(to, path))
		if err := errors.Join(err1, err2, err3, err4); err != nil || !bytes.Equal(a, b) ||
			!fa.ModTime().Equal(fb.ModTime()) || fa.Mode() != fb.Mode() {
			t.Errorf("%s differs, %v", path, err)
		}
	}
	for _, path := range []string{"keys", "host-id", "unclean", "backups"} {
		if _, err := os.Lstat(filepath.Join(to, path)); !os.IsNotExist(err) {
			t.Errorf("%s was restored", path)
		}
	}
	// With the owner's copy of the key the secrets open again.
	if err := os.CopyFS(filepath.Join(to, "keys"), os.DirFS(filepath.Join(from, "keys"))); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"keys", "keys/vault.age-identity"} {
		if err := os.Chmod(filepath.Join(to, path), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	v, err := vault.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Get("mail", "token")
	if err != nil {
		t.Fatal(err)
	}
	s.Use(func(b []byte) {
		if string(b) != canary {
			t.Errorf("got %q", b)
		}
	})
}

// Scorecard 28: restores are equal by counters; SLUICE_RESTORES sets how many.
func TestRestores(t *testing.T) {
	for i := range times(t, "SLUICE_RESTORES", 8) {
		from := data(t, 1+rand.IntN(300))
		p, done, err := preparePlan(from)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "b.tar")
		_, err = backup.Create(t.Context(), p, backup.Order{Path: file})
		done()
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "data")
		if _, err := restore(t.Context(), file, to, nil, unpackHere); err != nil {
			t.Fatalf("restore %d: %v", i, err)
		}
		again := plan(t, to)
		if d := cmp.Diff(p.Manifest.Streams, again.Manifest.Streams); d != "" {
			t.Fatalf("restore %d: %s", i, d)
		}
		if d := cmp.Diff(p.Manifest.Parts, again.Manifest.Parts,
			cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Modified" }, cmp.Ignore())); d != "" {
			t.Fatalf("restore %d: %s", i, d)
		}
	}
}

// Standard tools read an archive, and its list of digests is right.
func TestStandardTar(t *testing.T) {
	r := tar.NewReader(bytes.NewReader(archive(t, plan(t, data(t, 50)))))
	files := map[string][]byte{}
	var order []string
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || h.Mode != 0o600 || h.ModTime.Year() < 2020 {
			t.Errorf("entry %+v", h)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		order = append(order, h.Name)
	}
	if order[0] != "manifest.json" || order[len(order)-1] != "SHA256SUMS" || len(order) != 6 {
		t.Errorf("order: %v", order)
	}
	lines := 0
	for line := range strings.Lines(string(files["SHA256SUMS"])) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if digest(files[name]) != sum {
			t.Errorf("%s: wrong digest", name)
		}
		lines++
	}
	if lines != 5 {
		t.Errorf("%d lines", lines)
	}
}

// A header of more than 8 GiB is one that tar reads.
func TestLargeHeader(t *testing.T) {
	at := plan(t, data(t, 1)).Manifest.Created
	const size = 3 << 40
	h, err := tar.NewReader(io.MultiReader(bytes.NewReader(backup.Header("vault/"+strings.Repeat("c", 64)+"/"+
		strings.Repeat("n", 64)+".age", size, at)), zeros{})).Next()
	if err != nil || h.Size != size || len(h.Name) != 139 || !h.ModTime.Equal(at) {
		t.Errorf("%+v, %v", h, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// encodings are the forms a secret could be hidden in.
func encodings(secret string) (out [][]byte) {
	out = append(out, []byte(secret), []byte(hex.EncodeToString([]byte(secret))),
		[]byte(strings.ToUpper(hex.EncodeToString([]byte(secret)))))
	for shift := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + secret))
		out = append(out, []byte(text[(shift*8+5)/6:len(text)-1]))
	}
	return out
}

// No secret, and nothing that opens one, is in a backup; and nothing at all is legible in an
// encrypted one.
func TestNoSecrets(t *testing.T) {
	dir := data(t, 200)
	p := plan(t, dir)
	plain := archive(t, p)
	closed, _ := sealed(t, p)
	key, err := os.ReadFile(filepath.Join(dir, "keys", "vault.age-identity"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(key))
	for _, secret := range []string{canary, lines[len(lines)-1]} {
		for _, form := range encodings(secret) {
			if bytes.Contains(plain, form) || bytes.Contains(closed, form) {
				t.Errorf("%q is in a backup", form)
			}
		}
	}
	if !bytes.Contains(plain, []byte(`{"stream":"messages"`)) {
		t.Error("the search finds nothing")
	}
	for _, word := range []string{`"stream"`, "messages", "mail", "manifest.json", "ustar"} {
		if bytes.Contains(closed, []byte(word)) {
			t.Errorf("%q is legible", word)
		}
	}
}

// Recipients that resist quantum computers get a drill as well.
func TestHybridRecipients(t *testing.T) {
	id, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	old, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	p := plan(t, data(t, 5))
	file := filepath.Join(t.TempDir(), "b.age")
	order := backup.Order{Path: file, To: backup.Recipients{id.Recipient()}, Drill: drill(t)}
	if _, err := backup.Create(t.Context(), p, order); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "data")
	if _, err := restore(t.Context(), file, to, backup.Identities{id}, unpackHere); err != nil {
		t.Fatal(err)
	}
	order.Path, order.To = file+"2", append(order.To, old.Recipient())
	if _, err := backup.Create(t.Context(), p, order); !errors.Is(err, backup.ErrRecipient) {
		t.Errorf("mixed recipients: %v", err)
	}
}

// A list says which backups were verified, and which are gone.
func TestList(t *testing.T) {
	dir := t.TempDir()
	if all, err := backup.List(dir); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if err := os.Mkdir(backup.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := backup.Note(dir, backup.Entry{File: filepath.Join(dir, fmt.Sprint(i)), Verified: i == 1}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := backup.List(dir)
	if err != nil || len(all) != 3 || !all[1].Verified || all[2].Verified || !all[2].Gone() {
		t.Errorf("%v, %v", all, err)
	}
	if err := os.WriteFile(filepath.Join(backup.Dir(dir), "list.jsonl"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.List(dir); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("damaged list: %v", err)
	}
}
