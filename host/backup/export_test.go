package backup

import (
	"io"
	"time"

	"filippo.io/age"
)

// Scan reads an archive and keeps nothing.
func Scan(r io.Reader) (Manifest, error) {
	m, _, err := read(r, nothing{})
	return m, err
}

type nothing struct{}

func (nothing) begin(Manifest) error { return nil }
func (nothing) part(_ Part, r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// Decrypt opens an age file.
func Decrypt(r io.Reader, ids ...age.Identity) (io.Reader, error) { return decrypt(r, ids) }

// Header and Encode make what nobody honest would.
var (
	Header  = header
	Padding = padding
	Trailer = trailer
	Judge   = judge
)

// SetLockTime sets how long a restore waits for another one.
func SetLockTime(d time.Duration) { lockTime = d }

func (m Manifest) Encode() ([]byte, error)     { return m.encode() }
func (m Manifest) Sums(manifest []byte) []byte { return m.sums(hexOf(manifest)) }
