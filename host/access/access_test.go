package access_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// clock is moved by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func open(t *testing.T) (*access.Access, store.Store, *clock) {
	t.Helper()
	c := &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	st, err := badger.OpenMemory(badger.Options{Small: true, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	a, err := access.Open(context.Background(), access.Options{Store: st, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	return a, st, c
}

var owner = &access.Principal{ID: access.Owner, Scopes: access.Everything}

func newKey(t *testing.T, a *access.Access, by *access.Principal, n access.NewKey) (access.Key, string) {
	t.Helper()
	k, full, err := a.Keys.Create(context.Background(), by, n, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, full
}

// stored is everything that documents of a kind hold.
func stored(t *testing.T, st store.Store, kind store.Kind) string {
	t.Helper()
	docs, err := st.Documents(context.Background(), store.DocumentQuery{Kind: kind, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, d := range docs {
		all.WriteString(d.ID + " " + string(d.Data) + "\n")
	}
	return all.String()
}

// TestKeyLife follows keys from creation to their end.
func TestKeyLife(t *testing.T) {
	a, st, c := open(t)
	ctx := context.Background()
	ends := c.now().Add(time.Hour)
	k, full := newKey(t, a, owner,
		access.NewKey{Name: "ci", Scopes: []access.Scope{access.RunsRead, access.RunsCreate},
			Mode: access.Live, ExpiresAt: &ends})
	if !strings.HasPrefix(full, "slk_live_"+strings.TrimPrefix(k.KeyID, "key_")+"_") {
		t.Errorf("key has the form %.20s…", full)
	}
	secret := full[len(k.Prefix)+1:]
	if len(secret) != 43 || strings.Contains(stored(t, st, store.Keys), secret) {
		t.Error("the secret is short, or in the store")
	}
	p, err := a.Keys.Authenticate(ctx, full)
	if err != nil || p.ID != "key:"+k.KeyID || !p.Allows(access.RunsRead) || p.Allows(access.RunsCancel) || p.Test {
		t.Fatalf("principal %+v, %v", p, err)
	}
	for name, bad := range map[string]string{
		"empty": "", "no parts": "slk", "other secret": full[:len(full)-2] + "AA",
		"other mode": strings.Replace(full, "live", "test", 1), "no secret": k.Prefix + "_",
		"unknown id": strings.Replace(full, "_"+strings.TrimPrefix(k.KeyID, "key_"),
			"_01ARZ3NDEKTSV4RRFFQ69G5FAV", 1),
		"id of another form": "slk_live_../../x_" + secret, "long": full + strings.Repeat("a", 5000),
	} {
		if _, err := a.Keys.Authenticate(ctx, bad); !errors.Is(err, access.ErrUnauthenticated) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.Check(ctx, p, access.RunsRead); err != nil {
		t.Error(err)
	}
	if err := a.Check(ctx, p, access.StateRead); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("check of a scope that is not there: %v", err)
	}

	c.add(time.Hour)
	if _, err := a.Keys.Authenticate(ctx, full); !errors.Is(err, access.ErrKeyExpired) {
		t.Errorf("past its date: %v", err)
	}
	if _, err := a.Keys.Authenticate(ctx, full[:len(full)-2]+"AA"); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("past its date, wrong secret: %v; only its holder may learn that", err)
	}
	if err := a.Check(ctx, p, access.RunsRead); !errors.Is(err, access.ErrKeyExpired) {
		t.Errorf("check past its date: %v", err)
	}

	k2, full2 := newKey(t, a, owner, access.NewKey{Name: "x", Scopes: access.All(), Mode: access.Test})
	p2, err := a.Keys.Authenticate(ctx, full2)
	if err != nil || !p2.Test {
		t.Fatal(p2, err)
	}
	for range 2 { // also when already revoked
		if err := a.Keys.Revoke(ctx, k2.KeyID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Keys.Authenticate(ctx, full2); !errors.Is(err, access.ErrKeyRevoked) {
		t.Errorf("revoked: %v", err)
	}
	if err := a.Check(ctx, p2, ""); !errors.Is(err, access.ErrKeyRevoked) {
		t.Errorf("check of a revoked key: %v", err)
	}
	for _, id := range []string{"key_01ARZ3NDEKTSV4RRFFQ69G5FAV", "x", ""} {
		if err := a.Keys.Revoke(ctx, id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("revoke %q: %v", id, err)
		}
	}
	list, err := a.Keys.List(ctx, "", 10)
	if err != nil || len(list) != 2 || list[0].Status != access.Expired || list[1].Status != access.Revoked ||
		list[0].CreatedBy != "owner" {
		t.Errorf("list %+v, %v", list, err)
	}
	if list, _ := a.Keys.List(ctx, list[0].KeyID, 10); len(list) != 1 || list[0].KeyID != k2.KeyID {
		t.Errorf("second page %+v", list)
	}
}

// TestKeyGivesNoMore: a key never gives what its creator does not have.
func TestKeyGivesNoMore(t *testing.T) {
	a, _, c := open(t)
	soon, later := c.now().Add(time.Hour), c.now().Add(2*time.Hour)
	past := c.now()
	by := &access.Principal{ID: "key:k", Scopes: must(access.ScopesOf([]access.Scope{access.KeysManage, access.RunsRead})),
		Connections: []store.ConnectionID{"mine"}, Test: true, ExpiresAt: soon}
	ok := access.NewKey{Name: "n", Scopes: []access.Scope{access.RunsRead}, Mode: access.Test,
		ConnectionIDs: []store.ConnectionID{"mine"}, ExpiresAt: &soon}
	newKey(t, a, by, ok)
	for name, change := range map[string]func(*access.NewKey){
		"scope":            func(n *access.NewKey) { n.Scopes = append(n.Scopes, access.RunsCancel) },
		"unknown scope":    func(n *access.NewKey) { n.Scopes = []access.Scope{"runs:everything"} },
		"no scope":         func(n *access.NewKey) { n.Scopes = nil },
		"live":             func(n *access.NewKey) { n.Mode = access.Live },
		"mode":             func(n *access.NewKey) { n.Mode = "both" },
		"all connections":  func(n *access.NewKey) { n.ConnectionIDs = nil },
		"no connection":    func(n *access.NewKey) { n.ConnectionIDs = []store.ConnectionID{} },
		"other connection": func(n *access.NewKey) { n.ConnectionIDs = []store.ConnectionID{"mine", "other"} },
		"outlives":         func(n *access.NewKey) { n.ExpiresAt = &later },
		"for ever":         func(n *access.NewKey) { n.ExpiresAt = nil },
		"past":             func(n *access.NewKey) { n.ExpiresAt = &past },
		"name":             func(n *access.NewKey) { n.Name = "a\nb" },
		"no name":          func(n *access.NewKey) { n.Name = "" },
	} {
		n := ok
		change(&n)
		_, _, err := a.Keys.Create(context.Background(), by, n, nil)
		var field *access.FieldError
		var scope *access.ScopeError
		if !errors.As(err, &field) && !errors.As(err, &scope) {
			t.Errorf("%s: %v", name, err)
		}
		if scope != nil && scope.Unknown != (name == "unknown scope") {
			t.Errorf("%s: %v", name, scope)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestLastUsed: use is written down once a minute, and never undoes a revocation.
func TestLastUsed(t *testing.T) {
	a, st, c := open(t)
	ctx := context.Background()
	k, full := newKey(t, a, owner, access.NewKey{Name: "n", Scopes: access.All(), Mode: access.Live})
	revision := func() uint64 { return must(st.Document(ctx, store.Keys, k.KeyID)).Revision }
	for range 5 {
		must(a.Keys.Authenticate(ctx, full))
		c.add(time.Second)
	}
	if n := revision(); n != 2 {
		t.Errorf("five uses in five seconds wrote the key %d times", n-1)
	}
	c.add(time.Minute)
	must(a.Keys.Authenticate(ctx, full))
	if n := revision(); n != 3 {
		t.Errorf("revision %d after a minute", n)
	}
	// Revoked between the reading of a use and its writing: it stays revoked.
	c.add(time.Hour)
	between := must(access.Open(ctx, access.Options{Now: c.now, Store: &reading{Store: st, then: func(kind store.Kind) {
		if kind == store.Keys {
			if err := a.Keys.Revoke(ctx, k.KeyID); err != nil {
				t.Error(err)
			}
		}
	}}}))
	must(between.Keys.Authenticate(ctx, full))
	if _, err := a.Keys.Authenticate(ctx, full); !errors.Is(err, access.ErrKeyRevoked) {
		t.Errorf("after uses that raced with a revocation: %v", err)
	}
}

// reading is a store in which something happens after a document was read.
type reading struct {
	store.Store
	then func(store.Kind)
}

func (r *reading) Document(ctx context.Context, kind store.Kind, id string) (store.Document, error) {
	d, err := r.Store.Document(ctx, kind, id)
	r.then(kind)
	return d, err
}

// TestLoginOnce: of many that present a login token one gets in.
func TestLoginOnce(t *testing.T) {
	a, st, c := open(t)
	ctx := context.Background()
	token := must(a.Sessions.NewLogin(ctx))
	if strings.Contains(stored(t, st, store.Logins), token) {
		t.Error("the token is in the store")
	}
	var mu sync.Mutex
	var in []access.Session
	var all, looked sync.WaitGroup
	const many = 32
	looked.Add(many)
	a = must(access.Open(ctx, access.Options{Now: c.now, Store: &reading{Store: st, then: func(kind store.Kind) {
		if kind == store.Logins { // all see the token before one uses it
			looked.Done()
			looked.Wait()
		}
	}}}))
	for range many {
		all.Go(func() {
			s, err := a.Sessions.Login(ctx, token, "")
			if err != nil {
				if !errors.Is(err, access.ErrUnauthenticated) {
					t.Error(err)
				}
				return
			}
			mu.Lock()
			in = append(in, s)
			mu.Unlock()
		})
	}
	all.Wait()
	if len(in) != 1 {
		t.Fatalf("%d sessions with one token", len(in))
	}
	a = must(access.Open(ctx, access.Options{Now: c.now, Store: st}))
	if all := stored(t, st, store.Sessions); strings.Contains(all, in[0].Cookie) ||
		strings.Contains(all, in[0].CSRFToken) || strings.Count(all, "\n") != 1 {
		t.Errorf("sessions in the store: %s", all)
	}
	old := must(a.Sessions.NewLogin(ctx))
	c.add(access.LoginLife)
	for name, token := range map[string]string{"old": old, "used": token, "empty": "", "long": strings.Repeat("A", 1<<20),
		"other": strings.Repeat("A", 43)} {
		if _, err := a.Sessions.Login(ctx, token, ""); !errors.Is(err, access.ErrUnauthenticated) {
			t.Errorf("%s token: %v", name, err)
		}
	}
}

func login(t *testing.T, a *access.Access, old string) access.Session {
	t.Helper()
	s, err := a.Sessions.Login(context.Background(), must(a.Sessions.NewLogin(context.Background())), old)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSessionLife: 12 idle hours, 7 days in all, dead at once when closed, renewed
// at login, 32 at most.
func TestSessionLife(t *testing.T) {
	a, _, c := open(t)
	ctx := context.Background()
	alive := func(s access.Session) bool {
		_, _, err := a.Sessions.Authenticate(ctx, s.Cookie)
		if err != nil && !errors.Is(err, access.ErrUnauthenticated) {
			t.Fatal(err)
		}
		return err == nil
	}
	idle := login(t, a, "")
	p, s, err := a.Sessions.Authenticate(ctx, idle.Cookie)
	if err != nil || p.ID != access.Owner || p.Transport != access.UI || p.Scopes != access.Everything || !p.Session() {
		t.Fatalf("%+v %v", p, err)
	}
	if !s.CSRF(idle.CSRFToken) || s.CSRF("") || s.CSRF(idle.Cookie) || (access.Session{}).CSRF("") {
		t.Error("page token")
	}
	c.add(access.SessionIdle - time.Second)
	if err := a.Check(ctx, p, access.RunsRead); err != nil { // an open page is no use of it
		t.Error(err)
	}
	c.add(time.Second)
	if alive(idle) {
		t.Error("alive after 12 idle hours")
	}
	if err := a.Check(ctx, p, access.RunsRead); !errors.Is(err, access.ErrUnauthenticated) {
		t.Errorf("check of an ended session: %v", err)
	}

	busy := login(t, a, "")
	for range 7*24/6 - 1 {
		c.add(6 * time.Hour)
		if !alive(busy) {
			t.Fatal("dead while it was used")
		}
	}
	c.add(6 * time.Hour)
	if alive(busy) {
		t.Error("alive after 7 days")
	}

	one := login(t, a, "")
	two := login(t, a, one.Cookie)
	if alive(one) || !alive(two) || one.Cookie == two.Cookie {
		t.Error("a login leaves the session before it alive")
	}
	if err := a.Sessions.Close(ctx, two.Cookie); err != nil || alive(two) {
		t.Errorf("closed: %v, alive %v", err, alive(two))
	}

	var many []access.Session
	for range access.MaxSessions + 3 {
		c.add(time.Second)
		many = append(many, login(t, a, ""))
	}
	for i, s := range many {
		if want := i >= 3; alive(s) != want {
			t.Errorf("session %d of %d: alive %v", i, len(many), !want)
		}
	}
	for _, cookie := range []string{"", "x", strings.Repeat("A", 43), strings.Repeat("=", 43)} {
		if alive(access.Session{Cookie: cookie}) {
			t.Errorf("cookie %q lets in", cookie)
		}
	}
}

// TestInterruptToken: signed, bound to one interrupt, at most 30 minutes, dead
// after a rotation.
func TestInterruptToken(t *testing.T) {
	a, st, c := open(t)
	token, ends := a.Tokens.Sign("run_1", "collect", "int_1", time.Time{})
	if ends != c.now().Add(access.TokenLife) {
		t.Errorf("ends %v", ends)
	}
	i, err := a.Tokens.Verify(token)
	if err != nil || i.RunID != "run_1" || i.InterruptID != "int_1" || i.NodeID != "collect" || i.Intent != "resolve" {
		t.Fatalf("%+v %v", i, err)
	}
	payload, sum, _ := strings.Cut(token, ".")
	for name, bad := range map[string]string{"empty": "", "no dot": payload, "no sum": payload + ".",
		"cut": token[:len(token)-1], "longer": token + "A",
		"other payload": "x" + payload[1:] + "." + sum, "twice": token + "." + sum, "huge": strings.Repeat("A", 1<<20) + "." +
			sum, "padded": token + "="} {
		if _, err := a.Tokens.Verify(bad); !errors.Is(err, access.ErrTokenUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Another one that opens the same installation takes it; another installation does not.
	again := must(access.Open(context.Background(), access.Options{Store: st, Now: c.now}))
	if _, err := again.Tokens.Verify(token); err != nil {
		t.Error(err)
	}
	other, _, _ := open(t)
	if _, err := other.Tokens.Verify(token); !errors.Is(err, access.ErrTokenUnknown) {
		t.Errorf("another installation: %v", err)
	}
	short, ends := a.Tokens.Sign("run_1", "collect", "int_1", c.now().Add(time.Minute))
	if ends != c.now().Add(time.Minute) {
		t.Errorf("ends %v", ends)
	}
	c.add(time.Minute)
	if i, err := a.Tokens.Verify(short); !errors.Is(err, access.ErrTokenExpired) || i.RunID != "run_1" {
		t.Errorf("expired: %v", err)
	}
}

// TestLimiter: burst, rate, and when to come back.
func TestLimiter(t *testing.T) {
	c := &clock{at: time.Unix(1e9, 0)}
	l := access.NewLimiter("key", 50, time.Second, 200, c.now)
	for i := range 200 {
		if err := l.Take("a"); err != nil {
			t.Fatalf("request %d of a burst of 200: %v", i, err)
		}
	}
	var rate *access.RateError
	if err := l.Take("a"); !errors.As(err, &rate) || rate.RetryAfter != 20*time.Millisecond || rate.Scope != "key" {
		t.Fatalf("request 201: %v", err)
	}
	if err := l.Take("b"); err != nil {
		t.Errorf("another name: %v", err)
	}
	c.add(rate.RetryAfter)
	if err := l.Take("a"); err != nil {
		t.Errorf("after RetryAfter: %v", err)
	}
	c.add(time.Second)
	n := 0
	for l.Take("a") == nil {
		n++
	}
	if n != 50 {
		t.Errorf("%d in a second, want 50", n)
	}
	c.add(time.Hour)
	for n = 0; l.Take("a") == nil; n++ {
	}
	if n != 200 {
		t.Errorf("%d after an hour, want the burst", n)
	}
	logins := access.NewLimiter("route", 5, time.Minute, 5, c.now)
	for range 5 {
		_ = logins.Take("x")
	}
	if err := logins.Take("x"); !errors.As(err, &rate) || rate.RetryAfter != 12*time.Second {
		t.Errorf("sixth login: %v", err)
	}
}

// TestLimiterBounded: names cost no more than a bounded amount of memory, and many
// of them no freedom.
func TestLimiterBounded(t *testing.T) {
	c := &clock{at: time.Unix(1e9, 0)}
	l := access.NewLimiter("global", 1, time.Second, 1, c.now)
	passed := 0
	for i := range 50_000 {
		if l.Take(string(rune(i))+"x") == nil {
			passed++
		}
	}
	if passed != 16<<10+1 {
		t.Errorf("%d of 50,000 names passed: the limiter is as large as that", passed)
	}
	c.add(2 * time.Second)
	for i := range 100 {
		if err := l.Take(string(rune(i)) + "new"); err != nil {
			t.Fatalf("buckets that are full again take room: %v", err)
		}
	}
}

// TestScopes: each is its own, and there are 21.
func TestScopes(t *testing.T) {
	if n := len(access.All()); n != 21 {
		t.Errorf("%d scopes", n)
	}
	for _, s := range access.All() {
		set := must(access.ScopesOf([]access.Scope{s}))
		for _, other := range access.All() {
			if set.Has(other) != (s == other) {
				t.Errorf("%s and %s", s, other)
			}
		}
	}
	if access.Everything.Has("runs:*") || access.Everything.Has("") {
		t.Error("a scope that does not exist is had")
	}
}

// TestPrivateHost: made once.
func TestPrivateHost(t *testing.T) {
	_, st, _ := open(t)
	var names [8]string
	var all sync.WaitGroup
	for i := range names {
		all.Go(func() { names[i] = must(access.PrivateHost(context.Background(), st)) })
	}
	all.Wait()
	for _, n := range names {
		if n != names[0] || len(n) != len("sluice-12345678.localhost") || !strings.HasSuffix(n, ".localhost") {
			t.Errorf("names %q", names)
		}
	}
}

// TestNewID: ULIDs, in the order of time.
func TestNewID(t *testing.T) {
	at := time.UnixMilli(1469918176385)
	if id := access.NewID("run_", at); !strings.HasPrefix(id, "run_01ARYZ6S41") || len(id) != 4+26 {
		t.Errorf("id %s, want the time 01ARYZ6S41", id)
	}
	if access.NewID("", at) >= access.NewID("", at.Add(time.Millisecond)) ||
		len(map[string]bool{access.NewID("", at): true, access.NewID("", at): true}) != 2 {
		t.Error("order")
	}
	b, _ := json.Marshal(access.NewID("", time.Now()))
	if strings.ContainsAny(string(b), "ILOU") {
		t.Errorf("letters of %s", b)
	}
}
