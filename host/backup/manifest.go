package backup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/vault"
	"github.com/sluicehost/sluice/store"
)

// ErrRefused reports that a file is not a backup, or was altered. Errors that wrap it name the part.
var ErrRefused = errors.New("backup refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrRefused, fmt.Errorf(format, args...))
}

// formatVersion is the version of the archive format.
const formatVersion = 1

// Names and maximum sizes of what an archive contains.
const (
	manifestName = "manifest.json"
	imageName    = "store.image" // in the driver's own format
	itemsName    = "store.items" // for a driver that has none; an archive has one of the two
	sumsName     = "SHA256SUMS"

	maxManifest = 32 * abi.MiB
	maxParts    = 100_000
	maxImage    = 1 << 42
	maxModule   = 64 * abi.MiB
	maxSecret   = vault.MaxValue + 4*abi.KiB
)

// A Manifest describes the content of an archive. It has exactly one valid encoding.
type Manifest struct {
	Format       int              `json:"format"`
	Version      string           `json:"sluice_version"`
	Created      time.Time        `json:"created"`
	Installation string           `json:"installation_id"` // where it was made
	Streams      []store.Counters `json:"streams"`
	Parts        []Part           `json:"parts"` // sorted by name, which is also the name in the archive
}

// A Part is a file in an archive. A module is named after its digest.
type Part struct {
	Name     string    `json:"name"`
	Size     int64     `json:"size"`
	SHA256   string    `json:"sha256"`
	Modified time.Time `json:"modified"`
}

func (m Manifest) encode() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", " ")
	if err == nil && len(text) >= maxManifest {
		err = fmt.Errorf("the manifest has %d bytes, more than %d", len(text), maxManifest)
	}
	return append(text, '\n'), err
}

// readManifest only accepts what encode writes, so that every manifest has only one encoding.
func readManifest(text []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		var f struct{ Format int }
		if json.Unmarshal(text, &f) == nil && f.Format > formatVersion {
			m.Format = f.Format
			return m, m.check()
		}
		return m, refuse("%s: %w", manifestName, err)
	}
	if err := m.check(); err != nil {
		return m, err
	}
	again, err := m.encode()
	if err != nil || !bytes.Equal(text, again) {
		return m, refuse("%s is not as it was written", manifestName)
	}
	return m, nil
}

func (m Manifest) check() error {
	if m.Format != formatVersion {
		return refuse("%s has format %d; this program reads format %d; use the version of Sluice that wrote it", manifestName,
			m.Format, formatVersion)
	}
	if len(m.Parts) > maxParts {
		return refuse("%s lists %d parts, more than %d", manifestName, len(m.Parts), maxParts)
	}
	if !datable(m.Created) {
		return refuse("%s was made at a time that cannot be, %s", manifestName, m.Created)
	}
	images, last := 0, ""
	for _, p := range m.Parts {
		if err := p.check(); err != nil {
			return err
		}
		if p.Name <= last {
			return refuse("%s lists %s twice or out of order", manifestName, p.Name)
		}
		if last = p.Name; isImage(p.Name) {
			images++
		}
	}
	if images != 1 {
		return refuse("%s lists %d stores; want one, %s or %s", manifestName, images, imageName, itemsName)
	}
	return nil
}

func isImage(name string) bool { return name == imageName || name == itemsName }

// check only accepts names of files that belong in an archive.
func (p Part) check() error {
	most, ok := int64(0), false
	dir, rest, _ := strings.Cut(p.Name, "/")
	switch dir {
	case imageName, itemsName:
		most, ok = maxImage, rest == ""
	case "modules":
		most, ok = maxModule, rest == p.SHA256+".wasm"
	case "vault":
		connection, file, _ := strings.Cut(rest, "/")
		name, age := strings.CutSuffix(file, ".age")
		most, ok = maxSecret, age && vault.CheckNames(connection, name) == nil
	}
	if !ok || len(p.Name) > 200 {
		return refuse("%s lists a part called %q", manifestName, abi.Cut(abi.Clean(p.Name), 100))
	}
	if p.Size < 0 || p.Size > most {
		return refuse("%s says that %s has %d bytes; at most %d are possible", manifestName, p.Name, p.Size, most)
	}
	if b, err := hex.DecodeString(p.SHA256); err != nil || len(b) != 32 || strings.ToLower(p.SHA256) != p.SHA256 {
		return refuse("%s has no digest of %s", manifestName, p.Name)
	}
	if !datable(p.Modified) {
		return refuse("%s dates %s at a time that cannot be", manifestName, p.Name)
	}
	return nil
}

// datable reports whether a tar header can represent the time.
func datable(t time.Time) bool { return t.Unix() >= 0 && t.Unix() < 1<<33 && t.Location() == time.UTC }

// A Summary has the numbers in a manifest.
type Summary struct {
	Created      time.Time `json:"created"`
	Installation string    `json:"installation_id"`
	Version      string    `json:"sluice_version"`
	Records      uint64    `json:"records"`
	Streams      int       `json:"streams"`
	Modules      int       `json:"modules"`
	Secrets      int       `json:"secrets"`
}

// Summary summarizes the manifest.
func (m Manifest) Summary() Summary {
	s := Summary{Created: m.Created, Installation: m.Installation, Version: m.Version, Streams: len(m.Streams)}
	for _, c := range m.Streams {
		s.Records += c.Live
	}
	for _, p := range m.Parts {
		switch {
		case strings.HasPrefix(p.Name, "modules/"):
			s.Modules++
		case strings.HasPrefix(p.Name, "vault/"):
			s.Secrets++
		}
	}
	return s
}

// bytes returns the total size of the unpacked parts.
func (m Manifest) bytes() (n int64) {
	for _, p := range m.Parts {
		n += p.Size
	}
	return n
}
