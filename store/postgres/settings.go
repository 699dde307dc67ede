package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// oldest is the first version of the server that will do.
const oldest = 150000

// A server is what of its settings matters.
type server struct {
	version                         int
	standby, checksums, synchronous bool // synchronous: a standby is waited for
	fsync, pages, commits           string
	pid                             uint32
	oldXmin                         int64 // age of the oldest transaction that is open, in seconds
}

func look(ctx context.Context, c *pgx.Conn) (v server, err error) {
	err = c.QueryRow(ctx, `select current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('data_checksums') = 'on',
		current_setting('synchronous_standby_names') <> '', current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), pg_backend_pid(),
		coalesce((select extract(epoch from max(now() - xact_start))::bigint from pg_stat_activity where backend_xmin is not null and datname = current_database()), 0)`).
		Scan(&v.version, &v.standby, &v.checksums, &v.synchronous, &v.fsync, &v.pages, &v.commits, &v.pid, &v.oldXmin)
	return v, err
}

// losses are the settings under which the server may lose what it acknowledged.
func (v server) losses() (names []string) {
	if v.fsync != "on" {
		names = append(names, "fsync = "+v.fsync)
	}
	if v.pages != "on" {
		names = append(names, "full_page_writes = "+v.pages)
	}
	if v.commits == "off" || v.commits == "local" && v.synchronous {
		names = append(names, "synchronous_commit = "+v.commits)
	}
	return names
}

// suits refuses a server that cannot keep a store.
func (s *Store) suits(ctx context.Context, c *pgx.Conn) error {
	v, err := look(ctx, c)
	switch losses := v.losses(); {
	case err != nil:
		return err
	case v.version < oldest:
		return fmt.Errorf("the server is PostgreSQL %d; version %d or later is needed", v.version/10000, oldest/10000)
	case v.standby:
		return fmt.Errorf("the server is a standby, which takes no changes; name the primary")
	case v.pid != c.PgConn().PID():
		return fmt.Errorf("a pooler stands between Sluice and the server; name the server itself: Sluice has a pool of its own, and locks that need connections to last")
	case len(losses) > 0 && !s.opts.Weak:
		return fmt.Errorf("the server may lose what it has acknowledged: %s; turn that on, or add durability=weak to the URL of a store that may be lost", strings.Join(losses, ", "))
	}
	return nil
}

// tooOld is how long a transaction may be open, in seconds, before it is worth a word.
const tooOld = 3600

// Weaknesses says what store.Weaknesses asks.
func (s *Store) Weaknesses(ctx context.Context) (all []store.Weakness, err error) {
	var v server
	if err := s.read(ctx, func(ctx context.Context, c *conn) (err error) { v, err = look(ctx, c.Conn); return err }); err != nil {
		return nil, err
	}
	for _, name := range v.losses() {
		all = append(all, store.Weakness{Detail: "the database may lose what it has acknowledged: " + name, Remedy: "turn it on in the configuration of the server"})
	}
	if !v.checksums {
		all = append(all, store.Weakness{Detail: "the database has no data checksums, so damage on its disk shows late", Remedy: "stop the server and run pg_checksums --enable"})
	}
	if v.oldXmin > tooOld {
		all = append(all, store.Weakness{Detail: fmt.Sprintf("a transaction is open in the database for %d minutes, so it cannot clean up", v.oldXmin/60),
			Remedy: "find it in pg_stat_activity and end it"})
	}
	return all, nil
}
