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

// keyBytes is the length of the key for an assistant's cursors.
const keyBytes = 32

func newKey() []byte {
	b := make([]byte, keyBytes)
	_, _ = rand.Read(b) // never fails
	return b
}

// cursor returns a position in a stream for an assistant. A position counts all changes, including those of records
// that the assistant may not see. So it is encrypted, with a different result each time, and reveals nothing, not even
// whether it has changed.
func (s *endpoint) cursor(q store.RecordQuery, after uint64) string {
	c := s.sealer()
	nonce := make([]byte, c.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(c.Seal(nonce, nonce,
		binary.BigEndian.AppendUint64(nil, after), purpose(q)))
}

// openCursor returns the position in a cursor that this assistant got for the same list.
func (s *endpoint) openCursor(q store.RecordQuery, text string) (after uint64, ok bool) {
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

func (s *endpoint) sealer() cipher.AEAD {
	block, err := aes.NewCipher(s.def.Key)
	if err != nil {
		panic(err) // impossible: newEndpoint ensures the length
	}
	c, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return c
}

// purpose returns the additional data that ties a cursor to a list.
func purpose(q store.RecordQuery) []byte {
	return fmt.Appendf(nil, "%q %q %t", q.Connection, q.Stream, q.Descending)
}
