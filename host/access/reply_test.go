package access_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/access"
	"github.com/sluicehost/sluice/store"
)

func request(key, body string) access.Request {
	return access.Request{Space: "default", Method: "POST", Path: "/v1/runs", Key: key, Content: []byte(body)}
}

func begin(t *testing.T, a *access.Access, q access.Request) (*access.Reply, *access.Slot) {
	t.Helper()
	r, s, err := a.Replies.Begin(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

// TestReply: the same answer again, for a day, and for the same request only.
func TestReply(t *testing.T) {
	a, st, c := open(t)
	ctx := context.Background()
	_, s := begin(t, a, request("k", "the otp is 123456"))
	if err := s.Finish(ctx, 201, []byte(`{"runId":"run_1"}`), "/v1/runs/run_1", 0); err != nil {
		t.Fatal(err)
	}
	if all := stored(t, st, store.Replies); strings.Contains(all, "123456") || all == "" {
		t.Errorf("stored: %s", all)
	}
	r, _ := begin(t, a, request("k", "the otp is 123456"))
	if r == nil || r.Status != 201 || string(r.Body) != `{"runId":"run_1"}` || r.Location != "/v1/runs/run_1" {
		t.Fatalf("again: %+v", r)
	}
	if _, _, err := a.Replies.Begin(ctx, request("k", "the otp is 654321")); !errors.Is(err, access.ErrMismatch) {
		t.Errorf("other body: %v", err)
	}
	for name, change := range map[string]func(*access.Request){
		"space": func(q *access.Request) { q.Space = "other" }, "method": func(q *access.Request) { q.Method = "PUT" },
		"path": func(q *access.Request) { q.Path = "/v1/runs/x" }, "key": func(q *access.Request) { q.Key = "k2" },
		// Parts do not run into each other.
		"moved": func(q *access.Request) { q.Path, q.Key = "/v1/run", "sk" },
	} {
		q := request("k", "the otp is 123456")
		change(&q)
		r, s := begin(t, a, q)
		if r != nil {
			t.Errorf("another %s: same answer", name)
		}
		s.Abandon()
	}
	for _, key := range []string{"", strings.Repeat("k", 256), "a\x00", "ä", "a\n", "\x7f"} {
		if _, _, err := a.Replies.Begin(ctx, request(key, "")); !errors.Is(err, access.ErrKeySyntax) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	c.add(access.ReplyLife - time.Second)
	if r, _ := begin(t, a, request("k", "the otp is 123456")); r == nil {
		t.Error("gone within a day")
	}
	c.add(time.Second)
	r, s = begin(t, a, request("k", "another"))
	if r != nil {
		t.Error("kept for more than a day")
	}
	s.Abandon()
}

// TestReplyKept: which answers are kept, and for how long.
func TestReplyKept(t *testing.T) {
	for status, life := range map[int]time.Duration{200: access.ReplyLife, 204: access.ReplyLife, 404: access.ReplyLife,
		409: access.ReplyLife, 422: access.ReplyLife,
		400: 0, 401: 0, 403: 0, 429: 7 * time.Second, 500: time.Minute, 503: time.Minute} {
		a, _, c := open(t)
		_, s := begin(t, a, request("k", ""))
		if err := s.Finish(context.Background(), status, []byte(`{}`), "", 7*time.Second); err != nil {
			t.Fatal(err)
		}
		if life > 0 {
			c.add(life - time.Second)
			if r, _ := begin(t, a, request("k", "")); r == nil || r.Status != status {
				t.Errorf("%d is not kept for %v", status, life)
			}
			c.add(time.Second)
		}
		r, s := begin(t, a, request("k", ""))
		if r != nil {
			t.Errorf("%d is kept for more than %v", status, life)
		}
		s.Abandon()
	}
}

// TestReplyWithEffect: the record is in the commit of the effect, or there is
// neither.
func TestReplyWithEffect(t *testing.T) {
	a, st, _ := open(t)
	ctx := context.Background()
	effect := func(n string) store.Write {
		return store.Write{Kind: store.Schedules, ID: n, Data: []byte(`{}`), If: store.Absent()}
	}
	_, s := begin(t, a, request("k", ""))
	body := []byte(`{"runId":"run_1"}`)
	if err := st.Write(ctx, append(s.Writes(201, body, ""), effect("one"))...); err != nil {
		t.Fatal(err)
	}
	// A crash here: another process begins where this one was.
	again := must(access.Open(ctx, access.Options{Store: st}))
	if r, _ := begin(t, again, request("k", "")); r == nil || string(r.Body) != string(body) {
		t.Fatalf("after a crash behind the commit: %+v", r)
	}
	if err := s.Finish(ctx, 201, body, "", 0); err != nil {
		t.Fatal(err)
	}
	if d := must(st.Documents(ctx, store.DocumentQuery{Kind: store.Replies})); len(d) != 1 || d[0].Revision != 1 {
		t.Errorf("written twice: %+v", d)
	}
	// The commit fails, and the answer is what says so.
	_, s = begin(t, a, request("k2", ""))
	if err := st.Write(ctx, append(s.Writes(201, body, ""), effect("one"))...); err == nil {
		t.Fatal("the effect was had twice")
	}
	if err := s.Finish(ctx, 409, []byte(`{"error":"conflict"}`), "", 0); err != nil {
		t.Fatal(err)
	}
	if r, _ := begin(t, a, request("k2", "")); r == nil || r.Status != 409 {
		t.Errorf("after a commit that failed: %+v", r)
	}
	// Without a key there is nothing to do.
	var none *access.Slot
	none.Omit("x")
	none.Abandon()
	if w := none.Writes(200, nil, ""); w != nil || none.Finish(ctx, 200, nil, "", 0) != nil {
		t.Error("a slot of no key does something")
	}
}

// TestReplyOnce: N requests with one key at the same time are carried out once.
func TestReplyOnce(t *testing.T) {
	a, _, _ := open(t)
	var ran, shared atomic.Int32
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			r, s, err := a.Replies.Begin(context.Background(), request("k", "b"))
			switch {
			case err != nil:
				t.Error(err)
			case s != nil:
				ran.Add(1)
				if err := s.Finish(context.Background(), 201, []byte(`{"n":1}`), "", 0); err != nil {
					t.Error(err)
				}
			case r.Status == 201 && string(r.Body) == `{"n":1}`:
				shared.Add(1)
			}
		})
	}
	all.Wait()
	if ran.Load() != 1 || shared.Load() != 63 {
		t.Errorf("ran %d times, shared %d times", ran.Load(), shared.Load())
	}
}

