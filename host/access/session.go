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

// How long things last, and how many sessions there are at most.
const (
	SessionIdle = 12 * time.Hour
	SessionLife = 7 * 24 * time.Hour
	LoginLife   = 10 * time.Minute
	MaxSessions = 32
)

// Sessions are those of the owner's browsers, and the login tokens that they
// begin with. Both are stored under digests, so that the store holds nothing that
// opens one.
type Sessions struct {
	store store.Documents
	now   func() time.Time
}

// A Session is what its browser gets. Cookie is its credential.
type Session struct {
	Cookie    string // 256 random bits
	CSRFToken string // made of the cookie, and stored nowhere; every change must repeat it
	ExpiresAt time.Time
}

type storedSession struct {
	CreatedAt time.Time `json:"createdAt"`
	SeenAt    time.Time `json:"seenAt"` // within a minute
}

func (s storedSession) ends() time.Time {
	idle, life := s.SeenAt.Add(SessionIdle), s.CreatedAt.Add(SessionLife)
	if idle.Before(life) {
		return idle
	}
	return life
}

// NewLogin makes a token that opens one session within LoginLife.
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

// Login uses a token up and opens a session, in one commit: of several that
// present the same token one gets in. old is the cookie that the browser had, ""
// for none; its session ends, so that nobody else knows the value of the new one.
// When there are MaxSessions, the oldest ends. ErrUnauthenticated.
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

// tooMany returns the oldest sessions, if one more would be over the limit.
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
		_ = json.Unmarshal(d.Data, &one) // what cannot be read is the oldest
		all = append(all, aged{d.ID, one.CreatedAt})
	}
	slices.SortFunc(all, func(a, b aged) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	var over []string
	for i := 0; len(all)-i >= MaxSessions; i++ {
		over = append(over, all[i].id)
	}
	return over, nil
}

// Authenticate returns whose cookie it is, and the session as its pages know it.
// ErrUnauthenticated; any other error is the store's.
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

// Close ends a session at once. That there is none is no error.
func (s *Sessions) Close(ctx context.Context, cookie string) error {
	if !wellFormed(cookie) {
		return nil
	}
	return s.store.Write(ctx, store.Write{Kind: store.Sessions, ID: name(cookie)})
}

// CSRF reports whether a token is the one of a session, in constant time.
func (s Session) CSRF(token string) bool {
	return s.CSRFToken != "" && subtle.ConstantTimeCompare([]byte(token), []byte(s.CSRFToken)) == 1
}

// load returns a session that has not ended. With used its idle end moves; a page
// that is only open does not move it.
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
			// A session that was closed meanwhile stays closed.
			_ = s.store.Write(ctx, store.Write{Kind: store.Sessions, ID: id, Data: data, If: &d.Revision,
				ExpiresAt: one.ends()})
		}
	}
	return one, nil
}

// csrf returns the page token of a session. It says nothing of the cookie.
func csrf(cookie string) string {
	h := hmac.New(sha256.New, []byte(cookie))
	h.Write([]byte("sluice page token"))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// name returns what a credential is stored under.
func name(credential string) string { return hex.EncodeToString(digest(credential)) }

// wellFormed reports whether a cookie or login token is one of ours by its form.
func wellFormed(credential string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(credential)
	return len(credential) == 43 && err == nil && len(b) == 32
}
