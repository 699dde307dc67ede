package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

const (
	secretPrefix = "whsec_"
	secretBytes  = 32 // of a generated key
	minSecret    = 8  // bytes of a given key
	maxSecret    = 512
)

// newSecret returns a new secret in the format of Standard Webhooks.
func newSecret() string {
	b := make([]byte, secretBytes)
	_, _ = rand.Read(b) // never fails
	return secretPrefix + base64.StdEncoding.EncodeToString(b)
}

// keyOf returns the signing key of a secret: the decoded part of a whsec_ secret, or the bytes of any other.
func keyOf(secret string) ([]byte, error) {
	if len(secret) > maxSecret {
		return nil, refuse("secret", "is longer than %d bytes", maxSecret)
	}
	if strings.HasPrefix(secret, rotatedMark) {
		return nil, refuse("secret", "begins as no secret may")
	}
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, refuse("secret", "begins with %s, so the rest must be base64", secretPrefix)
		}
	}
	if len(key) < minSecret {
		return nil, refuse("secret", "is shorter than %d bytes", minSecret)
	}
	return key, nil
}

// sign returns one signature for the webhook-signature header.
func sign(key []byte, id string, at time.Time, body []byte) string {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "."))
	_, _ = m.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// signAll returns the webhook-signature header, with one signature per key.
func signAll(keys [][]byte, id string, at time.Time, body []byte) string {
	all := make([]string, len(keys))
	for i, key := range keys {
		all[i] = sign(key, id, at, body)
	}
	return strings.Join(all, " ")
}

// messageID returns the message id for an event and a webhook. It is the same in every attempt, also after a restart.
func messageID(webhook string, e store.Event) string {
	sum := sha256.Sum256([]byte(webhook + "\x00" + string(e.RunID) + "\x00" + string(e.ID)))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// Secrets stores the signing secrets of webhooks, outside the store. It must be safe for concurrent use.
type Secrets interface {
	Set(id string, secret []byte) error
	Get(id string) ([]byte, error)
	Remove(id string) error // returns nil also if there is none
	IDs() ([]string, error)
}

// hide moves a secret out of the document, where earlier versions stored it. Traces in the store's files disappear with
// their next compaction.
func (h *Hooks) hide(ctx context.Context, s *stored) error {
	if s.Secret == "" {
		return nil
	}
	if err := h.o.Secrets.Set(s.ID, []byte(s.Secret)); err != nil {
		return err
	}
	s.Secret = ""
	return change(ctx, h.o.Store, s.ID, func(s *stored) { s.Secret = "" })
}

// sweepSecrets erases secrets of webhooks that do not exist, which an interrupted Create or Delete has left.
func (h *Hooks) sweepSecrets(all []*stored) error {
	ids, err := h.o.Secrets.IDs()
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, s := range all {
		known[s.ID] = true
	}
	for _, id := range ids {
		if !known[id] {
			if err := h.o.Secrets.Remove(id); err != nil {
				return err
			}
		}
	}
	return nil
}
