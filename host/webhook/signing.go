package webhook

import (
	"bytes"
	"encoding/json"
	"time"
)

const (
	// Overlap is how long deliveries are also signed with a replaced secret.
	Overlap = 24 * time.Hour
	// maxReplaced bounds the secrets replaced within one Overlap.
	maxReplaced = 4
	// rotatedMark begins the stored form of secrets after a rotation. No secret may begin with it.
	rotatedMark = "\x00rotated\x00"
)

// A signing holds the secrets of a webhook as stored in Secrets. Before the first rotation the stored form is just the
// secret.
type signing struct {
	Current  []byte     `json:"current"`
	Replaced []replaced `json:"replaced"` // newest first
	// Rotations counts the rotations. If it is one more than in the webhook's document, the last rotation was
	// interrupted and nobody has seen its secret.
	Rotations int `json:"rotations"`
}

type replaced struct {
	Secret []byte    `json:"secret"`
	Until  time.Time `json:"until"`
}

func decodeSigning(kept []byte, rotations int) (signing, error) {
	text, ok := bytes.CutPrefix(kept, []byte(rotatedMark))
	if !ok {
		return signing{Current: kept}, nil
	}
	var s signing
	if err := json.Unmarshal(text, &s); err != nil {
		return s, err
	}
	if s.Rotations > rotations && len(s.Replaced) > 0 {
		s.Current, s.Replaced, s.Rotations = s.Replaced[0].Secret, s.Replaced[1:], rotations
	}
	return s, nil
}

func (s signing) encode() []byte {
	if s.Rotations == 0 {
		return s.Current
	}
	b, _ := json.Marshal(s) // bytes, numbers and times always encode
	return append([]byte(rotatedMark), b...)
}

// rotated returns s with a new secret and without expired ones. It returns false if too many are in use.
func (s signing) rotated(secret []byte, now time.Time) (signing, bool) {
	out := signing{Current: secret, Replaced: []replaced{{s.Current, now.Add(Overlap)}}, Rotations: s.Rotations + 1}
	for _, r := range s.Replaced {
		if now.Before(r.Until) {
			out.Replaced = append(out.Replaced, r)
		}
	}
	return out, len(out.Replaced) <= maxReplaced
}

// keys returns a function that returns the keys for a delivery at a given time, the current one first.
func (s signing) keys() (func(at time.Time) [][]byte, error) {
	key, err := keyOf(string(s.Current))
	if err != nil {
		return nil, err
	}
	olds := make([][]byte, len(s.Replaced))
	for i, r := range s.Replaced {
		if olds[i], err = keyOf(string(r.Secret)); err != nil {
			return nil, err
		}
	}
	return func(at time.Time) [][]byte {
		out := [][]byte{key}
		for i, r := range s.Replaced {
			if at.Before(r.Until) {
				out = append(out, olds[i])
			}
		}
		return out
	}, nil
}

// until returns when the last replaced secret expires, or zero if none is in use at now.
func (s signing) until(now time.Time) time.Time {
	if len(s.Replaced) == 0 || !now.Before(s.Replaced[0].Until) {
		return time.Time{}
	}
	return s.Replaced[0].Until
}
