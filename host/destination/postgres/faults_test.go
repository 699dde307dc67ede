//go:build unix

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/destinationtest"
	"github.com/sluicehost/sluice/host/destination/postgres"
	"github.com/sluicehost/sluice/store"
	server "github.com/sluicehost/sluice/tests/postgres"
)

var (
	owner  = destination.Owner{Host: "host-1", Destination: "d"}
	stream = destination.StreamID{Connection: "mail", Stream: "items"}
	since  = time.Unix(1_700_000_000, 0).UTC()
)

// A source is a stream in memory; its changes are numbered from 1.
type source struct{ changes []store.Record }

func (s *source) put(key, data string) {
	s.changes = append(s.changes,
		store.Record{Key: key, Data: json.RawMessage(data), Deleted: data == "", Stream: stream.Stream,
			Version: uint64(len(s.changes) + 1), IngestedAt: since.Add(time.Duration(len(s.changes)) * time.Second)})
}

// random is n changes that are always the same.
func random(n int) *source {
	r := rand.New(rand.NewPCG(3, 4))
	s := &source{}
	for range n {
		key, data := fmt.Sprintf("k%03d", r.IntN(150)), ""
		if r.IntN(5) > 0 {
			data = fmt.Sprintf(`{"n":%d,"text":%q}`, r.IntN(1000), strings.Repeat("x", r.IntN(300)))
		}
		s.put(key, data)
	}
	return s
}

// now is the newest version of each key among the first changes.
func (s *source) now(through uint64) []store.Record {
	newest := map[string]store.Record{}
	for _, r := range s.changes[:through] {
		newest[r.Key] = r
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b store.Record) int { return int(a.Version) - int(b.Version) })
}

// Records implements destination.Source.
func (s *source) Records(_ context.Context, q store.RecordQuery) (store.RecordPage, error) {
	last := uint64(len(s.changes))
	page := store.RecordPage{Version: last, After: q.After}
	for _, r := range s.now(last) {
		if r.Version <= q.After {
			continue
		}
		if len(page.Records) == q.Limit {
			page.More = true
			break
		}
		page.Records, page.After = append(page.Records, r), r.Version
	}
	return page, nil
}

func (s *source) bring(ctx context.Context, sink destination.Sink, mode destination.Mode) error {
	holdings, err := sink.Holdings(ctx)
	if err != nil {
		return err
	}
	var have *destination.Holding
	if h, ok := holdings[stream]; ok {
		have = &h
	}
	w := destination.Wanted{StreamID: stream, Since: since, Mode: mode, Last: uint64(len(s.changes))}
	return destination.Bring(ctx, s, sink, w, have, func(int) {})
}

// A proxy stands before the server, and breaks connections after so many bytes.
type proxy struct {
	listener net.Listener
	left     atomic.Int64 // bytes until the next break; no break below zero
	deaf     atomic.Bool  // nothing passes any more
	breaks   atomic.Int64
}

func newProxy(t *testing.T, s *server.Server) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l}
	p.left.Store(-1)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			d, err := s.Dial(ctx)
			if err != nil {
				_ = c.Close()
				continue
			}
			both := func() { _, _ = c.Close(), d.Close() }
			context.AfterFunc(ctx, both)
			for _, way := range [][2]net.Conn{{c, d}, {d, c}} {
				all.Go(func() {
					defer both()
					p.pass(way[0], way[1])
				})
			}
		}
	})
	return p
}

