package assistant

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/sluicehost/sluice/store"
)

// keyBytes are those of the key that an assistant's cursors are sealed with.
const keyBytes = 32

func newKey() []byte {
	b := make([]byte, keyBytes)
	_, _ = rand.Read(b) // never fails
	return b
}

// cursor is a place in a stream as an assistant gets it. A place is a number of all changes,
// also of records that the assistant may not see, so it is sealed, and is another text each
// time: it tells nothing, nor whether it is the one from before.
func (s *seat) cursor(q store.RecordQuery, after uint64) string {
	c := s.sealer()
	nonce := make([]byte, c.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(c.Seal(nonce, nonce, binary.BigEndian.AppendUint64(nil, after), purpose(q)))
}

// openCursor is the place that a cursor of this assistant names, for the same list.
func (s *seat) openCursor(q store.RecordQuery, text string) (after uint64, ok bool) {
	c := s.sealer()
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) < c.NonceSize() {
		return 0, false
	}
	place, err := c.Open(nil, b[:c.NonceSize()], b[c.NonceSize():], purpose(q))
	if err != nil || len(place) != 8 {
		return 0, false
	}
	return binary.BigEndian.Uint64(place), true
}

func (s *seat) sealer() cipher.AEAD {
	block, err := aes.NewCipher(s.def.Key)
	if err != nil {
		panic(err) // the length is right: newSeat
	}
	c, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return c
}

// purpose is what a cursor is for.
func purpose(q store.RecordQuery) []byte {
	return fmt.Appendf(nil, "%q %q %t", q.Connection, q.Stream, q.Descending)
}
