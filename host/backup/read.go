package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// A sink receives the content of an archive, which is not verified before read has returned nil.
type sink interface {
	begin(Manifest) error
	// part reads the content of a part to its end.
	part(Part, io.Reader) error
}

// read reads an untrusted archive to its end. The digest is that of the manifest.
func read(r io.Reader, to sink) (m Manifest, digest string, err error) {
	size, at, err := readFirst(r, manifestName)
	if err != nil {
		return m, "", err
	}
	if size > maxManifest {
		return m, "", refuse("%s has %d bytes, more than %d", manifestName, size, maxManifest)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, r, size); err != nil {
		return m, "", broken(err, manifestName)
	}
	if m, err = readManifest(text.Bytes()); err != nil {
		return m, "", err
	}
	if !at.Equal(m.Created) {
		return m, "", refuse("the header of %s is altered", manifestName)
	}
	if err := expect(r, padding(size), "the end of "+manifestName); err != nil {
		return m, "", err
	}
	if err := to.begin(m); err != nil {
		return m, "", err
	}
	for _, p := range m.Parts {
		if err := readPart(r, p, to); err != nil {
			return m, "", err
		}
	}
	digest = hexOf(text.Bytes())
	sums := m.sums(digest)
	last := append(header(sumsName, int64(len(sums)), m.Created), sums...)
	last = append(append(last, padding(int64(len(sums)))...), trailer()...)
	if err := expect(r, last, sumsName+" or "+manifestName); err != nil {
		return m, "", err
	}
	switch n, err := io.ReadFull(r, make([]byte, 1)); {
	case n > 0:
		return m, "", refuse("it goes on after its end")
	case !errors.Is(err, io.EOF):
		return m, "", broken(err, "the end")
	}
	return m, digest, nil
}

func readPart(r io.Reader, p Part, to sink) error {
	if err := expect(r, header(p.Name, p.Size, p.Modified), "the header of "+p.Name); err != nil {
		return err
	}
	h := sha256.New()
	body := &io.LimitedReader{R: io.TeeReader(r, h), N: p.Size}
	failed := to.part(p, body)
	if _, err := io.Copy(io.Discard, body); err != nil { // damage to the part explains more than failed
		return broken(err, p.Name)
	}
	switch {
	case body.N > 0:
		return broken(io.ErrUnexpectedEOF, p.Name)
	case hex.EncodeToString(h.Sum(nil)) != p.SHA256:
		return refuse("%s does not match its digest", p.Name)
	case failed != nil:
		return fmt.Errorf("unpack %s: %w", p.Name, failed)
	}
	return expect(r, padding(p.Size), "the end of "+p.Name)
}

// broken explains a failed read: the file is truncated or altered, or the disk failed.
func broken(err error, where string) error {
	var disk *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refuse("it is cut in %s", where)
	case errors.As(err, &disk), errors.Is(err, ErrRefused):
		return err
	}
	return refuse("%s: %w", where, err)
}

// sums returns the last file, with the digests of all others.
func (m Manifest) sums(manifest string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", manifest, manifestName)
	for _, p := range m.Parts {
		fmt.Fprintf(&b, "%s  %s\n", p.SHA256, p.Name)
	}
	return []byte(b.String())
}

func hexOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
