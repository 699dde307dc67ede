package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicehost/sluice/store"
)

// The modes of a key.
const (
	Live = "live"
	Test = "test"
)

// States of a key.
const (
	Active  = "active"
	Expired = "expired"
	Revoked = "revoked"
)

const (
	keyPrefix      = "key_"
	maxKeyName     = 100 // characters
	maxConnections = 100 // for one key
	// usedEvery bounds how often the use of a key or a session is recorded.
	usedEvery = time.Minute
)

// Keys manages the API keys of this installation.
type Keys struct {
	store store.Documents
	now   func() time.Time
}

// A Key describes an API key, without its secret.
type Key struct {
	KeyID         string               `json:"keyId"`
	Name          string               `json:"name"`
	Prefix        string               `json:"prefix"` // the key up to its id
	Scopes        []Scope              `json:"scopes"`
	Mode          string               `json:"mode"`
	ConnectionIDs []store.ConnectionID `json:"connectionIds,omitempty"` // empty: all
	CreatedAt     time.Time            `json:"createdAt"`
	CreatedBy     string               `json:"createdBy"`
	ExpiresAt     *time.Time           `json:"expiresAt,omitempty"`
	LastUsedAt    *time.Time           `json:"lastUsedAt,omitempty"` // accurate to a minute
	Status        string               `json:"status"`
}

// A MadeKey is a new key. If the answer is repeated after its secret was erased, Secret is missing
// and SecretOmitted is true.
type MadeKey struct {
	Key
	Secret        string `json:"key,omitempty"`
	SecretOmitted bool   `json:"secretOmitted,omitempty"`
	SecretAt      string `json:"secretAt,omitempty"` // of another host that can still show it: address, or id
}

// A NewKey describes a key to create. It is also the body of the request.
type NewKey struct {
	Name          string               `json:"name"`
	Scopes        []Scope              `json:"scopes"`
	Mode          string               `json:"mode"`
	ExpiresAt     *time.Time           `json:"expiresAt,omitempty"`
	ConnectionIDs []store.ConnectionID `json:"connectionIds,omitempty"`
}

// A storedKey is a key's document.
type storedKey struct {
	Key
	Digest    []byte     `json:"digest"` // SHA-256 of the secret
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
}

func (k *storedKey) err(now time.Time) error {
	switch {
	case k.RevokedAt != nil:
		return ErrKeyRevoked
	case k.ExpiresAt != nil && !now.Before(*k.ExpiresAt):
		return ErrKeyExpired
	}
	return nil
}

func (k *storedKey) shown(now time.Time) Key {
	switch k.err(now) {
	case ErrKeyRevoked:
		k.Status = Revoked
	case ErrKeyExpired:
		k.Status = Expired
	default:
		k.Status = Active
	}
	return k.Key
}

// Create creates a key and returns it with its secret, which is not stored. The key gets only what
// by has: scopes, connections, mode and lifetime. It returns a *FieldError, or a *ScopeError if by
// may not give a scope. with is called with the key before it is stored, and its writes are in the
// same commit; it may be nil.
func (k *Keys) Create(ctx context.Context, by *Principal, n NewKey,
	with func(Key, string) []store.Write) (Key, string, error) {
	now := k.now().UTC().Truncate(time.Millisecond)
	if err := n.check(by, now); err != nil {
		return Key{}, "", err
	}
	set, _ := ScopesOf(n.Scopes) // checked before
	id := NewID("", now)
	secret := base64.RawURLEncoding.EncodeToString(random(secretBytes))
	prefix := "slk_" + n.Mode + "_" + id
	s := storedKey{
		Key: Key{KeyID: keyPrefix + id, Name: n.Name, Prefix: prefix, Scopes: set.List(), Mode: n.Mode,
			ConnectionIDs: n.ConnectionIDs, CreatedAt: now, CreatedBy: by.ID, ExpiresAt: n.ExpiresAt},
		Digest: digest(secret),
	}
	full := prefix + "_" + secret
	shown := s.shown(now)
	data, err := json.Marshal(s)
	if err != nil {
		return Key{}, "", err
	}
	writes := []store.Write{{Kind: store.Keys, ID: s.KeyID, Data: data, If: store.Absent()}}
	if with != nil {
		writes = append(writes, with(shown, full)...)
	}
	if err := k.store.Write(ctx, writes...); err != nil {
		return Key{}, "", fmt.Errorf("store key: %w", err)
	}
	return shown, full, nil
}

