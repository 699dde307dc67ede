package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/sluicehost/sluice/store"
)

// TokenLife bounds the validity of an interrupt token.
const TokenLife = 30 * time.Minute

// maxToken bounds a token; with the longest ids it has about 600 bytes.
const maxToken = 2048

// An Interrupt is what a signed token stands for.
type Interrupt struct {
	RunID       store.RunID `json:"runId"`
	NodeID      string      `json:"nodeId"`
	InterruptID string      `json:"interruptId"`
	ExpiresAt   time.Time   `json:"expiresAt"`
	Intent      string      `json:"intent"` // always resolve
}

// Tokens signs and verifies interrupt tokens. They are not stored; their security is that of the
// installation's secret.
type Tokens struct {
	now    func() time.Time
	secret []byte
}

func openTokens(ctx context.Context, st store.Documents, now func() time.Time) (*Tokens, error) {
	secret, err := setting(ctx, st, "interrupt-secret", func() []byte { return random(secretBytes) })
	return &Tokens{now: now, secret: secret}, err
}

// Sign signs a token for one interrupt. It expires after TokenLife, or with the interrupt if that
// is sooner; ends is zero if the interrupt has no end.
func (t *Tokens) Sign(run store.RunID, node, interrupt string, ends time.Time) (token string, expires time.Time) {
	expires = t.now().UTC().Add(TokenLife)
	if !ends.IsZero() && ends.Before(expires) {
		expires = ends.UTC()
	}
	expires = expires.Truncate(time.Millisecond)
	// marshalling strings and a time of this century does not fail
	payload, _ := json.Marshal(Interrupt{run, node, interrupt, expires, "resolve"})
	return base64.RawURLEncoding.EncodeToString(payload) + "." + base64.RawURLEncoding.EncodeToString(t.mac(payload)),
		expires
}

// Verify returns what a token stands for. It returns ErrTokenUnknown if the token is malformed or
// not signed with the current secret, and ErrTokenExpired together with the interrupt if it has
// expired. The signature is compared, in constant time, before anything is parsed.
func (t *Tokens) Verify(token string) (Interrupt, error) {
	if len(token) > maxToken {
		return Interrupt{}, ErrTokenUnknown
	}
	body, sum, ok := strings.Cut(token, ".")
	if !ok {
		return Interrupt{}, ErrTokenUnknown
	}
	strict := base64.RawURLEncoding.Strict()
	payload, err1 := strict.DecodeString(body)
	mac, err2 := strict.DecodeString(sum)
	if err1 != nil || err2 != nil || !hmac.Equal(mac, t.mac(payload)) {
		return Interrupt{}, ErrTokenUnknown
	}
	var i Interrupt
	if json.Unmarshal(payload, &i) != nil || i.Intent != "resolve" {
		return Interrupt{}, ErrTokenUnknown
	}
	if !t.now().Before(i.ExpiresAt) {
		return i, ErrTokenExpired
	}
	return i, nil
}

func (t *Tokens) mac(payload []byte) []byte {
	h := hmac.New(sha256.New, t.secret)
	h.Write(payload)
	return h.Sum(nil)
}
