package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
)

// A SealedInteraction is how a driver stores an open question: what it says is
// sealed.
type SealedInteraction struct {
	Interaction
	Sealed []byte `json:"sealed,omitempty"`
}

// A Sealer seals the words of open questions, for drivers. Its key is in the memory
// of this process alone, because the run that asks ends with it: a stolen disk has
// no questions that can be read.
type Sealer struct{ aead cipher.AEAD }

// NewSealer makes a key.
func NewSealer() Sealer {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is right
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the cipher's is the block size of AES
	}
	return Sealer{aead}
}

// words are the members of an interaction that are sealed.
type words struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"`
}

// place binds what is sealed to one question.
func (s *SealedInteraction) place() []byte { return []byte(string(s.RunID) + "\x00" + s.ID) }

// Seal seals the words of q.
func (k Sealer) Seal(q Interaction) (*SealedInteraction, error) {
	plain, err := json.Marshal(words{q.Message, q.Schema})
	if err != nil {
		return nil, err
	}
	s := &SealedInteraction{Interaction: q}
	s.Message, s.Schema = "", nil
	s.Sealed = k.aead.Seal(nil, nil, plain, s.place()) // #nosec G407 -- it makes the nonce itself
	return s, nil
}

// OpenAll leaves a question without words that another process sealed. Of none there is nil.
func (k Sealer) OpenAll(all []SealedInteraction) (out []Interaction, err error) {
	for i := range all {
		q, err := k.open(&all[i])
		if err != nil {
			return nil, err
		}
		out = append(out, q)
	}
	return out, nil
}

func (k Sealer) open(s *SealedInteraction) (Interaction, error) {
	if len(s.Sealed) == 0 {
		return s.Interaction, nil
	}
	plain, err := k.aead.Open(nil, nil, s.Sealed, s.place())
	if err != nil {
		return s.Interaction, nil
	}
	var w words
	if err := json.Unmarshal(plain, &w); err != nil {
		return s.Interaction, Corrupt("question %s of run %s: %v", s.ID, s.RunID, err)
	}
	s.Message, s.Schema = w.Message, w.Schema
	return s.Interaction, nil
}
