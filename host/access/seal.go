package access

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// SealLife is how long an answer with a one-time secret can be repeated in full.
const SealLife = 10 * time.Minute

// A sealer seals answers with one-time secrets. Its keys are only in memory and are forgotten, so
// that neither the store nor this process can open older answers. At most two keys exist: the
// current one and the previous one.
type sealer struct {
	now func() time.Time

	mu   sync.Mutex // guards all below
	keys map[uint64]cipher.AEAD
}

func newSealer(now func() time.Time) *sealer {
	return &sealer{now: now, keys: map[uint64]cipher.AEAD{}}
}

func (s *sealer) epoch() uint64 { return uint64(s.now().UnixNano() / int64(SealLife)) } // #nosec G115 -- after 1970

// key returns the key of an epoch, creating it for the current one.
func (s *sealer) key(epoch uint64) cipher.AEAD {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.epoch()
	for e := range s.keys {
		if e+1 < now {
			delete(s.keys, e)
		}
	}
	if s.keys[epoch] == nil && epoch == now {
		block, _ := aes.NewCipher(random(32)) // the size is valid
		s.keys[epoch], _ = cipher.NewGCM(block)
	}
	return s.keys[epoch]
}

// seal returns epoch, time, nonce and ciphertext.
func (s *sealer) seal(body []byte, id string) []byte {
	head := binary.BigEndian.AppendUint64(nil, s.epoch())
	head = binary.BigEndian.AppendUint64(head, uint64(s.now().UnixNano())) // #nosec G115 -- after 1970
	key := s.key(binary.BigEndian.Uint64(head))
	if key == nil {
		return head // a new epoch has just begun; the secret is not kept
	}
	nonce := random(key.NonceSize())
	return key.Seal(append(head, nonce...), nonce, body, append(head[:16:16], id...))
}

// fresh reports whether what some sealer sealed is not too old to be opened.
func (s *sealer) fresh(sealed []byte) bool {
	if len(sealed) < 16+12 {
		return false
	}
	at := time.Unix(0, int64(binary.BigEndian.Uint64(sealed[8:16]))) // #nosec G115 -- a wrong one is not fresh
	return s.now().Sub(at) < SealLife
}

// open returns what was sealed for an id, unless it is too old.
func (s *sealer) open(sealed []byte, id string) ([]byte, bool) {
	if len(sealed) < 16+12 {
		return nil, false
	}
	head := sealed[:16:16]
	key := s.key(binary.BigEndian.Uint64(head))
	at := time.Unix(0, int64(binary.BigEndian.Uint64(head[8:]))) // #nosec G115 -- our own
	if key == nil || s.now().Sub(at) >= SealLife {
		return nil, false
	}
	body, err := key.Open(nil, sealed[16:28], sealed[28:], append(head, id...))
	return body, err == nil
}

// without returns a JSON object without some members, with secretOmitted.
func without(body []byte, members []string) ([]byte, error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("omit secrets of an answer: %w", err)
	}
	for _, m := range members {
		delete(all, m)
	}
	all["secretOmitted"] = json.RawMessage("true")
	return json.Marshal(all)
}
