package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluicehost/sluice/store"
)

// oldest is the first supported version of the server.
const oldest = 150000

// A server holds the relevant settings and state of a server.
type server struct {
	version                         int
	standby, checksums, synchronous bool // synchronous: commits wait for a standby
	fsync, pages, commits           string
	pid                             uint32
	oldXmin                         int64 // age of the oldest open transaction, in seconds
	standbys, waitedFor             int   // connected standbys, and those for which commits may wait
	behind                          int64 // bytes that the most delayed standby lacks
}

func look(ctx context.Context, c *pgx.Conn) (v server, err error) {
	// Only members of pg_monitor can see the progress of standbys.
	err = c.QueryRow(ctx, `select current_setting('server_version_num')::int, pg_is_in_recovery(), current_setting('data_checksums') = 'on',
		current_setting('synchronous_standby_names') <> '', current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), pg_backend_pid(),
		coalesce((select extract(epoch from max(now() - xact_start))::bigint from pg_stat_activity where backend_xmin is not null and datname = current_database()), 0),
		(select count(*) from pg_stat_replication), (select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')),
		case when pg_is_in_recovery() then 0 else coalesce((select max(pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn)) from pg_stat_replication), 0)::bigint end`).
		Scan(&v.version, &v.standby, &v.checksums, &v.synchronous, &v.fsync, &v.pages, &v.commits, &v.pid, &v.oldXmin,
			&v.standbys, &v.waitedFor, &v.behind)
	return v, err
}

// losses returns the settings with which the server may lose what it has acknowledged.
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

// suits returns an error for a server that is unsuitable for a store.
func (s *Store) suits(ctx context.Context, c *pgx.Conn) error {
	v, err := look(ctx, c)
	if err != nil {
		return err
	}
	return v.unfit(c.PgConn().PID(), s.opts.Weak)
}

// unfit returns why the server is unsuitable, or nil. pid is the server process of the connection according to the
// driver.
func (v server) unfit(pid uint32, weak bool) error {
	switch losses := v.losses(); {
	case v.version < oldest:
		return fmt.Errorf("the server is PostgreSQL %d; version %d or later is needed", v.version/10000, oldest/10000)
	case v.standby:
		return fmt.Errorf("the server is a standby, which takes no changes; name the primary")
	case v.pid != pid:
		return fmt.Errorf(
			"a pooler stands between Sluice and the server; name the server itself: Sluice has a pool of its own, and locks that need connections to last")
	case len(losses) > 0 && !weak:
		return fmt.Errorf(
			"the server may lose what it has acknowledged: %s; turn that on, or add durability=weak to the URL of a store that may be lost", strings.Join(losses, ", "))
	}
	return nil
}

// farBehind is how many bytes a standby may lack before that is reported.
const farBehind = 64 << 20

// tooOld is how many seconds a transaction may be open before that is reported.
const tooOld = 3600

// Weaknesses returns the risks of keeping data on this server; see store.Weaknesses.
func (s *Store) Weaknesses(ctx context.Context) (all []store.Weakness, err error) {
	var v server
	if err := s.read(ctx, func(ctx context.Context, c *conn) (err error) {
		v, err = look(ctx, c.Conn)
		return err
	}); err != nil {
		return nil, err
	}
	for _, name := range v.losses() {
		all = append(all, store.Weakness{Detail: "the database may lose what it has acknowledged: " + name,
			Remedy: "turn it on in the configuration of the server"})
	}
	if !v.checksums {
		all = append(all, store.Weakness{Detail: "the database has no data checksums, so damage on its disk shows late",
			Remedy: "stop the server and run pg_checksums --enable"})
	}
	if v.standbys > 0 && !v.synchronous {
		all = append(all, store.Weakness{Detail: fmt.Sprintf(
			"nobody waits for the database's standbys (%d): a switch to one loses the commits it has not got, and the runs that made them fail with engine_rolled_back", v.standbys),
			Remedy: "name standbys in synchronous_standby_names, or live with it: the next runs fetch what is missing"})
	}
	if v.synchronous && v.waitedFor == 0 && v.standbys > 0 {
		all = append(all, store.Weakness{Detail: "none of the standbys that commits wait for is there, or the user may not see it", Remedy: "look at pg_stat_replication"})
	}
	if v.behind > farBehind {
		all = append(all, store.Weakness{Detail: fmt.Sprintf("a standby of the database is %d MiB behind", v.behind>>20),
			Remedy: "look at pg_stat_replication and at the standby"})
	}
	if v.oldXmin > tooOld {
		all = append(all, store.Weakness{Detail: fmt.Sprintf(
			"a transaction is open in the database for %d minutes, so it cannot clean up", v.oldXmin/60),
			Remedy: "find it in pg_stat_activity and end it"})
	}
	select {
	case <-s.ear.looked:
	case <-time.After(s.opts.Lease):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if w := s.Polling(); w != nil {
		all = append(all, *w)
	}
	return all, nil
}
