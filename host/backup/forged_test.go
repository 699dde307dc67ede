//go:build unix

package backup_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/backup"
	"github.com/sluicehost/sluice/store"
)

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
		m.Parts = append(m.Parts,
			backup.Part{Name: name, Size: int64(len(bodies[name])), SHA256: digest(bodies[name]), Modified: at})
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
		"vault/../../x.age", "../x", "/etc/passwd", "keys/vault.age-identity", "host-id", "db/MANIFEST", "lock",
		"vault/mail/...age", "vault/mail/../x.age", "vault/mail/a/b.age", `vault/mail/..\x.age`, "vault/mail/x\x00.age",
		"vault/mail/x.txt", "vault/MAIL/x.age", "vault//x.age", "vault/x.age", "vault", "", "manifest.json", "SHA256SUMS",
		"store.image/x", "modules/x.wasm", "modules/" + digest([]byte("x")), "modules/" + strings.Repeat("0", 64) + ".wasm",
		"modules/../" + digest([]byte("x")) + ".wasm",
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
		"spaced manifest": forgedText(t, nil,
			func(b []byte) []byte { return bytes.Replace(b, []byte(": "), []byte(":\t"), 1) }),
		"said twice": forgedText(t, nil,
			func(b []byte) []byte { return bytes.Replace(b, []byte("{"), []byte(`{"format": 1,`), 1) }),
		"said in capitals": forgedText(t, nil,
			func(b []byte) []byte { return bytes.Replace(b, []byte("format"), []byte("Format"), 1) }),
		"said more": forgedText(t, nil,
			func(b []byte) []byte { return bytes.Replace(b, []byte("{"), []byte(`{"run": "sh",`), 1) }),
		"two manifests": forgedText(t, nil, func(b []byte) []byte { return append(b, b...) }),
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
	if _, err := restore(t.Context(), file, dir, nil, unpackHere); err != nil {
		t.Errorf("the forger's tools do not work: %v", err)
	}
}
