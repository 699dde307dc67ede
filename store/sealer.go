package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
)

// A SealedInteraction is the stored form of an open question, with its words sealed.
type SealedInteraction struct {
	Interaction
	Sealed []byte `json:"sealed,omitempty"`
}

// A Sealer encrypts the words of open questions, for drivers. Its key exists only in the
// memory of this process, like the run that asks, so that a stolen disk reveals no
// questions.
type Sealer struct{ aead cipher.AEAD }

// NewSealer returns a Sealer with a new key.
func NewSealer() Sealer {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key length is valid
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // AES has the block size of GCM
	}
	return Sealer{aead}
}

// words are the sealed members of an Interaction.
type words struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"`
}

// place returns the additional data that binds the ciphertext to one question.
func (s *SealedInteraction) place() []byte { return []byte(string(s.RunID) + "\x00" + s.ID) }

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

// OpenAll opens questions. Those that another process sealed are returned without words.
// The result is nil for no questions.
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
