package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// A Source is what a backup is made from.
type Source struct {
	Image        store.Image
	Secrets      []vault.File
	Modules      string // directory of the modules, which may be missing
	Version      string
	Installation string
	Now          time.Time
}

// A Plan is an archive to be written. Everything was read once to measure it, and is read again when it is written.
type Plan struct {
	Manifest Manifest
	text     []byte // of the manifest
	parts    []content
}

type content func(io.Writer) error

// Prepare measures a source, which must stay available until the plan is written.
func Prepare(ctx context.Context, s Source) (*Plan, error) {
	p := &Plan{Manifest: Manifest{
		Format: formatVersion, Version: s.Version, Created: s.Now.UTC().Truncate(time.Second), Installation: s.Installation,
		Streams: []store.Counters{}, Parts: []Part{},
	}}
	streams, err := s.Image.Counters(ctx)
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	p.Manifest.Streams = append(p.Manifest.Streams, streams...)
	if err := p.modules(s.Modules); err != nil {
		return nil, err
	}
	name, copied := formOf(s.Image)
	if err := p.add(name, s.Now, func(w io.Writer) error { return copied(ctx, w) }); err != nil {
		return nil, fmt.Errorf("copy store: %w", err)
	}
	slices.SortFunc(s.Secrets, func(a, b vault.File) int { return strings.Compare(secretName(a), secretName(b)) })
	for _, f := range s.Secrets {
		err := p.add(secretName(f), f.Set, func(w io.Writer) error { _, err := w.Write(f.Sealed); return err })
		if err != nil {
			return nil, err
		}
	}
	p.text, err = p.Manifest.encode()
	if err == nil {
		err = p.Manifest.check()
	}
	return p, err
}

// formOf returns the name of the part for an image and the function that writes it.
func formOf(i store.Image) (name string, copied func(context.Context, io.Writer) error) {
	if c, ok := i.(store.Copier); ok {
		return imageName, c.Copy
	}
	return itemsName, func(ctx context.Context, w io.Writer) error { return store.WriteItems(ctx, w, i) }
}

func secretName(f vault.File) string { return "vault/" + f.Connection + "/" + f.Name + ".age" }

// modules adds every installed module and checks its digest.
func (p *Plan) modules(dir string) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("list modules: %w", err)
	}
	for _, f := range files { // sorted by name
		digest, ok := strings.CutSuffix(f.Name(), ".wasm")
		if !ok || len(digest) != 2*sha256.Size {
			continue // left by an interrupted install
		}
		fi, err := f.Info()
		if err != nil {
			return fmt.Errorf("read module: %w", err)
		}
		path := filepath.Join(dir, f.Name())
		if err := p.add("modules/"+f.Name(), fi.ModTime(), func(w io.Writer) error { return copyFile(w, path) }); err != nil {
			return fmt.Errorf("read module: %w", err)
		}
		if last := p.Manifest.Parts[len(p.Manifest.Parts)-1]; last.SHA256 != digest {
			return fmt.Errorf("module %s is not what was installed: its digest is %s; install it again, or remove the file",
				path, last.SHA256)
		}
	}
	return nil
}

func copyFile(w io.Writer, path string) error {
	before, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !before.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file; move it away", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		return errors.Join(err, fmt.Errorf("%s was replaced while it was opened", path))
	}
	_, err = io.Copy(w, f)
	return err
}

// add measures and adds a part.
func (p *Plan) add(name string, at time.Time, c content) error {
	m := newMeter(io.Discard)
	if err := c(m); err != nil {
		return err
	}
	part := Part{Name: name, Size: m.n, SHA256: m.digest(), Modified: at.UTC()}
	if !datable(part.Modified) {
		part.Modified = p.Manifest.Created // the clock was wrong
	}
	p.Manifest.Parts = append(p.Manifest.Parts, part)
	p.parts = append(p.parts, c)
	return nil
}

// Digest returns the digest of the manifest, which covers everything in the archive.
func (p *Plan) Digest() string { return hexOf(p.text) }

// Size returns the number of bytes that Write writes.
func (p *Plan) Size() int64 {
	n := int64(0)
	sums := int64(len(p.Manifest.sums(p.Digest())))
	for _, size := range append([]int64{int64(len(p.text)), sums}, p.sizes()...) {
		n += block + size + int64(len(padding(size)))
	}
	return n + 2*block
}

func (p *Plan) sizes() (out []int64) {
	for _, part := range p.Manifest.Parts {
		out = append(out, part.Size)
	}
	return out
}

// Write writes the archive. It calls between before every part but the manifest, and stops if that returns an error.
func (p *Plan) Write(w io.Writer, between func() error) error {
	m := p.Manifest
	if err := p.put(w, manifestName, p.text, m.Created); err != nil {
		return err
	}
	for i, part := range m.Parts {
		if err := between(); err != nil {
			return err
		}
		if _, err := w.Write(header(part.Name, part.Size, part.Modified)); err != nil {
			return err
		}
		body := newMeter(w)
		if err := p.parts[i](body); err != nil {
			return fmt.Errorf("write %s: %w", part.Name, err)
		}
		if body.n != part.Size || body.digest() != part.SHA256 {
			return fmt.Errorf("%s changed while the backup was made; make another", part.Name)
		}
		if _, err := w.Write(padding(part.Size)); err != nil {
			return err
		}
	}
	if err := p.put(w, sumsName, m.sums(p.Digest()), m.Created); err != nil {
		return err
	}
	_, err := w.Write(trailer())
	return err
}

func (p *Plan) put(w io.Writer, name string, text []byte, at time.Time) error {
	for _, b := range [][]byte{header(name, int64(len(text)), at), text, padding(int64(len(text)))} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// A meter counts and digests what is written through it.
type meter struct {
	w io.Writer
	n int64
	h hash.Hash
}

func newMeter(w io.Writer) *meter { return &meter{w: w, h: sha256.New()} }

func (m *meter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.h.Write(p[:n])
	m.n += int64(n)
	return n, err
}

func (m *meter) digest() string { return hex.EncodeToString(m.h.Sum(nil)) }
