//go:build unix

package postgres_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/postgres"
	server "github.com/sluicehost/sluice/tests/postgres"
)

// A server that is too old, a standby, and one behind a pooler are told by what they are.
func TestUnfit(t *testing.T) {
	if err := postgres.Unfit(150000, false, false); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"the server is PostgreSQL 14; version 15 or later is needed": postgres.Unfit(140011, false, false),
		"is a standby, which takes no changes; name the primary":     postgres.Unfit(170000, true, false),
		"a pooler stands between":                                    postgres.Unfit(150000, false, true),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}

// at is the URL of a database on another server.
func at(t *testing.T, text string, s *server.Server) string {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("host", s.Dir)
	u.RawQuery = q.Encode()
	return u.String()
}

// TestStandby has a standby follow the server: it is refused by what it is, the doctor tells of it, and
// once it was promoted without the last commits, these are missed: the run that made them fails, the
// next one goes on.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary := server.Start(t, "fsync=off", "full_page_writes=off", "wal_level=replica", "wal_keep_size=64MB")
	p := primary.Proxy(t)
	database := primary.Database(t)
	s := opened(t, p.Through(t, database)+weak, postgres.Options{})
	l := start(t, s, "a")
	all(t, s, l, []*store.Receipt{flush(t, s, l, 0)})

	standby := primary.Standby(t)
	caughtUp(t, primary)
	refused(t, at(t, database, standby)+weak, "is a standby, which takes no changes; name the primary")
	weaknesses, err := store.Weaknesses(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	told := false
	for _, w := range weaknesses {
		told = told || strings.Contains(w.Detail, "nobody waits for the database's standbys (1)") &&
			strings.Contains(w.Remedy, "synchronous_standby_names")
	}
	if !told {
		t.Errorf("the asynchronous standby is not told of: %+v", weaknesses)
	}

	if err := standby.Crash(); err != nil {
		t.Fatal(err)
	}
	if _, err := flush(t, s, l, 1).Result(); err != nil { // the standby never gets it
		t.Fatal(err)
	}
	if err := errors.Join(primary.Crash(), standby.Start()); err != nil {
		t.Fatal(err)
	}
	standby.Exec(t, "postgres", "select pg_promote()")
	p.Redirect(standby)
	var sink *store.SinkError
	if _, err := flush(t, s, l, 2).Result(); !errors.As(err, &sink) || sink.Code != "engine_rolled_back" ||
		!errors.Is(err, postgres.ErrRolledBack) {
		t.Fatalf("a commit behind one that is lost: %v", err)
	}
	r, err := s.Submit(t.Context(),
		&store.Commit{Lease: l, Run: &store.Run{ID: l.RunID, ConnectionID: "a", Status: "failed"}, End: true})
	if err == nil {
		_, err = r.Result()
	}
	if err != nil {
		t.Fatalf("the run fails: %v", err)
	}
	next, err := s.Acquire(t.Context(), store.Run{ID: "run_b", ConnectionID: "a", Status: "active"}, "host",
		"boot", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	all(t, s, next, []*store.Receipt{flush(t, s, next, 1)}) // what is missing is fetched again
	streams, err := s.Streams(t.Context(), "a")
	if err != nil || len(streams) != 1 || streams[0].Live != 2 {
		t.Errorf("%+v, %v", streams, err)
	}
}

// caughtUp waits until the standby has what there is.
func caughtUp(t *testing.T, primary *server.Server) {
	t.Helper()
	for primary.Exec(t, "postgres",
		"select count(*) from pg_stat_replication where replay_lsn >= pg_current_wal_lsn()") != "1" {
	}
}
