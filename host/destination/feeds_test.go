package destination_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/sqlite"
	sender "github.com/sluicehost/sluice/host/destination/webhook"
	"github.com/sluicehost/sluice/host/webhook"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

const manifest = `{"protocol_version":"0.1.0","connector_id":"https://example.org/mail","connector_key":"mail","version":"1.0.0","display_name":"Mail","runtime_requirements":{"bindings":{}},
 "streams":[{"name":"items","semantics":"mutable_state","primary_key":["id"],"coverage_strategy":"full_inventory",
  "schema":{"type":"object","required":["id"],"properties":{"id":{"type":"string"},"n":{"type":"integer"}}}}]}`

// secrets are in memory.
type secrets struct {
	mu sync.Mutex
	of map[string]string
}

func (s *secrets) Set(id string, v []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[id] = string(v)
	return nil
}

func (s *secrets) Get(id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []byte(s.of[id]), nil
}

func (s *secrets) Remove(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
	return nil
}

// broken is a kind whose destinations fail while fault is set.
type broken struct {
	sqlite.Kind
	mu    sync.Mutex
	fault error
}

func (*broken) Scheme() string { return "broken:" }

func (k *broken) Check(url, _ string) (string, error) {
	return strings.ReplaceAll(url, "hunter2", "…"), nil
}

func (k *broken) Open(ctx context.Context, url string, o destination.Owner) (destination.Sink, error) {
	if err := k.now(); err != nil {
		return nil, err
	}
	path, _, _ := strings.Cut(strings.TrimPrefix(url, "broken:"), "?")
	return k.Kind.Open(ctx, "sqlite:"+path, o)
}

func (k *broken) now() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fault
}

func (k *broken) set(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.fault = err
}

// A world has a store with one connection.
type world struct {
	*testing.T
	store   store.Store
	secrets *secrets
	kinds   destination.Kinds
	lease   store.Lease
	n       int
}

