package access

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Lifetimes, and the limit of sessions.
const (
	SessionIdle = 12 * time.Hour
	SessionLife = 7 * 24 * time.Hour
	LoginLife   = 10 * time.Minute
	MaxSessions = 32
)

// Sessions manages the owner's browser sessions and the login tokens that open them. Both are
// stored under digests, so the store contains no credentials.
type Sessions struct {
	store store.Documents
	now   func() time.Time
}

// A Session is an owner session as its browser gets it. Cookie is the credential.
type Session struct {
	Cookie    string // 256 random bits
	CSRFToken string // derived from the cookie and not stored; every change must repeat it
	ExpiresAt time.Time
}

type storedSession struct {
	CreatedAt time.Time `json:"createdAt"`
	SeenAt    time.Time `json:"seenAt"` // accurate to a minute
}

func (s storedSession) ends() time.Time {
	idle, life := s.SeenAt.Add(SessionIdle), s.CreatedAt.Add(SessionLife)
	if idle.Before(life) {
		return idle
	}
	return life
}

// NewLogin creates a token that opens one session within LoginLife.
func (s *Sessions) NewLogin(ctx context.Context) (string, error) {
	token := base64.RawURLEncoding.EncodeToString(random(32))
	err := s.store.Write(ctx, store.Write{
		Kind: store.Logins, ID: name(token), Data: json.RawMessage(`{}`), If: store.Absent(),
		ExpiresAt: s.now().Add(LoginLife),
	})
	if err != nil {
		return "", fmt.Errorf("store login: %w", err)
	}
	return token, nil
}

// Login consumes a token and opens a session in one commit, so a token opens only one session. old
// is the browser's previous cookie, or ""; its session ends, so that nobody else knows the value of
// the new one. At MaxSessions the oldest session ends. It returns ErrUnauthenticated for an invalid
// token.
func (s *Sessions) Login(ctx context.Context, token, old string) (Session, error) {
	if !wellFormed(token) {
		return Session{}, ErrUnauthenticated
	}
	login, err := s.store.Document(ctx, store.Logins, name(token))
	if errors.Is(err, store.ErrNotFound) {
		return Session{}, ErrUnauthenticated
	}
	if err != nil {
		return Session{}, err
	}
	cookie := base64.RawURLEncoding.EncodeToString(random(32))
	now := s.now().UTC()
	fresh := storedSession{CreatedAt: now, SeenAt: now}
	data, err := json.Marshal(fresh)
	if err != nil {
		return Session{}, err
	}
	writes := []store.Write{
		{Kind: store.Logins, ID: login.ID, If: &login.Revision},
		{Kind: store.Sessions, ID: name(cookie), Data: data, If: store.Absent(), ExpiresAt: fresh.ends()},
	}
	over, err := s.tooMany(ctx)
	if err != nil {
		return Session{}, err
	}
	if wellFormed(old) && !slices.Contains(over, name(old)) {
		over = append(over, name(old))
	}
	for _, id := range over {
		writes = append(writes, store.Write{Kind: store.Sessions, ID: id})
	}
	err = s.store.Write(ctx, writes...)
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return Session{}, ErrUnauthenticated
	}
	if err != nil {
		return Session{}, fmt.Errorf("store session: %w", err)
	}
	return Session{Cookie: cookie, CSRFToken: csrf(cookie), ExpiresAt: fresh.ends()}, nil
}

// tooMany returns the oldest sessions if one more would exceed the limit.
func (s *Sessions) tooMany(ctx context.Context) ([]string, error) {
	docs, err := s.store.Documents(ctx, store.DocumentQuery{Kind: store.Sessions, Limit: 1000})
	if err != nil {
		return nil, err
	}
	type aged struct {
		id string
		at time.Time
	}
	all := make([]aged, 0, len(docs))
	for _, d := range docs {
		var one storedSession
		_ = json.Unmarshal(d.Data, &one) // unreadable ones count as oldest
		all = append(all, aged{d.ID, one.CreatedAt})
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	var over []string
	for i := 0; len(all)-i >= MaxSessions; i++ {
		over = append(over, all[i].id)
	}
	return over, nil
}

// Authenticate returns the principal of a cookie, and its session. It returns ErrUnauthenticated;
// any other error is the store's.
func (s *Sessions) Authenticate(ctx context.Context, cookie string) (*Principal, Session, error) {
	if !wellFormed(cookie) {
		return nil, Session{}, ErrUnauthenticated
	}
	id := name(cookie)
	one, err := s.load(ctx, id, true)
	if err != nil {
		return nil, Session{}, err
	}
	p := &Principal{ID: Owner, Scopes: Everything, Transport: UI, ExpiresAt: one.CreatedAt.Add(SessionLife),
		credential: id}
	return p, Session{Cookie: cookie, CSRFToken: csrf(cookie), ExpiresAt: one.ends()}, nil
}

// Close ends a session at once. A missing session is no error.
func (s *Sessions) Close(ctx context.Context, cookie string) error {
	if !wellFormed(cookie) {
		return nil
	}
	return s.store.Write(ctx, store.Write{Kind: store.Sessions, ID: name(cookie)})
}

// CSRF compares a token with the session's, in constant time.
func (s Session) CSRF(token string) bool {
	return s.CSRFToken != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.CSRFToken)) == 1
}

// load returns an active session. used extends it; a page that is merely open does not.
func (s *Sessions) load(ctx context.Context, id string, used bool) (storedSession, error) {
	var one storedSession
	d, err := s.store.Document(ctx, store.Sessions, id)
	if errors.Is(err, store.ErrNotFound) {
		return one, ErrUnauthenticated
	}
	if err != nil {
		return one, err
	}
	if err := json.Unmarshal(d.Data, &one); err != nil {
		return one, fmt.Errorf("read session: %w", err)
	}
	now := s.now().UTC()
	if !now.Before(one.ends()) {
		return one, ErrUnauthenticated
	}
	if used && now.Sub(one.SeenAt) >= usedEvery {
		one.SeenAt = now
		if data, err := json.Marshal(one); err == nil {
			// a session that was closed meanwhile stays closed
			_ = s.store.Write(ctx, store.Write{Kind: store.Sessions, ID: id, Data: data, If: &d.Revision,
				ExpiresAt: one.ends()})
		}
	}
	return one, nil
}

// csrf returns the page token of a session. It reveals nothing of the cookie.
func csrf(cookie string) string {
	h := hmac.New(sha256.New, []byte(cookie))
	h.Write([]byte("sluice page token"))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// name returns the name under which a credential is stored.
func name(credential string) string { return hex.EncodeToString(digest(credential)) }

// wellFormed reports whether a cookie or login token has the right form.
func wellFormed(credential string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(credential)
	return len(credential) == 43 && err == nil && len(b) == 32
}
