// Package access knows who asks, and how often they may: API keys, owner
// sessions, login tokens, signed interrupt tokens, token buckets, and the
// answers that idempotent requests get again. See docs/spec/api.md, "Access control".
//
// Everything that lasts is a document of the store. Of a credential only a
// digest is kept, so that whoever reads the store can use none. Nothing here
// knows HTTP; host/web reads headers and writes answers.
//
// What a caller presents is hostile: it is bounded before it is looked at, looked
// up by a digest or an id, compared in constant time, and never repeated in an
// error.
package access

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/sluicehost/sluice/store"
)

// An Access is the access control of one installation. It is safe for concurrent use.
type Access struct {
	Keys     *Keys
	Sessions *Sessions
	Tokens   *Tokens
	Replies  *Replies

	// The rate limits. A name is a key id, an address, or a digest of a token.
	PerKey     *Limiter
	PerAddress *Limiter
	Logins     *Limiter // POST /ui/session, by address
	TokenPosts *Limiter // POST /v1/interrupts/{token}, by TokenName

	secret []byte
	rates  Rates
}

// Rates returns the rates in force.
func (a *Access) Rates() Rates { return a.rates }

// Options configure Open.
type Options struct {
	Store store.Documents
	Now   func() time.Time // nil: time.Now
	Rates Rates            // zero members use the defaults
}

// Rates are rate limits, with the defaults beside them.
type Rates struct {
	KeyPerSecond, KeyBurst         int // 50, 200
	AddressPerSecond, AddressBurst int // 50, 200
	LoginsPerMinute                int // 5, by address
	TokenPostsPerMinute            int // 10, by token
}

// Open reads the secrets of the installation, creating them the first time.
func Open(ctx context.Context, o Options) (*Access, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := o.Rates
	for _, d := range []struct {
		v *int
		n int
	}{{&r.KeyPerSecond, 50}, {&r.KeyBurst, 200}, {&r.AddressPerSecond, 50}, {&r.AddressBurst, 200},
		{&r.LoginsPerMinute, 5}, {&r.TokenPostsPerMinute, 10}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
	secret, err := setting(ctx, o.Store, "access-secret", func() []byte { return random(secretBytes) })
	if err != nil {
		return nil, err
	}
	tokens, err := openTokens(ctx, o.Store, o.Now)
	if err != nil {
		return nil, err
	}
	a := &Access{
		Keys:       &Keys{store: o.Store, now: o.Now},
		Sessions:   &Sessions{store: o.Store, now: o.Now},
		Tokens:     tokens,
		PerKey:     NewLimiter("key", r.KeyPerSecond, time.Second, r.KeyBurst, o.Now),
		PerAddress: NewLimiter("global", r.AddressPerSecond, time.Second, r.AddressBurst, o.Now),
		Logins:     NewLimiter("route", r.LoginsPerMinute, time.Minute, r.LoginsPerMinute, o.Now),
		TokenPosts: NewLimiter("route", r.TokenPostsPerMinute, time.Minute, r.TokenPostsPerMinute, o.Now),
		secret:     secret,
		rates:      r,
	}
	a.Replies = newReplies(o.Store, o.Now, a.MAC)
	return a, nil
}

// MAC authenticates parts for one purpose with the secret of the installation. Different lists of
// parts never have the same input.
func (a *Access) MAC(purpose string, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, a.secret)
	write := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	write([]byte(purpose))
	for _, p := range parts {
		write(p)
	}
	return h.Sum(nil)
}

// TokenName returns a token's name in the limiter TokenPosts: a digest, so that no token is kept.
func TokenName(token string) string {
	sum := sha256.Sum256([]byte(token))
	return string(sum[:])
}