func newWorld(t *testing.T, kinds ...destination.Kind) *world {
	st, err := badger.Open(t.TempDir(), badger.Options{Small: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{T: t, store: st, secrets: &secrets{of: map[string]string{}},
		kinds: append(destination.Kinds{sqlite.Kind{}}, kinds...)}
	w.must(st.PutConnection(t.Context(),
		store.Connection{ID: "mail", ConnectorID: "https://example.org/mail", Manifest: json.RawMessage(manifest),
			CreatedAt: time.Unix(1_700_000_000, 0)}))
	run := store.Run{ID: "run_01K9W3C7RZ5D1N8V5X9M2QH4TB", ConnectionID: "mail", Status: "active", StartedAt: time.Now()}
	w.lease, err = st.Acquire(t.Context(), run, "host", "boot", time.Hour)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) check(err error) {
	w.Helper()
	if err != nil {
		w.Error(err)
	}
}

// collect commits a record of the stream items.
func (w *world) collect(key, data string) {
	w.Helper()
	w.collectOf("items", key, data)
}

func (w *world) collectOf(stream store.Stream, key, data string) {
	w.Helper()
	b := &store.Batch{Stream: stream}
	b.Append(store.Change{Key: []byte(key), Data: []byte(data), EmittedAt: time.Now().UnixMicro()})
	w.commit(&store.Commit{Batches: []*store.Batch{b}})
}

func (w *world) commit(c *store.Commit) {
	w.Helper()
	w.n++
	c.Lease = w.lease
	c.Events = []store.Event{{ID: store.EventID(fmt.Sprintf("evt_%016d", w.n)), Type: "run.progress_reported",
		RunID: w.lease.RunID, ConnectionID: "mail", OccurredAt: time.Now(), Data: json.RawMessage(`{}`)}}
	r, err := w.store.Submit(w.Context(), c)
	w.must(err)
	<-r.Done()
	_, err = r.Result()
	w.must(err)
}

func (w *world) open() *destination.Feeds {
	w.Helper()
	fs, err := destination.Open(w.Context(),
		destination.Options{Store: w.store, Secrets: w.secrets, Kinds: w.kinds, Host: "host-1"})
	w.must(err)
	w.Cleanup(fs.Close)
	return fs
}

// until waits for a destination to be as it should.
func (w *world) until(fs *destination.Feeds, name, what string, is func(host.Destination) bool) host.Destination {
	w.Helper()
	var d host.Destination
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		var err error
		d, err = fs.Destination(w.Context(), name)
		w.must(err)
		if is(d) {
			return d
		}
	}
	w.Fatalf("never %s: %+v", what, d)
	return d
}

// count is a SELECT with one number.
func (w *world) count(path, sql string) (n int64) {
	w.Helper()
	c, err := sqlite3.Open("file:" + path)
	w.must(err)
	defer c.Close()
	w.must(c.BusyTimeout(time.Minute)) // it may be fed just now
	st, _, err := c.Prepare(sql)
	w.must(err)
	defer st.Close()
	if st.Step() {
		n = st.ColumnInt64(0)
	}
	w.must(st.Err())
	return n
}

func current(d host.Destination) bool { return d.SyncedAt != nil && d.Behind == 0 && d.Error == "" }

// TestLive: what is committed arrives by itself, through a pause and a restart, once.
func TestLive(t *testing.T) {
	w := newWorld(t)
	path := filepath.Join(t.TempDir(), "out.db")
	fs := w.open()
	w.collect("a", `{"id":"a","n":1}`)
	_, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "out", URL: "sqlite:" + path})
	w.must(err)
	w.until(fs, "out", "current", current)
	w.collect("b", `{"id":"b","n":2}`)
	w.until(fs, "out", "current with b",
		func(d host.Destination) bool { return current(d) && d.State == "idle" && d.Tables[0].Version == 2 })
	if n := w.count(path, "SELECT sum(n) FROM mail_items"); n != 3 {
		t.Errorf("a sum of %d", n)
	}
	if n := w.count(path, "SELECT records FROM _sluice_streams WHERE stream = 'items' AND last_run LIKE 'run_%'"); n != 2 {
		t.Errorf("the table of streams says %d records", n)
	}
	_, err = fs.PauseDestination(t.Context(), "out", true)
	w.must(err)
	w.collect("a", `{"id":"a","n":10}`)
	fs.Close()
	fs = w.open()
	if d, err := fs.Destination(t.Context(), "out"); err != nil || d.State != "paused" || d.Behind != 1 {
		t.Errorf("%+v %v", d, err)
	}
	_, err = fs.PauseDestination(t.Context(), "out", false)
	w.must(err)
	w.until(fs, "out", "current again", current)
	if n := w.count(path, "SELECT sum(n) FROM mail_items"); n != 12 {
		t.Errorf("a sum of %d", n)
	}
	w.must(fs.RemoveDestination(t.Context(), "out"))
	if _, err := fs.Destination(t.Context(), "out"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after it was removed: %v", err)
	}
	if len(w.secrets.of) != 0 {
		t.Errorf("its URL is still kept: %d", len(w.secrets.of))
	}
}

// TestFailing: a destination that fails says why, without its password, holds up no
// other, and goes on when it can.
func TestFailing(t *testing.T) {
	kind := &broken{}
	w := newWorld(t, kind)
	fs := w.open()
	dir := t.TempDir()
	_, err := fs.AddDestination(t.Context(),
		host.NewDestination{Name: "bad", URL: "broken:" + filepath.Join(dir, "bad.db") + "?hunter2"})
	w.must(err)
	_, err = fs.AddDestination(t.Context(),
		host.NewDestination{Name: "good", URL: "sqlite:" + filepath.Join(dir, "good.db")})
	w.must(err)
	w.until(fs, "bad", "current", current)
	_, err = fs.PauseDestination(t.Context(), "bad", true) // which closes it
	w.must(err)
	kind.set(errors.Join(errors.New("the server refused the password"), errors.New("it said no")))
	w.collect("a", `{"id":"a","n":1}`)
	_, err = fs.PauseDestination(t.Context(), "bad", false)
	w.must(err)
	d := w.until(fs, "bad", "waiting", func(d host.Destination) bool { return d.State == "waiting" && d.NextTry != nil })
	if d.Error != "the server refused the password; it said no" || d.Behind != 1 {
		t.Errorf("%+v", d)
	}
	w.until(fs, "good", "current", func(d host.Destination) bool { return current(d) && len(d.Tables) == 1 })
	all, err := fs.Destinations(t.Context())
	w.must(err)
	if text, _ := json.Marshal(all); strings.Contains(string(text), "hunter2") {
		t.Errorf("the password is shown: %s", text)
	}
	kind.set(nil)
	d, err = fs.SyncDestination(t.Context(), "bad")
	if err != nil || !current(d) {
		t.Errorf("%+v %v", d, err)
	}
	if _, err := fs.AddDestination(t.Context(),
		host.NewDestination{Name: "worse", URL: "sqlite:relative.db"}); err == nil {
		t.Error("a relative path is taken")
	}
	kind.set(errors.New("no route"))
	var refusal *host.Refusal
	if _, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "worse", URL: "broken:x"}); !errors.As(err,
		&refusal) || refusal.Code != "destination_unavailable" {
		t.Errorf("one that cannot be reached: %v", err)
	}
}

