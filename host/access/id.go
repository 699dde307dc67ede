package access

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// NewID returns a prefix and a ULID: 48 bits of time in milliseconds and 80
// random ones, so that ids sort by age.
func NewID(prefix string, at time.Time) string {
	// A ULID is 128 bits behind two zero bits; base32 counts from the front, so
	// that four zero bytes and six bits before it keep the groups of five in step.
	var b [20]byte
	binary.BigEndian.PutUint64(b[2:], uint64(at.UnixMilli())) // #nosec G115 -- after 1970
	_, _ = rand.Read(b[10:])                                  // never fails
	return prefix + crockford.EncodeToString(b[:])[6:]
}

// random returns n random bytes.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
