package oauth

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// A Keeper stores the authorization of one secret.
type Keeper interface {
	// Load returns the authorization, or ErrMissing if there is none.
	Load() (Stored, error)
	// Save durably replaces was by now. It changes nothing if the stored authorization is no longer
	// was.
	Save(was, now Stored) error
}

// A Source provides the current access token. It is safe for concurrent use.
type Source struct {
	client *Client
	keeper Keeper // nil: client credentials
	life   context.Context
	end    context.CancelFunc
	flying sync.WaitGroup

	mu       sync.Mutex // guards the fields below; never held across I/O
	onSecret func(string)
	secrets  []string // passed to onSecret
	token    string
	got      time.Time // when token was obtained
	due      time.Time // when to request a new one; zero: never
	expiry   time.Time // zero: unknown
	renewed  bool      // token was obtained because a server refused another
	flight   *flight   // the request in progress; may be nil
	tokens   int       // number obtained
	fatal    *Error    // no request helps any more
	failed   *Error    // of the last request
	retryAt  time.Time // no request is made until then
	backoff  time.Duration
	closed   bool

	unsaved *replacement // used only by the flight's goroutine, of which there is one at a time, and then by Close
}

// A replacement is for a refresh token that the server has forgotten.
type replacement struct{ was, now Stored }

// A flight is a request for a token.
type flight struct {
	done chan struct{}
	err  error
}

// Bounds of a source.
const (
	early          = time.Minute            // how long before its expiry a token is replaced
	soonest        = time.Second            // a token is kept at least this long
	refusedAge     = time.Minute            // age of a token from which a second refusal counts
	mostTokens     = 256                    // in one run
	requestTime    = 45 * time.Second       // for one token, storing included
	closingTime    = 5 * time.Second        // for a request in progress when a run ends
	firstBackoff   = 500 * time.Millisecond // after a failure; doubles
	longestBackoff = time.Minute
)

