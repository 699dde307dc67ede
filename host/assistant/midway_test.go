package assistant_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A midway store does something before one of the reads of those who ask it.
type midway struct {
	store.Store

	mu   sync.Mutex // guards what follows
	left int        // reads until then; 0: never
	do   func()
}

func (m *midway) at(n int, do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.do = n, do
}

// waits reports whether it is still to be done.
func (m *midway) waits() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left > 0
}

func (m *midway) read() {
	m.mu.Lock()
	do := func() {}
	if m.left > 0 {
		if m.left--; m.left == 0 {
			do = m.do
		}
	}
	m.mu.Unlock()
	do()
}

func (m *midway) Connection(ctx context.Context, id store.ConnectionID) (store.Connection, error) {
	m.read()
	return m.Store.Connection(ctx, id)
}

func (m *midway) Streams(ctx context.Context, id store.ConnectionID) ([]store.StreamStats, error) {
	m.read()
	return m.Store.Streams(ctx, id)
}

func (m *midway) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	m.read()
	return m.Store.Records(ctx, q)
}

func (m *midway) Record(ctx context.Context, id store.ConnectionID, stream store.Stream,
	key string) (store.Record, error) {
	m.read()
	return m.Store.Record(ctx, id, stream, key)
}

func (m *midway) Runs(ctx context.Context, id store.ConnectionID, before store.RunID, limit int) ([]store.Run, error) {
	m.read()
	return m.Store.Runs(ctx, id, before, limit)
}

// through has the gateway read through a midway store.
func (w *world) through() *midway {
	w.Helper()
	w.gateway.CloseAssistants()
	m := &midway{Store: w.store}
	w.store = m
	w.must(w.open())
	return m
}

// remake erases the connection, and makes another of its name, whose records nobody was granted.
func (w *world) remake() {
	w.Helper()
	raw := w.store.(*midway).Store
	c, err := raw.Connection(w.Context(), "mail")
	w.must(err)
	w.must(raw.DeleteConnection(w.Context(), "mail", true))
	c.CreatedAt = c.CreatedAt.Add(time.Second)
	w.must(raw.PutConnection(w.Context(), c))
	w.collectIn(raw, "mail", "messages", `a {"id":"a","folder":"work","subject":"`+secret+
		` budget","at":"2026-03-01T00:00:00Z"}`)
}

// TestMidway ends a grant before each read of each call: what is told is nothing.
func TestMidway(t *testing.T) {
	mail := object{"connection": "mail", "stream": "messages"}
	calls := map[string]func(*world, *mcp.ClientSession) (string, bool){
		"schema": func(w *world, s *mcp.ClientSession) (string, bool) {
			r, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "sluice://schemas/mail/messages"})
			if err != nil {
				return err.Error(), false
			}
			return r.Contents[0].Text, true
		},
	}
	for tool, args := range map[string]object{"data": {}, "runs": {}, "list_records": mail, "changes_since": mail,
		"search":     {"words": "budget"},
		"get_record": {"connection": "mail", "stream": "messages", "key": "a"},
		"query":      {"sql": "SELECT * FROM mail.messages"}} {
		calls[tool] = func(w *world, s *mcp.ClientSession) (string, bool) { return w.call(s, tool, args) }
	}
	for what, end := range map[string]func(*world){
		"revoked": func(w *world) { _, err := w.gateway.RevokeAssistant(t.Context(), "notes"); w.must(err) },
		"expired": func(w *world) { w.mu.Lock(); w.now = w.now.Add(time.Hour); w.mu.Unlock() },
		"remade":  (*world).remake,
		"narrowed": func(w *world) {
			_, err := w.store.ChangeConnection(t.Context(), "mail", func(c *store.Connection) error {
				c.Manifest = json.RawMessage(strings.ReplaceAll(manifest, `"resource_field":"folder"`,
					`"resource_field":"subject"`))
				return nil
			})
			w.must(err)
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			m := w.through()
			for name, call := range calls {
				fired := 0
				for n := 1; ; n++ {
					w.put("mail", `a {"id":"a","folder":"work","subject":"quarterly budget","at":"2026-03-01T00:00:00Z"}`)
					ends := w.clock().Add(time.Hour)
					w.add("notes", func(q *host.NewAssistant) { q.ExpiresAt = &ends })
					s := w.connect("notes")
					m.at(n, func() { end(w) })
					text, ok := call(w, s)
					missed := m.waits()
					m.at(0, nil)
					if strings.Contains(text, secret) || ok && !missed && n > 1 { // before the first, the call has not begun
						t.Errorf("%s, before read %d: %s", name, n, text)
					}
					if missed && !ok {
						t.Errorf("%s: %s", name, text)
					}
					_, err := w.gateway.RevokeAssistant(t.Context(), "notes")
					w.must(err)
					if missed {
						break
					}
					fired++
				}
				if fired < 2 {
					t.Errorf("%s reads %d times: it is not looked again", name, fired)
				}
			}
		})
	}
}