// pass copies until the connection is to break.
func (p *proxy) pass(from, to net.Conn) {
	buf := make([]byte, 700)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		for p.deaf.Load() {
			time.Sleep(time.Millisecond)
			if _, err := to.Write(nil); err != nil {
				return
			}
		}
		if left := p.left.Load(); left >= 0 {
			if left = p.left.Add(int64(-n)); left < 0 {
				p.breaks.Add(1)
				_, _ = to.Write(buf[:max(0, n+int(left))])
				if tcp, ok := from.(*net.TCPConn); ok && left%2 == 0 {
					_ = tcp.SetLinger(0)
				}
				return
			}
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// url leads through the proxy.
func (p *proxy) url(t *testing.T, direct string) string {
	t.Helper()
	return with(t, direct, "host", "127.0.0.1", "port", fmt.Sprint(p.listener.Addr().(*net.TCPAddr).Port),
		"sslmode", "disable")
}

// TestBreaks breaks the connection at random bytes, in every mode, and compares the table
// with what its mark says.
func TestBreaks(t *testing.T) {
	s := server.Shared(t)
	for _, mode := range destination.Modes {
		t.Run(string(mode), func(t *testing.T) {
			direct := server.New(t)
			p := newProxy(t, s)
			url := p.url(t, direct)
			r := rand.New(rand.NewPCG(5, 6))
			var sink destination.Sink
			defer func() {
				if sink != nil {
					_ = sink.Close()
				}
			}()
			brought := 0
			for p.breaks.Load() < 60 {
				p.left.Store(int64(r.IntN(12_000)))
				var err error
				if sink == nil {
					sink, err = postgres.Kind{}.Open(t.Context(), url, owner)
				}
				for err == nil && p.left.Load() >= 0 {
					brought += 30
					err = random(brought).bring(t.Context(), sink, mode)
				}
				p.left.Store(-1)
				if err != nil {
					if strings.Contains(err.Error(), s.Password) || !strings.Contains(err.Error(), "broke") {
						t.Fatalf("after a break: %v", err)
					}
					if sink != nil && r.IntN(2) == 0 {
						_ = sink.Close()
						sink = nil
					}
				}
				compare(t, direct, mode, max(brought, 1))
			}
			t.Logf("%d breaks, %d changes", p.breaks.Load(), brought)
		})
	}
}

// compare compares the table with what its mark says.
func compare(t *testing.T, at string, mode destination.Mode, changes int) {
	t.Helper()
	if one(t, at, "SELECT to_regclass('sluice._sluice_meta')") == "NULL" {
		return
	}
	// A transaction whose client is gone may be in the middle of its commit.
	exec(t, at, "SELECT FROM sluice._sluice_meta WHERE name = 'owner' FOR UPDATE")
	mark, err := strconv.Atoi(one(t, at, "SELECT max(number) FROM sluice._sluice_meta WHERE name LIKE 'stream:%'"))
	if err != nil {
		return
	}
	want := map[string]string{} // versions by key
	for _, r := range random(changes).now(uint64(mark)) {
		if !r.Deleted || mode == destination.CurrentDeleted {
			want[r.Key] = fmt.Sprintf("%d %t", r.Version, r.Deleted)
		}
	}
	got := map[string]string{}
	rows := read(t, at, "sluice", "mail_items")
	slices.SortFunc(rows, func(a, b map[string]string) int {
		return strings.Compare(fmt.Sprintf("%9s", a["_version"]), fmt.Sprintf("%9s", b["_version"]))
	})
	ended := map[string]string{}
	for _, row := range rows {
		key := row["_key"]
		if mode == destination.History {
			if end, before := ended[key]; before && (end == "" || end > row["_valid_from"]) {
				t.Errorf("%s is valid twice: until %s and from %s", key, end, row["_valid_from"])
			}
			if ended[key] = row["_valid_to"]; row["_valid_to"] != "" {
				continue
			}
		}
		if _, twice := got[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		got[key] = fmt.Sprintf("%s %t", row["_version"], row["_deleted_at"] != "")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("at %d (-want +got):\n%s", mark, diff)
	}
}

// TestUnheardCommit brings a batch in again whose commit nobody heard of.
func TestUnheardCommit(t *testing.T) {
	at := server.New(t)
	sink, err := postgres.Kind{}.Open(t.Context(), at, owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	b := batch(destination.History, `{"n":1}`)
	for range 2 {
		if err := sink.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if b.To.Table != "mail_items" || one(t, at, "SELECT count(*) FROM sluice.mail_items") != "1" {
		t.Errorf("%s, %s rows", b.To.Table, one(t, at, "SELECT count(*) FROM sluice.mail_items"))
	}
	from := b.To
	from.Mark = 77
	to := from
	to.Mark = 78
	if err := sink.Apply(t.Context(), &destination.Batch{ID: stream, From: &from, To: to}); err == nil ||
		!strings.Contains(err.Error(), "at version 1") {
		t.Errorf("a batch of another mark: %v", err)
	}
}

// batch is the first one of a stream, with one record.
func batch(mode destination.Mode, data ...string) *destination.Batch {
	b := &destination.Batch{ID: stream,
		To: destination.Holding{Mode: mode, Since: since, Shape: &destination.Shape{}, Mark: uint64(len(data))}}
	for i, d := range data {
		row := destination.Row{Key: fmt.Sprint("k", i), Version: uint64(i + 1), At: since}
		row.Values, row.Rest = b.To.Shape.Row([]byte(d), nil)
		b.Rows = append(b.Rows, row)
	}
	return b
}

// TestKillServer: the server is killed at random while it is fed, and comes back. The
// second host that has claimed the schema meanwhile is the one that goes on.
func TestKillServer(t *testing.T) {
	s := server.Start(t, "fsync=off")
	var databases []string
	for range destination.Modes {
		databases = append(databases, s.Database(t))
	}
	var brought int
	for n := range destinationtest.Kills(3) {
		at, mode := databases[n%len(databases)], destination.Modes[n%len(databases)]
		sink, err := postgres.Kind{}.Open(t.Context(), at, owner)
		if err != nil {
			t.Fatal(err)
		}
		fenced := sink
		if n%2 == 1 {
			if sink, err = (postgres.Kind{}).Open(t.Context(), at, owner); err != nil {
				t.Fatal(err)
			}
		}
		dead := make(chan error, 1)
		time.AfterFunc(time.Duration(rand.IntN(60))*time.Millisecond, func() { dead <- s.Crash() })
		for err == nil {
			brought += 20
			err = random(brought).bring(t.Context(), sink, mode)
		}
		if !slices.ContainsFunc([]string{"broke", "no server listens", "crashed", "shutting down", "takes no connections"},
			func(s string) bool { return strings.Contains(err.Error(), s) }) {
			t.Fatal(err)
		}
		if err := <-dead; err != nil {
			t.Fatal(err)
		}
		if _, err := sink.Holdings(t.Context()); err == nil || !strings.Contains(err.Error(), "no server listens at /") {
			t.Errorf("without a server: %v", err)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		compare(t, at, mode, max(brought, 1))
		if fenced != sink {
			if err := random(brought+20).bring(t.Context(), fenced, mode); !errors.Is(err, destination.ErrFenced) {
				t.Errorf("the first host after the second: %v", err)
			}
		}
		_, _ = sink.Close(), fenced.Close()
	}
	t.Logf("%d changes", brought)
}

// TestCancel: what waits for a server that says nothing ends with its context, and the
// destination goes on afterwards.
func TestCancel(t *testing.T) {
	direct := server.New(t)
	p := newProxy(t, server.Shared(t))
	sink, err := postgres.Kind{}.Open(t.Context(), p.url(t, direct), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if err := random(50).bring(t.Context(), sink, destination.Current); err != nil {
		t.Fatal(err)
	}
	p.deaf.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := random(90).bring(ctx, sink, destination.Current); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := (postgres.Kind{}).Open(short, p.url(t, direct), owner); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connecting: %v", err)
	}
	p.deaf.Store(false)
	if err := random(90).bring(t.Context(), sink, destination.Current); err != nil {
		t.Fatal(err)
	}
	compare(t, direct, destination.Current, 90)
}

// TestIdle: a connection that ended while nobody used it is made anew.
func TestIdle(t *testing.T) {
	at := server.New(t)
	sink := open(t, at)
	end := func() {
		exec(t, at, "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = 'sluice' AND datname = current_database()")
	}
	for n := range 3 {
		end()
		if _, err := sink.Holdings(t.Context()); err != nil {
			t.Fatal(err)
		}
		end()
		if err := sink.Describe(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := random((n+1)*10).bring(t.Context(), sink, destination.Current); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, at, destination.Current, 30)
}

// TestFence: a process that stands still in the middle of a transaction keeps another from
// taking over, and ends it there.
func TestFence(t *testing.T) {
	at := server.New(t)
	open := func() destination.Sink {
		s, err := postgres.Kind{}.Open(t.Context(), at, owner)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	// Many feed at the same time; each ends when the next has claimed.
	var all sync.WaitGroup
	for range 6 {
		sink := open()
		all.Go(func() {
			for n := 20; n <= 400; n += 20 {
				err := random(n).bring(t.Context(), sink, destination.Current)
				if errors.Is(err, destination.ErrFenced) {
					return
				}
				if err != nil && !strings.Contains(err.Error(), "the batch begins behind") {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if mark := one(t, at, "SELECT max(number) FROM sluice._sluice_meta WHERE name LIKE 'stream:%'"); mark != "400" {
		t.Errorf("the last one came to %s", mark)
	}
	compare(t, at, destination.Current, 400)
}