func (n *NewKey) check(by *Principal, now time.Time) error {
	switch {
	case n.Name == "" || utf8.RuneCountInString(n.Name) > maxKeyName ||
		strings.ContainsFunc(n.Name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return &FieldError{"name", "1 to 100 characters, none of control"}
	case n.Mode != Live && n.Mode != Test:
		return &FieldError{"mode", "live or test"}
	case len(n.Scopes) == 0:
		return &FieldError{"scopes", "at least one"}
	case len(n.ConnectionIDs) > maxConnections || n.ConnectionIDs != nil && len(n.ConnectionIDs) == 0:
		return &FieldError{"connectionIds", "1 to 100, or absent for all"}
	case n.ExpiresAt != nil && !n.ExpiresAt.After(now):
		return &FieldError{"expiresAt", "in the future"}
	}
	set, err := ScopesOf(n.Scopes)
	if err != nil {
		return err
	}
	if lacking := set &^ by.Scopes; lacking != 0 {
		return &ScopeError{Scopes: lacking.List()}
	}
	if by.Test && n.Mode != Test {
		return &FieldError{"mode", "test, as the creator's"}
	}
	if by.Connections != nil && n.ConnectionIDs == nil {
		return &FieldError{"connectionIds", "some of the creator's"}
	}
	for _, id := range n.ConnectionIDs {
		if !by.SeesConnection(id) {
			return &FieldError{"connectionIds", "only connections that exist"}
		}
	}
	if !by.ExpiresAt.IsZero() && !by.Session() && (n.ExpiresAt == nil || n.ExpiresAt.After(by.ExpiresAt)) {
		return &FieldError{"expiresAt", "not after the creator's own end"}
	}
	return nil
}

// List returns keys in the order of creation, from the one after the given id.
func (k *Keys) List(ctx context.Context, after string, limit int) ([]Key, error) {
	docs, err := k.store.Documents(ctx, store.DocumentQuery{Kind: store.Keys, After: after, Limit: limit})
	if err != nil {
		return nil, err
	}
	now := k.now()
	keys := make([]Key, 0, len(docs))
	for _, d := range docs {
		var s storedKey
		if err := json.Unmarshal(d.Data, &s); err != nil {
			return nil, fmt.Errorf("read key %s: %w", d.ID, err)
		}
		keys = append(keys, s.shown(now))
	}
	return keys, nil
}

// Key returns a key, or store.ErrNotFound.
func (k *Keys) Key(ctx context.Context, id string) (Key, error) {
	s, _, err := k.load(ctx, id)
	return s.shown(k.now()), err
}

// Revoke revokes a key at once, which also ends its streams. Revoking it again is no error. It
// returns store.ErrNotFound if there is no such key.
func (k *Keys) Revoke(ctx context.Context, id string, with ...store.Write) error {
	for {
		s, revision, err := k.load(ctx, id)
		if err != nil {
			return err
		}
		if s.RevokedAt == nil {
			now := k.now().UTC().Truncate(time.Millisecond)
			s.RevokedAt = &now
		}
		data, err := json.Marshal(s)
		if err != nil {
			return err
		}
		w := append([]store.Write{{Kind: store.Keys, ID: id, Data: data, If: &revision}}, with...)
		var conflict *store.ConflictError
		if err := k.store.Write(ctx, w...); !errors.As(err, &conflict) || conflict.Kind != store.Keys {
			return err
		}
	}
}

// Authenticate returns the principal of a presented key. It returns ErrUnauthenticated,
// ErrKeyExpired or ErrKeyRevoked; any other error is the store's.
func (k *Keys) Authenticate(ctx context.Context, presented string) (*Principal, error) {
	if len(presented) > 200 {
		return nil, ErrUnauthenticated
	}
	parts := strings.SplitN(presented, "_", 4)
	if len(parts) != 4 || parts[0] != "slk" || parts[1] != Live && parts[1] != Test || !isULID(parts[2]) {
		return nil, ErrUnauthenticated
	}
	// Whoever does not have the secret learns nothing about the key, since mode and secret are
	// compared before its state is checked.
	return k.principal(ctx, keyPrefix+parts[2], func(s *storedKey) bool {
		return subtle.ConstantTimeCompare(digest(parts[3]), s.Digest) == 1 && s.Mode == parts[1]
	})
}

// principal loads a key and returns its principal if proof accepts it. proof is nil for a principal
// that was authenticated before.
func (k *Keys) principal(ctx context.Context, id string, proof func(*storedKey) bool) (*Principal, error) {
	s, revision, err := k.load(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, ErrUnauthenticated
	}
	if err != nil {
		return nil, err
	}
	if proof != nil && !proof(&s) {
		return nil, ErrUnauthenticated
	}
	now := k.now()
	if err := s.err(now); err != nil {
		return nil, err
	}
	set, err := ScopesOf(s.Scopes)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", id, err)
	}
	k.used(ctx, &s, revision, now)
	p := &Principal{ID: "key:" + id, Scopes: set, Connections: s.ConnectionIDs, Test: s.Mode == Test, Transport: REST,
		credential: id}
	if s.ExpiresAt != nil {
		p.ExpiresAt = *s.ExpiresAt
	}
	return p, nil
}

// used records the use of a key, at most once a minute. Concurrent changes of the key take
// precedence, and a store that accepts no writes is no reason to reject the key.
func (k *Keys) used(ctx context.Context, s *storedKey, revision uint64, now time.Time) {
	if s.LastUsedAt != nil && now.Sub(*s.LastUsedAt) < usedEvery {
		return
	}
	at := now.UTC().Truncate(time.Millisecond)
	s.LastUsedAt = &at
	if data, err := json.Marshal(s); err == nil {
		_ = k.store.Write(ctx, store.Write{Kind: store.Keys, ID: s.KeyID, Data: data, If: &revision})
	}
}

func (k *Keys) load(ctx context.Context, id string) (storedKey, uint64, error) {
	if !strings.HasPrefix(id, keyPrefix) || !isULID(id[len(keyPrefix):]) {
		return storedKey{}, 0, fmt.Errorf("key: %w", store.ErrNotFound)
	}
	d, err := k.store.Document(ctx, store.Keys, id)
	if err != nil {
		return storedKey{}, 0, err
	}
	var s storedKey
	if err := json.Unmarshal(d.Data, &s); err != nil {
		return storedKey{}, 0, fmt.Errorf("read key %s: %w", id, err)
	}
	return s, d.Revision, nil
}

func isULID(s string) bool {
	return len(s) == 26 && strings.Trim(s, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
}

func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