// put leaves a connection with the manifest and one record.
func (w *world) put(id store.ConnectionID, record string) {
	w.Helper()
	raw := w.store.(*midway).Store
	c, err := raw.Connection(w.Context(), id)
	w.must(err)
	w.must(raw.DeleteConnection(w.Context(), id, true))
	c.CreatedAt, c.Manifest = c.CreatedAt.Add(time.Second), json.RawMessage(manifest)
	w.must(raw.PutConnection(w.Context(), c))
	w.collectIn(raw, id, "messages", record)
}

// TestForgotten: of a connection that is removed nothing is left in the files of assistants, of
// those that work and of those that do not.
func TestForgotten(t *testing.T) {
	w := newWorld(t)
	w.add("works")
	w.add("sleeps")
	for _, name := range []string{"works", "sleeps"} {
		s := w.connect(name)
		for _, tool := range []string{"query", "search"} {
			if text, ok := w.call(s, tool,
				map[string]object{"query": {"sql": "SELECT * FROM mail.messages"}, "search": {"words": "quarterly"}}[tool]); !ok {
				t.Fatal(text)
			}
		}
	}
	holds := func() (n int) {
		w.must(filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if strings.Contains(string(b), "quarterly") {
				n++
			}
			return err
		}))
		return n
	}
	if holds() < 4 {
		t.Fatalf("%d files hold the record", holds())
	}
	w.gateway.CloseAssistants() // the copies stay for the next start
	w.must(w.open())
	if text, ok := w.call(w.connect("works"), "query", object{"sql": "SELECT count(*) FROM mail.messages"}); !ok {
		t.Fatal(text)
	}
	w.must(w.store.DeleteConnection(t.Context(), "mail", true))
	w.must(w.gateway.Forget("mail"))
	if n := holds(); n > 0 {
		t.Errorf("%d files hold a record of a connection that was erased", n)
	}
}

// TestAllAtOnce: however many assistants there are, as many queries work as of one host.
func TestAllAtOnce(t *testing.T) {
	const assistants, atOnce = 7, 4
	w := newWorld(t)
	m := w.through()
	in, leave := make(chan struct{}, 100), make(chan struct{})
	var mu sync.Mutex
	working, most := 0, 0
	b := &blocked{midway: m, before: func() {
		mu.Lock()
		working++
		most = max(most, working)
		mu.Unlock()
		in <- struct{}{}
		<-leave
		mu.Lock()
		working--
		mu.Unlock()
	}}
	w.gateway.CloseAssistants()
	w.store = b
	w.must(w.open())
	var all sync.WaitGroup
	for i := range assistants {
		name := fmt.Sprint("a", i)
		w.add(name)
		s := w.connect(name)
		all.Go(func() {
			if text, ok := w.call(s, "query", object{"sql": "SELECT count(*) FROM mail.messages"}); !ok {
				t.Error(text)
			}
		})
	}
	for range atOnce {
		<-in
	}
	close(leave)
	all.Wait()
	if most != atOnce {
		t.Errorf("%d queries worked at once, want %d", most, atOnce)
	}
}

// A blocked store calls before ahead of each page of records.
type blocked struct {
	*midway
	before func()
}

func (b *blocked) Records(ctx context.Context, q store.RecordQuery) (store.RecordPage, error) {
	b.before()
	return b.midway.Records(ctx, q)
}
