//go:build unix

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// start begins a run of a connection.
func start(t *testing.T, s store.Store, c string) store.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(),
		store.Run{ID: store.RunID("run_" + c), ConnectionID: store.ConnectionID(c), Status: "active"}, "host",
		"boot", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// flush submits one record and the event that announces it.
func flush(t *testing.T, s store.Store, l store.Lease, i int) *store.Receipt {
	t.Helper()
	b := &store.Batch{Stream: "s"}
	b.Append(store.Change{Key: fmt.Appendf(nil, "k%d", i), Data: []byte(`{}`)})
	r, err := s.Submit(t.Context(), &store.Commit{Lease: l, Batches: []*store.Batch{b},
		Events: []store.Event{{ID: store.EventID(fmt.Sprint("evt_", i)), Type: "run.batch_ingested", RunID: l.RunID,
			Data: json.RawMessage(`{}`)}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// all waits for receipts, and checks that each commit is there, once.
func all(t *testing.T, s store.Store, l store.Lease, receipts []*store.Receipt) {
	t.Helper()
	for i, r := range receipts {
		ack, err := r.Result()
		if err != nil {
			t.Fatalf("commit %d: %v", i, err)
		}
		if ack.FirstSequence != uint64(i) || ack.Changed != 1 {
			t.Fatalf("commit %d: %+v", i, ack)
		}
	}
	head, err := s.RunHead(t.Context(), l.RunID)
	if err != nil || head.Next != uint64(len(receipts)) {
		t.Fatalf("%d events, %v; want %d", head.Next, err, len(receipts))
	}
	if err := s.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A said is what a store logs.
type said chan string

func (s said) options() postgres.Options {
	return postgres.Options{Logger: slog.New(slog.NewTextHandler(s, nil))}
}

func (s said) Write(b []byte) (int, error) {
	select {
	case s <- string(b):
	default:
	}
	return len(b), nil
}

// wait waits until the store has logged text.
func (s said) wait(t *testing.T, text string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line := <-s:
			if strings.Contains(line, text) {
				return
			}
		case <-late:
			t.Fatalf("the store does not say %q", text)
		}
	}
}

func opened(t *testing.T, url string, o postgres.Options) store.Store {
	t.Helper()
	s, err := postgres.OpenURL(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestServerKilled kills the server again and again under a run.
func TestServerKilled(t *testing.T) {
	pg := server.Start(t)
	log := make(said, 100)
	s := opened(t, pg.Database(t), log.options())
	l := start(t, s, "a")
	var receipts []*store.Receipt
	for i := range 3 {
		for range 40 {
			receipts = append(receipts, flush(t, s, l, len(receipts)))
		}
		if err := pg.Crash(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := s.Run(t.Context(), l.RunID); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a read without a server: %v", err)
			}
		}
		receipts = append(receipts, flush(t, s, l, len(receipts)))
		log.wait(t, "database_unavailable")
		if err := pg.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := receipts[len(receipts)-1].Result(); err != nil {
			t.Fatal(err)
		}
	}
	all(t, s, l, receipts)
}

// TestAnswerLost cuts the connection around COMMIT.
func TestAnswerLost(t *testing.T) {
	for _, how := range []server.Cut{server.Before, server.After} {
		t.Run(string(how), func(t *testing.T) {
			pg := server.Shared(t)
			p := pg.Proxy(t)
			s := opened(t, p.Through(t, pg.Database(t))+weak, postgres.Options{})
			l := start(t, s, "a")
			var receipts []*store.Receipt
			for i := range 10 {
				p.CutNext(how)
				receipts = append(receipts, flush(t, s, l, i))
				if _, err := receipts[i].Result(); err != nil {
					t.Fatal(err)
				}
			}
			p.CutNext(how)
			if err := s.Write(t.Context(),
				store.Write{Kind: store.Webhooks, ID: "x", Data: json.RawMessage(`1`), If: store.Absent()}); err != nil {
				t.Fatal(err)
			}
			p.CutNext(how)
			other := start(t, s, "b")
			all(t, s, l, receipts)
			for what, do := range whatCommits(t, s, l, other) {
				p.CutNext(how)
				if err := do(); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			if p.Cuts() != 12+12 {
				t.Errorf("%d connections were cut", p.Cuts())
			}
			if err := s.Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// whatCommits is everything else that a store makes durable, in an order in which each does something.
func whatCommits(t *testing.T, s store.Store, l, other store.Lease) iter.Seq2[string, func() error] {
	ctx := t.Context()
	finish := func(c *store.Commit) func() error {
		return func() error {
			r, err := s.Submit(ctx, c)
			if err == nil {
				_, err = r.Result()
			}
			return err
		}
	}
	var file store.StagedFile
	var digest store.Digest
	return func(yield func(string, func() error) bool) {
		_ = yield("connector", func() error { return s.PutConnector(ctx, store.Connector{ID: "c"}) }) &&
			yield("connector gone", func() error { return s.DeleteConnector(ctx, "c", false) }) &&
			yield("pin", func() error { return s.PutPin(ctx, store.Pin{ConnectorID: "c"}) }) &&
			yield("connection", func() error { return s.PutConnection(ctx, store.Connection{ID: "a"}) }) &&
			yield("change", func() error {
				_, err := s.ChangeConnection(ctx, "a", func(c *store.Connection) error { c.Revision++; return nil })
				if c, again := s.Connection(ctx, "a"); err == nil && c.Revision != 1 {
					err = fmt.Errorf("revision %d, %v", c.Revision, again)
				}
				return err
			}) &&
			yield("takeover", func() (err error) {
				fence := other.Fence
				other, err = s.TakeOver(ctx, other, "host-2", "boot-2", time.Minute)
				if err == nil && other.Fence != fence+1 {
					err = fmt.Errorf("fence %d after %d", other.Fence, fence)
				}
				return err
			}) &&
			yield("piece of a file", func() (err error) {
				if file, err = s.(store.Files).StageFile(ctx, "a"); err == nil {
					if _, err = file.Write(make([]byte, 600<<10)); err == nil {
						digest, _, err = file.Finish()
					}
				}
				return err
			}) &&
			yield("file", func() error {
				b := &store.Batch{Stream: "files"}
				b.Append(store.Change{Key: []byte("f"), Data: []byte(`{}`)})
				b.Hold([]store.Held{{Field: "f", File: store.File{Digest: digest, Size: 600 << 10}}})
				return finish(&store.Commit{Lease: l, Batches: []*store.Batch{b}, Files: []store.StagedFile{file}})()
			}) &&
			yield("end", func() error {
				return finish(&store.Commit{Lease: l, Run: &store.Run{ID: l.RunID, ConnectionID: "a", Status: "succeeded"},
					End:     true,
					Advance: []store.State{{Stream: "s", Cursor: json.RawMessage("1")}}})()
			}) &&
			yield("reset", func() error { return s.ResetState(ctx, "a", "", "s") }) &&
			yield("prune", func() error { return s.Prune(ctx, l.RunID) }) &&
			yield("erasure", func() error { return s.DeleteConnection(ctx, "a", true) })
	}
}

// TestOutage is longer than the store waits: the commit fails, and what comes later does not.
func TestOutage(t *testing.T) {
	pg := server.Start(t)
	s := opened(t, pg.Database(t)+"&outage_wait=50ms", postgres.Options{})
	l := start(t, s, "a")
	if err := pg.Crash(); err != nil {
		t.Fatal(err)
	}
	if _, err := flush(t, s, l, 0).Result(); err == nil || !strings.Contains(err.Error(), "gave up after 50ms") {
		t.Fatalf("a commit without a server: %v", err)
	}
	if err := pg.Start(); err != nil {
		t.Fatal(err)
	}
	all(t, s, l, []*store.Receipt{flush(t, s, l, 0)})
}

// TestDiskFull has the server say so, and then not any more.
func TestDiskFull(t *testing.T) {
	url := server.New(t)
	s := opened(t, url+weak, postgres.Options{})
	l := start(t, s, "a")
	admin := connect(t, url)
	run(t, admin, `set search_path to sluice_store;
		create function full_disk() returns trigger language plpgsql as $$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$;
		create trigger full_disk before update on lease for each row execute function full_disk()`)
	r := flush(t, s, l, 0)
	for store.Stalled(s) == nil {
		select {
		case <-r.Done():
			_, err := r.Result()
			t.Fatalf("a commit on a full disk: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := store.Stalled(s); !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("stalled: %v", err)
	}
	run(t, admin, "drop trigger full_disk on lease")
	all(t, s, l, []*store.Receipt{r})
	if err := store.Stalled(s); err != nil {
		t.Fatalf("stalled: %v", err)
	}
}

// TestCloseFull closes a store whose server has no room: it ends, and so does what waits.
func TestCloseFull(t *testing.T) {
	url := server.New(t)
	s := opened(t, url+weak, postgres.Options{})
	l := start(t, s, "a")
	run(t, connect(t, url), `set search_path to sluice_store;
		create function full_disk() returns trigger language plpgsql as $$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$;
		create trigger full_disk before update on lease for each row execute function full_disk()`)
	r := flush(t, s, l, 0)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Result(); !errors.Is(err, store.ErrNoSpace) {
		t.Fatalf("a commit on a full disk: %v", err)
	}
}

// TestRefusedInGroup has one of several commits that go into one transaction be refused: those
// before it are there, it and those behind it are not.
func TestRefusedInGroup(t *testing.T) {
	url, log := server.New(t), make(said, 100)
	s := opened(t, url+weak+"&lock_timeout=100ms&fail_state=u", log.options())
	l := start(t, s, "a")
	admin := connect(t, url)
	run(t, admin, "begin; select from sluice_store.lease for update")
	var receipts []*store.Receipt
	for i := range 9 {
		if i == 6 {
			r, err := s.Submit(t.Context(),
				&store.Commit{Lease: l, Advance: []store.State{{Stream: "u", Cursor: json.RawMessage(`1`)}}})
			if err != nil {
				t.Fatal(err)
			}
			receipts = append(receipts, r)
			continue
		}
		receipts = append(receipts, flush(t, s, l, i))
	}
	log.wait(t, "database_unavailable")
	run(t, admin, "commit")
	for i, r := range receipts[6:] {
		var refused *store.StateError
		if _, err := r.Result(); !errors.As(err, &refused) || refused.Stream != "u" {
			t.Fatalf("commit %d: %v", 6+i, err)
		}
	}
	all(t, s, l, receipts[:6])
	all(t, s, l, append(receipts[:6], flush(t, s, l, 6)))
}

// TestLocked has another program hold the row of a lease for longer than a statement may wait.
func TestLocked(t *testing.T) {
	for _, bound := range []string{"&lock_timeout=50ms", "&statement_timeout=200ms"} {
		url, log := server.New(t), make(said, 100)
		s := opened(t, url+weak+bound, log.options())
		l := start(t, s, "a")
		admin := connect(t, url)
		run(t, admin, "begin; select from sluice_store.lease for update")
		r := flush(t, s, l, 0)
		log.wait(t, "database_unavailable")
		run(t, admin, "commit")
		all(t, s, l, []*store.Receipt{r})
	}
}

// TestRolledBack has the server forget a commit, as a standby that took over may.
func TestRolledBack(t *testing.T) {
	url := server.New(t)
	s := opened(t, url+weak, postgres.Options{})
	l := start(t, s, "a")
	all(t, s, l, []*store.Receipt{flush(t, s, l, 0)})
	run(t, connect(t, url), "update sluice_store.lease set commits = 0, next = 0")
	var sink *store.SinkError
	if _, err := flush(t, s, l, 1).Result(); !errors.As(err, &sink) || sink.Code != "engine_rolled_back" ||
		!errors.Is(err, postgres.ErrRolledBack) {
		t.Fatalf("a commit behind one that is lost: %v", err)
	}
}

// TestDamage has somebody change a record behind the store's back.
func TestDamage(t *testing.T) {
	for _, sql := range []string{
		"update sluice_store.records_1 set data = '[]'", "delete from sluice_store.records_1",
		"update sluice_store.stream set live = 7", "delete from sluice_store.timeline_%d where seq = 0",
	} {
		url := server.New(t)
		s := opened(t, url+weak, postgres.Options{})
		l := start(t, s, "a")
		all(t, s, l, []*store.Receipt{flush(t, s, l, 0), flush(t, s, l, 1)})
		if strings.Contains(sql, "%d") {
			sql = fmt.Sprintf(sql, time.Now().Unix()/(7*24*3600))
		}
		run(t, connect(t, url), sql)
		var damage *store.DamageError
		if err := s.Verify(t.Context()); !errors.As(err, &damage) {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// connect is a connection of somebody else.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func run(t *testing.T, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// A server that crashes gives the number of a transaction that left no trace to another one. That
// the other one is durable says nothing of the first.
func TestNumberGivenAgain(t *testing.T) {
	d := server.Start(t, "wal_writer_delay=10s", "fsync=off", "full_page_writes=off")
	at := d.Database(t)
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	s := opened(t, at+"&durability=weak", postgres.Options{}).(*postgres.Store)
	name := strings.TrimPrefix(u.Path, "/")
	for range 20 {
		number, durable, err := s.Unanswered(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.Crash(), d.Start()); err != nil {
			t.Fatal(err)
		}
		count := func(sql string) uint64 {
			n, err := strconv.ParseUint(d.Exec(t, name, sql), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		// or a heartbeat took its trace along
		given := count("select split_part(next_xid, ':', 2) from pg_control_checkpoint()") <= number
		for count("select pg_current_xact_id()") < number {
		}
		if err := durable(); err == nil {
			t.Fatalf("transaction %d was lost, and is said to be durable; its number was given again: %v", number, given)
		}
		if given {
			return
		}
	}
	t.Fatal("no transaction was lost without a trace")
}

// TestHangUp: whoever gives up on a read costs the store that connection, and no other.
func TestHangUp(t *testing.T) {
	s := opened(t, databaseOf(t, t.TempDir()), postgres.Options{}).(*postgres.Store)
	together := func(n int, read func()) {
		var reading sync.WaitGroup
		for range n {
			reading.Go(read)
		}
		reading.Wait()
	}
	together(4, func() {
		if err := s.Sleep(t.Context(), 0.5); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		before := s.Idle()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		if err := s.Sleep(ctx, 60); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if now := s.Idle(); now < before-1 {
			t.Errorf("%d connections of %d are left", now, before)
		}
	}
}
