package view

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
)

// A digest stands for a secret: the secret itself is kept nowhere (B210).
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

// newViewID is a name that nobody guesses, though it opens nothing.
func newViewID() string { return "vw_" + random(16) }

// token is the one-time secret of a view. It is made of the view's id, so that a
// replay gets the same one and the process need not keep it.
func (v *Views) token(viewID string) string {
	mac := hmac.New(sha256.New, v.key[:])
	mac.Write([]byte("sluice live view token\x00" + viewID))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// newResume is the secret with which a dropped connection comes back.
func newResume() string { return random(32) }

func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
