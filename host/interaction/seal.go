package interaction

import (
	"crypto/ecdh"
	"crypto/hpke"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicehost/sluice/host/run"
)

// The HPKE suite. A box is 48 bytes longer than its content.
var (
	kem  = hpke.DHKEM(ecdh.X25519())
	kdf  = hpke.HKDFSHA256()
	aead = hpke.ChaCha20Poly1305()
)

// purpose separates these boxes from all other uses of HPKE.
const purpose = "sluice interaction answer v1"

// A key opens the answer to one question. Only the asking call has it.
type key struct {
	private [32]byte
	public  []byte
}

// newKey creates a key. Any 32 bytes are a private X25519 key, so the bytes are kept instead of a
// key object, which could not be erased.
func newKey() (*key, error) {
	k := &key{}
	rand.Read(k.private[:])
	p, err := kem.NewPrivateKey(k.private[:])
	if err != nil {
		return nil, fmt.Errorf("make key of a question: %w", err)
	}
	k.public = p.PublicKey().Bytes()
	return k, nil
}

func (k *key) erase() { clear(k.private[:]) }

// open returns the content of a box that was sealed for q.
func (k *key) open(box []byte, q run.Question) ([]byte, error) {
	p, err := kem.NewPrivateKey(k.private[:])
	if err != nil {
		return nil, fmt.Errorf("open answer: %w", err)
	}
	plain, err := hpke.Open(p, kdf, aead, bindingInfo(q), box)
	if err != nil {
		return nil, fmt.Errorf("open answer: %w", err)
	}
	return plain, nil
}

// seal seals an answer to q, and zeroes plain.
func seal(public, plain []byte, q run.Question) ([]byte, error) {
	defer clear(plain)
	p, err := kem.NewPublicKey(public)
	if err != nil {
		return nil, fmt.Errorf("seal answer: %w", err)
	}
	box, err := hpke.Seal(p, kdf, aead, bindingInfo(q), plain)
	if err != nil {
		return nil, fmt.Errorf("seal answer: %w", err)
	}
	return box, nil
}

// bindingInfo binds a box to its question: purpose, run, connection and interaction, each with its length,
// so that no two questions have the same info.
func bindingInfo(q run.Question) []byte {
	var b []byte
	for _, part := range []string{purpose, q.RunID, q.ConnectionID, q.InteractionID} {
		b = binary.BigEndian.AppendUint32(b, uint32(len(part)))
		b = append(b, part...)
	}
	return b
}

// pack writes data into one piece of memory, which is all there is to erase.
//
//	name_len u32  name  value_len u32  value        for each field, by name
func pack(data map[string]json.RawMessage) []byte {
	size := 0
	for name, value := range data {
		size += 8 + len(name) + len(value)
	}
	b := make([]byte, 0, size)
	for _, name := range slices.Sorted(maps.Keys(data)) {
		b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
		b = append(b, name...)
		b = binary.BigEndian.AppendUint32(b, uint32(len(data[name])))
		b = append(b, data[name]...)
	}
	return b
}

var errPacked = errors.New("answer is cut short")

// unpack parses the output of pack. The values are parts of b, which the run then owns.
func unpack(b []byte) (map[string]json.RawMessage, error) {
	if len(b) == 0 {
		return nil, nil
	}
	data := map[string]json.RawMessage{}
	for len(b) > 0 {
		name, rest, ok := nextPart(b)
		if !ok {
			return nil, errPacked
		}
		value, rest, ok := nextPart(rest)
		if !ok {
			return nil, errPacked
		}
		data[string(name)], b = value, rest
	}
	return data, nil
}

func nextPart(b []byte) (p, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	n, b := binary.BigEndian.Uint32(b), b[4:]
	if uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}