// TestReplyInFlight: duplicates wait half a minute, share whatever the first
// is answered, and run themselves when it ends without an answer.
func TestReplyInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := must(access.Open(context.Background(), access.Options{Store: &documents{}}))
		_, first := begin(t, a, request("k", ""))
		if _, _, err := a.Replies.Begin(context.Background(), request("k", "other")); !errors.Is(err, access.ErrMismatch) {
			t.Errorf("another body meanwhile: %v", err)
		}
		began := time.Now()
		if _, _, err := a.Replies.Begin(context.Background(), request("k", "")); !errors.Is(err, access.ErrInFlight) ||
			time.Since(began) != 30*time.Second {
			t.Errorf("waited %v: %v", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, _, err := a.Replies.Begin(ctx, request("k", "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gave up: %v", err)
		}
		got := make(chan *access.Reply, 1)
		go func() {
			r, _, _ := a.Replies.Begin(context.Background(), request("k", ""))
			got <- r
		}()
		synctest.Wait()
		if err := first.Finish(context.Background(), 400, []byte(`{}`), "", 0); err != nil { // not kept, and shared
			t.Fatal(err)
		}
		if r := <-got; r == nil || r.Status != 400 {
			t.Errorf("shared %+v", r)
		}
		_, second := begin(t, a, request("k", ""))
		slots := make(chan *access.Slot, 1)
		go func() {
			_, s, _ := a.Replies.Begin(context.Background(), request("k", ""))
			slots <- s
		}()
		synctest.Wait()
		second.Abandon()
		third := <-slots
		if third == nil {
			t.Fatal("nobody carries it out after the first gave up")
		}
		second.Abandon() // ends nothing of the third's
		if _, _, err := a.Replies.Begin(context.Background(), request("k", "")); !errors.Is(err, access.ErrInFlight) {
			t.Errorf("%v", err)
		}
		third.Abandon()
	})
}

// TestReplySecret: a one-time secret is given again for ten minutes, never after,
// and is in no store.
func TestReplySecret(t *testing.T) {
	a, st, c := open(t)
	ctx := context.Background()
	c.add(9*time.Minute + 30*time.Second) // near the end of a sealing key's time
	_, s := begin(t, a, request("k", ""))
	s.Omit("key")
	full := `{"keyId":"key_1","key":"slk_live_secret"}`
	if err := s.Finish(ctx, 201, []byte(full), "", 0); err != nil {
		t.Fatal(err)
	}
	if all := stored(t, st, store.Replies); strings.Contains(all, "secret\"") || strings.Contains(all, "slk_live") {
		t.Errorf("stored: %s", all)
	}
	again := func(a *access.Access) string {
		r, _ := begin(t, a, request("k", ""))
		return string(r.Body)
	}
	const omitted = `{"keyId":"key_1","secretOmitted":true}`
	c.add(9 * time.Minute)
	if got := again(a); got != full {
		t.Errorf("within ten minutes: %s", got)
	}
	if got := again(must(access.Open(ctx, access.Options{Store: st, Now: c.now}))); got != omitted {
		t.Errorf("after a restart: %s", got)
	}
	c.add(time.Minute)
	if got := again(a); got != omitted {
		t.Errorf("after ten minutes: %s", got)
	}
	c.add(time.Hour)
	if got := again(a); got != omitted {
		t.Errorf("after an hour: %s", got)
	}
}

// documents is a store of documents that has no goroutines of its own.
type documents struct {
	store.Store
	mu  sync.Mutex
	all map[string]store.Document
}

func (d *documents) Write(_ context.Context, writes ...store.Write) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range writes {
		if have := d.all[string(w.Kind)+w.ID].Revision; w.If != nil && *w.If != have {
			return &store.ConflictError{Kind: w.Kind, ID: w.ID, Revision: have}
		}
	}
	for _, w := range writes {
		if d.all == nil {
			d.all = map[string]store.Document{}
		}
		k := string(w.Kind) + w.ID
		d.all[k] = store.Document{Kind: w.Kind, ID: w.ID, Data: w.Data, Revision: d.all[k].Revision + 1}
	}
	return nil
}

func (d *documents) Document(_ context.Context, kind store.Kind, id string) (store.Document, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	doc, ok := d.all[string(kind)+id]
	if !ok {
		return doc, store.ErrNotFound
	}
	return doc, nil
}