// TestOrder: what is asked at once is all done, and nothing brings back what is removed.
func TestOrder(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	w := newWorld(t, sender.Kind{Courier: webhook.NewCourier(webhook.Options{AllowLoopback: true})})
	fs := w.open()
	for round := range 20 {
		name := fmt.Sprint("hook", round)
		_, err := fs.AddDestination(t.Context(),
			host.NewDestination{Name: name, URL: "webhook:" + server.URL + "#a secret of mine"})
		w.must(err)
		var all sync.WaitGroup
		all.Go(func() { _, err := fs.PauseDestination(t.Context(), name, true); w.check(err) })
		all.Go(func() { _, err := fs.RotateDestination(t.Context(), name, "another secret"); w.check(err) })
		all.Wait()
		doc, err := w.store.Document(t.Context(), store.Destinations, name)
		w.must(err)
		if text := string(doc.Data); !strings.Contains(text, `"paused":true`) || !strings.Contains(text, `"secret_until"`) {
			t.Fatalf("one of two changes is lost: %s", text)
		}
		all.Go(func() { _, _ = fs.PauseDestination(t.Context(), name, false) }) // it may come too late
		all.Go(func() { w.check(fs.RemoveDestination(t.Context(), name)) })
		all.Wait()
		if _, err := w.store.Document(t.Context(), store.Destinations, name); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("a removed one is back: %v", err)
		}
	}
}

// TestRunThatBroughtNothing: the table of streams tells of the last run, whatever it did.
func TestRunThatBroughtNothing(t *testing.T) {
	w := newWorld(t)
	fs := w.open()
	path := filepath.Join(t.TempDir(), "out.db")
	w.collect("a", `{"id":"a"}`)
	_, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "out", URL: "sqlite:" + path})
	w.must(err)
	w.until(fs, "out", "current", current)
	ended := time.Now()
	w.commit(&store.Commit{End: true,
		Run: &store.Run{ID: w.lease.RunID, ConnectionID: "mail", Status: "succeeded", FinishedAt: &ended,
			Result: json.RawMessage(`{"outcome":"partial"}`)}})
	_, err = fs.SyncDestination(t.Context(), "out")
	w.must(err)
	if n := w.count(path, "SELECT count(*) FROM _sluice_streams WHERE left_out AND ended_at IS NOT NULL"); n != 1 {
		t.Errorf("%d rows tell how the last run ended", n)
	}
}

