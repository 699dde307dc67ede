package backup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/store"
)

// S136, scorecard 28: every single-bit flip and every cut is refused, encrypted
// or not. SLUICE_FLIPS makes it all bytes, not every eleventh.
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
	_, err := backup.Restore(t.Context(), file, to, ids, unpackHere, nothingMore)
	if !errors.Is(err, backup.ErrRefused) && !errors.Is(err, backup.ErrKey) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left %v, %v", names, err)
	}
}

// forged is an archive of any manifest, with the parts that it should have.
func forged(t testing.TB, change func(*backup.Manifest), parts ...string) []byte {
	t.Helper()
	return forgedText(t, change, func(text []byte) []byte { return text }, parts...)
}

// forgedText also changes how the manifest says it.
func forgedText(t testing.TB, change func(*backup.Manifest), say func([]byte) []byte, parts ...string) []byte {
	t.Helper()
	image := append([]byte("sluice store image\n"), 2, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	image = binary.LittleEndian.AppendUint64(image, 0)
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	bodies := map[string][]byte{"store.image": image}
	m := backup.Manifest{Format: 1, Version: "v", Created: at, Installation: "host_0", Streams: []store.Counters{}}
	for i := 0; i < len(parts); i += 2 {
		bodies[parts[i]] = []byte(parts[i+1])
	}
	names := keys(parts)
	if !slices.Contains(names, "store.image") {
		names = append(names, "store.image")
	}
	slices.Sort(names)
	for _, name := range names {
		m.Parts = append(m.Parts, backup.Part{Name: name, Size: int64(len(bodies[name])), SHA256: digest(bodies[name]), Modified: at})
	}
	if change != nil {
		change(&m)
	}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	text = say(text)
	put := func(b []byte, name string, body []byte) []byte {
		b = append(append(b, backup.Header(name, int64(len(body)), at)...), body...)
		return append(b, backup.Padding(int64(len(body)))...)
	}
	b := put(nil, "manifest.json", text)
	for _, p := range m.Parts {
		b = put(b, p.Name, bodies[p.Name])
	}
	b = put(b, "SHA256SUMS", m.Sums(text))
	return append(b, backup.Trailer()...)
}

func keys(parts []string) (out []string) {
	for i := 0; i < len(parts); i += 2 {
		out = append(out, parts[i])
	}
	return out
}

// A part is one of three kinds, in its place.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"vault/../../x.age", "../x", "/etc/passwd", "keys/vault.age-identity", "host-id", "db/MANIFEST", "lock", "vault/mail/...age",
		"vault/mail/../x.age", "vault/mail/a/b.age", `vault/mail/..\x.age`, "vault/mail/x\x00.age", "vault/mail/x.txt", "vault/MAIL/x.age",
		"vault//x.age", "vault/x.age", "vault", "", "manifest.json", "SHA256SUMS", "store.image/x", "modules/x.wasm", "modules/" + digest([]byte("x")),
		"modules/" + strings.Repeat("0", 64) + ".wasm", "modules/../" + digest([]byte("x")) + ".wasm",
	} {
		restoreRefused(t, forged(t, nil, name, "x"), nil, "lists a part called")
	}
	for _, name := range []string{"vault/mail/x.age", "modules/" + digest([]byte("x")) + ".wasm"} {
		if _, err := backup.Scan(bytes.NewReader(forged(t, nil, name, "x"))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What only somebody who means harm would write is refused before it is
// unpacked; nothing is written anywhere.
func TestHostileArchives(t *testing.T) {
	if b := forged(t, nil); true {
		if _, err := backup.Scan(bytes.NewReader(b)); err != nil {
			t.Fatalf("the forger's tools do not work: %v", err)
		}
	}
	first := func(f func(*backup.Part)) func(*backup.Manifest) {
		return func(m *backup.Manifest) { f(&m.Parts[0]) }
	}
	for name, b := range map[string][]byte{
		"twice":                forged(t, nil, "vault/a/x.age", "x", "vault/a/x.age", "x"),
		"out of order":         forged(t, func(m *backup.Manifest) { slices.Reverse(m.Parts) }, "vault/a/x.age", "x"),
		"large secret":         forged(t, nil, "vault/a/x.age", strings.Repeat("x", 1<<20)),
		"giant":                forged(t, func(m *backup.Manifest) { m.Parts[0].Size = 1 << 50 }),
		"negative":             forged(t, func(m *backup.Manifest) { m.Parts[0].Size = -1 }),
		"larger than it is":    forged(t, func(m *backup.Manifest) { m.Parts[0].Size = 1 << 40 }),
		"no image":             forged(t, func(m *backup.Manifest) { m.Parts = nil }),
		"wrong digest":         forged(t, first(func(p *backup.Part) { p.SHA256 = strings.Repeat("0", 64) })),
		"upper digest":         forged(t, first(func(p *backup.Part) { p.SHA256 = strings.ToUpper(p.SHA256) })),
		"no digest":            forged(t, first(func(p *backup.Part) { p.SHA256 = "" })),
		"newer":                forged(t, func(m *backup.Manifest) { m.Format = 2 }),
		"before there was tar": forged(t, first(func(p *backup.Part) { p.Modified = time.Unix(-1, 0).UTC() })),
		"a bomb of manifest":   append(backup.Header("manifest.json", 1<<40, time.Unix(0, 0)), 'x'),
		"zeros":                make([]byte, 1<<16),
		"nothing":              {},
		"another file":         []byte("PK\x03\x04" + strings.Repeat("x", 1000)),
		"armored":              []byte("-----BEGIN AGE ENCRYPTED FILE-----\n" + strings.Repeat("x", 1000)),
		"link":                 link(forged(t, nil)),
		"spaced manifest":      forgedText(t, nil, func(b []byte) []byte { return bytes.Replace(b, []byte(": "), []byte(":\t"), 1) }),
		"said twice":           forgedText(t, nil, func(b []byte) []byte { return bytes.Replace(b, []byte("{"), []byte(`{"format": 1,`), 1) }),
		"said in capitals":     forgedText(t, nil, func(b []byte) []byte { return bytes.Replace(b, []byte("format"), []byte("Format"), 1) }),
		"said more":            forgedText(t, nil, func(b []byte) []byte { return bytes.Replace(b, []byte("{"), []byte(`{"run": "sh",`), 1) }),
		"two manifests":        forgedText(t, nil, func(b []byte) []byte { return append(b, b...) }),
	} {
		t.Run(name, func(t *testing.T) {
			restoreRefused(t, b, nil, "")
		})
	}
}

// link makes the second header one of a symbolic link.
func link(b []byte) []byte {
	b[headerOf(b, "store.image")+156] = '2'
	return b
}

func headerOf(b []byte, name string) int {
	for at := 0; at < len(b); at += 512 {
		if bytes.HasPrefix(b[at:], []byte(name+"\x00")) {
			return at
		}
	}
	return -1
}

// An image that contradicts its manifest, or itself, is refused though every
// digest is right.
func TestHostileImage(t *testing.T) {
	counters := func(m *backup.Manifest) {
		m.Streams = []store.Counters{{Connection: "mail", Stream: "x", Live: 7, Sum: "00"}}
	}
	restoreRefused(t, forged(t, counters), nil, "stream x of mail is missing")
	p := plan(t, data(t, 20))
	b := archive(t, p)
	at := headerOf(b, "store.image") + 512
	var size int64
	for _, part := range p.Manifest.Parts {
		if part.Name == "store.image" {
			size = part.Size
		}
	}
	whole := b[at:][:size]
	image := func(image []byte, change func(*backup.Manifest)) []byte {
		return forged(t, change, "store.image", string(image))
	}
	restoreRefused(t, image(whole, nil), nil, "is not in manifest.json")
	restoreRefused(t, image(whole, func(m *backup.Manifest) {
		m.Streams = slices.Clone(p.Manifest.Streams)
		m.Streams[0].Live++
	}), nil, "manifest.json says")
	right := func(m *backup.Manifest) { m.Streams = p.Manifest.Streams }
	restoreRefused(t, image(whole[:size/2], right), nil, "image is cut")
	record := bytes.Clone(whole)
	record[bytes.LastIndex(record, []byte(`{"stream":"messages"`))+12] ^= 1 // of a current record
	restoreRefused(t, image(record, right), nil, "segments hold")
	dir := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(file, image(whole, right), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), file, dir, nil, unpackHere, nothingMore); err != nil {
		t.Errorf("the forger's tools do not work: %v", err)
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

// S135: what the counters do not count is compared as well.
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
	if err := i.Copy(t.Context(), &less); err != nil {
		t.Fatal(err)
	}
	o := opener
	o.Open = func(dir string) (backup.Store, error) {
		s, err := opener.Open(dir)
		return swapping{s, less.Bytes()}, err
	}
	if _, _, err := backup.Unpack(t.Context(), bytes.NewReader(b), t.TempDir(), o); err == nil || !strings.Contains(err.Error(), "not the one in the backup") {
		t.Errorf("got %v", err)
	}
}

// A process that ends while it unpacks has refused.
func TestUnpackerEnds(t *testing.T) {
	if _, _, err := backup.Judge(nil, []byte("panic: boom"), errors.New("exit status 2")); !errors.Is(err, backup.ErrRefused) || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
	b := archive(t, plan(t, data(t, 10)))
	b[len(b)/2] ^= 1
	_, _, err := backup.UnpackApart(t.Context(), bytes.NewReader(b), t.TempDir())
	if !errors.Is(err, backup.ErrRefused) || !strings.Contains(err.Error(), "digest") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := backup.UnpackApart(ctx, bytes.NewReader(b), t.TempDir()); !errors.Is(err, context.Canceled) {
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
		_, err := backup.Restore(t.Context(), file, to, ids, unpackHere, nothingMore)
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
	if err := os.Mkdir(to+".restoring", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := restore(to, id); err == nil || !strings.Contains(err.Error(), "another restore") {
		t.Errorf("two at once: %v", err)
	}
	if err := os.Remove(to + ".restoring"); err != nil {
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
	if _, _, err := backup.Unpack(t.Context(), bytes.NewReader(b), dir, full); !errors.Is(err, store.ErrNoSpace) || errors.Is(err, backup.ErrRefused) {
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