// NewSource returns a source that has requested nothing yet. Without a keeper it uses client
// credentials.
func NewSource(c *Client, k Keeper) *Source {
	s := &Source{client: c, keeper: k}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// OnSecret calls f with every secret before the source gives it to anybody: access tokens, refresh
// tokens and the client's secret. f is called from any goroutine, and for known secrets before OnSecret
// returns.
func (s *Source) OnSecret(f func(secret string)) {
	s.mu.Lock()
	known := s.secrets
	s.onSecret = f
	s.mu.Unlock()
	for _, secret := range known {
		f(secret)
	}
	if s.client.Secret != "" {
		f(s.client.Secret)
	}
}

// Protect passes a secret to the f of OnSecret, once.
func (s *Source) Protect(secret string) {
	s.mu.Lock()
	known := slices.Contains(s.secrets, secret)
	if !known {
		s.secrets = append(s.secrets, secret)
	}
	onSecret := s.onSecret
	s.mu.Unlock()
	if onSecret != nil && !known {
		onSecret(secret)
	}
}

// Current returns the access token, if possible a different one than the refused token, which is ""
// if none was refused. ctx ends only the wait: a request for a token continues, since its answer
// may replace the refresh token. The error is an *Error or ctx's.
func (s *Source) Current(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	now := time.Now()
	if s.usable(now, refused) {
		defer s.mu.Unlock()
		return s.token, nil
	}
	if err := s.unavailable(now); err != nil {
		defer s.mu.Unlock()
		return s.fallback(now, refused, err)
	}
	f := s.flight
	if f == nil {
		f = &flight{done: make(chan struct{})}
		s.flight = f
		renewed := refused != "" && refused == s.token
		s.flying.Go(func() { s.fly(f, renewed) })
	}
	s.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.err != nil {
		return s.fallback(time.Now(), refused, f.err)
	}
	return s.token, nil
}

// usable reports whether the token is as good as a new one. A token that is refused shortly after
// it was obtained because of another refusal was refused for a different reason.
func (s *Source) usable(now time.Time, refused string) bool {
	if s.token == "" || s.fatal != nil {
		return false
	}
	if refused == s.token {
		return s.renewed && now.Sub(s.got) < refusedAge
	}
	return s.due.IsZero() || now.Before(s.due)
}

// unavailable returns why no request is made now, or nil.
func (s *Source) unavailable(now time.Time) error {
	switch {
	case s.fatal != nil:
		return s.fatal
	case s.closed:
		return context.Canceled
	case s.flight != nil:
		return nil
	case now.Before(s.retryAt):
		return s.failed
	case s.tokens >= mostTokens:
		return errorf(CodeLimit, "%s gave %d tokens in this run already", s.client.Host(), mostTokens)
	}
	return nil
}

// fallback returns a token that is still valid if there is no newer one.
func (s *Source) fallback(now time.Time, refused string, err error) (string, error) {
	if s.token != "" && s.token != refused && s.fatal == nil && (s.expiry.IsZero() || now.Before(s.expiry)) {
		return s.token, nil
	}
	return "", err
}

// fly obtains a token and stores the result.
func (s *Source) fly(f *flight, renewed bool) {
	ctx, cancel := context.WithTimeout(s.life, requestTime)
	defer cancel()
	t, err := s.obtain(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight, f.err = nil, err
	defer close(f.done)
	now := time.Now()
	if err == nil {
		s.tokens++
		s.token, s.got, s.renewed, s.failed, s.backoff, s.retryAt = t.AccessToken, now, renewed, nil, 0, time.Time{}
		s.expiry = t.Expiry
		s.due = dueAt(now, t.Expiry)
		return
	}
	var e *Error
	if !errors.As(err, &e) {
		e = errorf(CodeUnavailable, "%s could not be asked for a token", s.client.Host())
		e.Err, f.err = err, e
	}
	if e.Code == CodeExpired || e.Code == CodeRefused {
		s.fatal = e
	}
	s.backoff = min(max(2*s.backoff, firstBackoff), longestBackoff)
	s.failed, s.retryAt = e, now.Add(s.backoff)
}

// dueAt returns when to replace a token: a minute before it expires, or after half of a short
// lifetime.
func dueAt(now, expiry time.Time) time.Time {
	if expiry.IsZero() {
		return time.Time{}
	}
	lasts := expiry.Sub(now)
	return now.Add(max(lasts-min(early, lasts/2), soonest))
}

// obtain requests a token. If it replaces the refresh token, that is stored durably before the
// token is used, so a crash in between loses only the access token.
func (s *Source) obtain(ctx context.Context) (*oauth2.Token, error) {
	if s.keeper == nil {
		t, err := s.client.own(ctx)
		if err == nil {
			s.Protect(t.AccessToken)
		}
		return t, err
	}
	was, err := s.load()
	if err != nil {
		return nil, err
	}
	t, err := s.client.refresh(ctx, was.RefreshToken)
	if e := (*Error)(nil); errors.As(err, &e) && e.Code == CodeExpired {
		// The owner may have authorized again since it was loaded.
		if now, missing := s.load(); missing == nil && now.RefreshToken != was.RefreshToken {
			was = now
			t, err = s.client.refresh(ctx, was.RefreshToken)
		}
	}
	if err != nil {
		return nil, err
	}
	s.Protect(t.AccessToken)
	if t.RefreshToken == was.RefreshToken {
		return t, nil
	}
	s.Protect(t.RefreshToken)
	now, err := s.client.authorization(t) // an authorization that the owner entered becomes bound as well
	if err != nil {
		return nil, err
	}
	if was.Version > 0 {
		now.Scopes = was.Scopes
	}
	return t, s.save(was, now)
}

func (s *Source) load() (Stored, error) {
	if s.unsaved != nil {
		if err := s.keeper.Save(s.unsaved.was, s.unsaved.now); err != nil {
			return Stored{}, notStored(err)
		}
		s.unsaved = nil
	}
	was, err := s.keeper.Load()
	if err == nil {
		err = was.For(s.client.Declared, s.client.ID)
	}
	switch {
	case errors.Is(err, ErrMissing), errors.Is(err, ErrOther):
		return was, errorf(CodeExpired, "%v", err)
	case err != nil:
		return was, &Error{CodeUnavailable, "the authorization cannot be read", err}
	}
	s.Protect(was.RefreshToken)
	return was, nil
}

// save remembers what it could not store and retries at the next request, since the server has
// forgotten the stored refresh token.
func (s *Source) save(was, now Stored) error {
	err := s.keeper.Save(was, now)
	if err == nil {
		return nil
	}
	s.unsaved = &replacement{was, now}
	return notStored(err)
}

func notStored(err error) *Error {
	return &Error{CodeUnavailable, "the new authorization cannot be stored", err}
}

// Close waits briefly for a request in progress, whose answer may have to be stored, and ends it.
// Nothing is requested afterwards.
func (s *Source) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	late := time.AfterFunc(closingTime, s.end)
	defer late.Stop()
	s.flying.Wait()
	s.end()
	if u := s.unsaved; u != nil {
		_ = s.keeper.Save(u.was, u.now) // last attempt; its failure was reported before
	}
}