// TestUnknownNames: slips are refused with the names that there are.
func TestUnknownNames(t *testing.T) {
	w := newWorld(t)
	fs := w.open()
	w.collectOf("others", "a", `{"id":"a"}`)
	for want, q := range map[string]host.DestinationTerms{
		"there is no connection nosuch; there are: mail":         {Connections: []string{"mail", "nosuch"}},
		"stream item; there are: items, mail/items, mail/others": {Streams: []string{"items", "item"}},
		"stream nosuch/items; there are: items":                  {StreamModes: map[string]string{"nosuch/items": "history"}},
		"": {Connections: []string{"mail"},
			Streams: []string{"mail/items", "others"}, StreamModes: map[string]string{"items": "history"}},
	} {
		_, err := fs.AddDestination(t.Context(),
			host.NewDestination{Name: "out", URL: "sqlite:" + filepath.Join(t.TempDir(), "out.db"), DestinationTerms: q})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// deaf is a kind whose server takes a connection and says nothing.
type deaf struct {
	sqlite.Kind
	reached chan struct{}
}

func (deaf) Scheme() string { return "deaf:" }

func (deaf) Check(url, _ string) (string, error) { return url, nil }

func (k deaf) Open(ctx context.Context, _ string, _ destination.Owner) (destination.Sink, error) {
	close(k.reached)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAddingHoldsUpNothing: while a destination is being reached, the others are there.
func TestAddingHoldsUpNothing(t *testing.T) {
	kind := deaf{reached: make(chan struct{})}
	w := newWorld(t, kind)
	fs := w.open()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := fs.AddDestination(ctx, host.NewDestination{Name: "deaf", URL: "deaf:x"})
		ended <- err
	}()
	<-kind.reached
	if all, err := fs.Destinations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%+v %v", all, err)
	}
	_, err := fs.AddDestination(t.Context(),
		host.NewDestination{Name: "good", URL: "sqlite:" + filepath.Join(t.TempDir(), "good.db")})
	w.must(err)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("adding ended with %v", err)
	}
}

// TestMarksInTheHost: what a server took is not sent again after a restart, and a
// destination that was removed begins anew under its name.
func TestMarksInTheHost(t *testing.T) {
	var mu sync.Mutex
	var bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(raw))
	}))
	defer server.Close()
	w := newWorld(t, sender.Kind{Courier: webhook.NewCourier(webhook.Options{AllowLoopback: true})})
	add := func(fs *destination.Feeds) {
		_, err := fs.AddDestination(t.Context(),
			host.NewDestination{Name: "hook", URL: "webhook:" + server.URL + "#a secret of mine"})
		w.must(err)
		w.until(fs, "hook", "current", current)
	}
	sent := func() (n int, last string) {
		mu.Lock()
		defer mu.Unlock()
		if len(bodies) > 0 {
			last = bodies[len(bodies)-1]
		}
		return len(bodies), last
	}
	fs := w.open()
	w.collect("a", `{"id":"a","n":1}`)
	add(fs)
	fs.Close()
	fs = w.open()
	d, err := fs.SyncDestination(t.Context(), "hook")
	w.must(err)
	if n, last := sent(); n != 1 || d.Error != "" || !strings.Contains(last, `"data":{"id":"a","n":1}`) {
		t.Errorf("%d bodies, %s, %+v", n, last, d)
	}
	w.must(fs.RemoveDestination(t.Context(), "hook"))
	docs, err := w.store.Documents(t.Context(), store.DocumentQuery{Kind: store.Delivered})
	if err != nil || len(docs) != 0 {
		t.Errorf("of a destination that was removed: %v, %v", docs, err)
	}
	add(fs)
	if n, last := sent(); n != 2 || !strings.Contains(last, `"fromVersion":0,"toVersion":1,`) {
		t.Errorf("%d bodies, %s", n, last)
	}
	_, err = fs.RebuildDestination(t.Context(), "hook", "", "")
	w.must(err)
	if n, _ := sent(); n != 4 || !strings.Contains(bodies[2], `"type":"records.cleared"`) {
		t.Errorf("%d bodies: %s", n, bodies)
	}
}

// An early store has a clock that is ahead of this machine's.
type early struct{ store.Store }

func (early) Now() time.Time { return time.Now().Add(10 * time.Minute) }

// What is stored of a destination goes by the clock of the store, for another host may go on with it.
func TestClockOfTheStore(t *testing.T) {
	w := newWorld(t)
	st := early{w.store}
	fs, err := destination.Open(t.Context(),
		destination.Options{Store: st, Secrets: w.secrets, Kinds: w.kinds, Host: "host-1"})
	w.must(err)
	t.Cleanup(fs.Close)
	d, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "out", URL: "sqlite:" + filepath.Join(t.TempDir(), "out.db")})
	w.must(err)
	if d.CreatedAt.Before(st.Now().Add(-time.Minute)) {
		t.Errorf("it was made at %s, which is %s", d.CreatedAt, st.Now())
	}
}
