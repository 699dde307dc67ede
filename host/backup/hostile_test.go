//go:build unix

package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/store"
)

// Every single-bit flip and every cut is refused, encrypted or not. SLUICE_FLIPS makes it all
// bytes, not every eleventh.
func TestEveryFlipAndCut(t *testing.T) {
	p := plan(t, data(t, 4))
	plain := archive(t, p)
	closed, id := sealed(t, p)
	scanSealed := func(b []byte) error {
		r, err := backup.Decrypt(bytes.NewReader(b), id)
		if err == nil {
			_, err = backup.Scan(r)
		}
		return err
	}
	for name, c := range map[string]struct {
		b    []byte
		scan func([]byte) error
	}{
		"plain":     {plain, func(b []byte) error { _, err := backup.Scan(bytes.NewReader(b)); return err }},
		"encrypted": {closed, scanSealed},
	} {
		if err := c.scan(c.b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		refused := func(err error) bool { return errors.Is(err, backup.ErrRefused) || errors.Is(err, backup.ErrKey) }
		step := 11
		if os.Getenv("SLUICE_FLIPS") != "" {
			step = 1
		}
		for i := rand.IntN(step); i < len(c.b); i += step {
			bit := byte(1) << rand.IntN(8)
			c.b[i] ^= bit
			if err := c.scan(c.b); !refused(err) {
				t.Fatalf("%s: a flip of %d in byte %d: %v", name, bit, i, err)
			}
			c.b[i] ^= bit
			if err := c.scan(c.b[:i]); !refused(err) {
				t.Fatalf("%s: cut at byte %d: %v", name, i, err)
			}
		}
		if err := c.scan(append(c.b[:len(c.b):len(c.b)], 0)); !refused(err) {
			t.Errorf("%s: more after the end: %v", name, err)
		}
		t.Logf("%s: flips and cuts over %d bytes", name, len(c.b))
	}
}

// The same through a restore: nothing is left, and the part is named.
func TestRefusedRestore(t *testing.T) {
	p := plan(t, data(t, 100))
	plain := archive(t, p)
	closed, id := sealed(t, p)
	for range times(t, "SLUICE_FLIPS", 25) {
		for _, b := range [][]byte{bytes.Clone(plain), bytes.Clone(closed)} {
			if at := rand.IntN(len(b)); rand.IntN(4) == 0 {
				b = b[:at]
			} else {
				b[at] ^= 1 << rand.IntN(8)
			}
			restoreRefused(t, b, backup.Identities{id}, "")
		}
	}
	at := bytes.Index(plain, []byte(`{"stream":"messages"`))
	altered := bytes.Clone(plain)
	altered[at+2] ^= 1
	restoreRefused(t, altered, nil, "store.image does not match its digest")
	restoreRefused(t, plain[:at], nil, "cut in store.image")
}

func restoreRefused(t *testing.T, b []byte, ids backup.Identities, want string) {
	t.Helper()
	dir := t.TempDir()
	file, to := filepath.Join(dir, "b"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := restore(t.Context(), file, to, ids, unpackHere)
	if !errors.Is(err, backup.ErrRefused) && !errors.Is(err, backup.ErrKey) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left %v, %v", names, err)
	}
}

// swapping is a store that keeps something else than it is given.
type swapping struct {
	backup.Store
	image []byte
}

func (s swapping) Load(ctx context.Context, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return errors.Join(err, s.Store.Load(ctx, bytes.NewReader(s.image)))
}

// What the counters do not count is compared as well.
func TestDrillComparesAll(t *testing.T) {
	dir := data(t, 20)
	p, done, err := preparePlan(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := archive(t, p)
	done()
	s, err := opener.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.DeleteConnector(t.Context(), "https://example.org/mail", false); err != nil {
		t.Fatal(err)
	}
	i, err := s.Image(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	var less bytes.Buffer
	if err := i.(store.Copier).Copy(t.Context(), &less); err != nil {
		t.Fatal(err)
	}
	o := opener
	o.Open = func(dir string) (backup.Store, error) {
		s, err := opener.Open(dir)
		return swapping{s, less.Bytes()}, err
	}
	if _, _, err := backup.Unpack(t.Context(), bytes.NewReader(b), t.TempDir(), o); err == nil ||
		!strings.Contains(err.Error(), "not the one in the backup") {
		t.Errorf("got %v", err)
	}
}

// A process that ends while it unpacks has refused.
func TestUnpackerEnds(t *testing.T) {
	if _, _, err := backup.Judge(nil, []byte("panic: boom"), errors.New("exit status 2")); !errors.Is(err,
		backup.ErrRefused) || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
	b := archive(t, plan(t, data(t, 10)))
	b[len(b)/2] ^= 1
	_, _, err := backup.UnpackApart(t.Context(), bytes.NewReader(b), t.TempDir(), nil)
	if !errors.Is(err, backup.ErrRefused) || !strings.Contains(err.Error(), "digest") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := backup.UnpackApart(ctx, bytes.NewReader(b), t.TempDir(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The identity must be one of the backup's; a restore takes an empty directory
// only.
func TestWhereAndWho(t *testing.T) {
	closed, id := sealed(t, plan(t, data(t, 5)))
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, to := filepath.Join(dir, "b.age"), filepath.Join(dir, "data")
	if err := os.WriteFile(file, closed, 0o600); err != nil {
		t.Fatal(err)
	}
	restore := func(to string, ids ...age.Identity) error {
		_, err := restore(t.Context(), file, to, ids, unpackHere)
		return err
	}
	if err := restore(to); !errors.Is(err, backup.ErrEncrypted) || !strings.Contains(err.Error(), "--identity") {
		t.Errorf("no identity: %v", err)
	}
	if err := restore(to, other); !errors.Is(err, backup.ErrKey) {
		t.Errorf("another's identity: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(to, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := restore(to, id); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("not empty: %v", err)
	}
	if err := os.Remove(filepath.Join(to, "x")); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(to+".restoring", "theirs")
	if err := os.MkdirAll(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := restore(to, id); err == nil ||
		!strings.Contains(err.Error(), "it is not of a restore: "+to+".restoring is not empty; move it away") {
		t.Errorf("somebody's directory: %v", err)
	}
	if err := errors.Join(os.RemoveAll(to+".restoring"), os.Symlink(t.TempDir(), to+".restoring")); err != nil {
		t.Fatal(err)
	}
	if err := restore(to, id); err == nil ||
		!strings.Contains(err.Error(), "it is not of a restore: "+to+".restoring is no directory; move it away") {
		t.Errorf("a link: %v", err)
	}
	// an empty one is taken
	if err := errors.Join(os.Remove(to+".restoring"), os.Mkdir(to+".restoring", 0o700)); err != nil {
		t.Fatal(err)
	}
	// A link to an empty directory stays one.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
	if err := restore(link, id); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%v, %v", fi, err)
	}
	if names, err := os.ReadDir(to); err != nil || len(names) < 4 {
		t.Errorf("%v, %v", names, err)
	}
}

// The disk's bounds are asked before anything is written.
func TestNoRoom(t *testing.T) {
	b := archive(t, plan(t, data(t, 5)))
	full := opener
	full.Room = func(_ string, bytes int64) error {
		if bytes < int64(len(b)) {
			t.Errorf("%d bytes were asked for", bytes)
		}
		return store.ErrNoSpace
	}
	dir := t.TempDir()
	if _, _, err := backup.Unpack(t.Context(), bytes.NewReader(b), dir, full); !errors.Is(err, store.ErrNoSpace) ||
		errors.Is(err, backup.ErrRefused) {
		t.Errorf("got %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) > 0 {
		t.Errorf("wrote %v", names)
	}
}

// An age header without end is not read to it.
func TestEndlessHeader(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	endless := &counting{r: io.MultiReader(strings.NewReader("age-encryption.org/v1\n-> "), letters{})}
	if _, err := backup.Decrypt(endless, id); !errors.Is(err, backup.ErrRefused) || endless.n > 4<<20 {
		t.Errorf("%v after %d bytes", err, endless.n)
	}
}

type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type counting struct {
	r io.Reader
	n int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// FuzzArchive: what is read in full says the same when it is written again.
func FuzzArchive(f *testing.F) {
	whole := forged(f, nil, "vault/mail/x.age", "x")
	f.Add(whole)
	f.Add(whole[:2048])
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := backup.Scan(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, backup.ErrRefused) {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		text, err := m.Encode()
		if err != nil || !bytes.Contains(b, text) || !bytes.Contains(b, m.Sums(text)) {
			t.Fatalf("another manifest: %v", err)
		}
	})
}
