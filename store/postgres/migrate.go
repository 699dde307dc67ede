package postgres

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations
var migrations embed.FS

// newest is the schema version of this build. Migration N is migrations/N.sql; a released migration never changes.
const newest = 6

// migrate upgrades the schema, one transaction per step, while hosts of the version before keep running.
func (s *Store) migrate(ctx context.Context, c *pgx.Conn) error {
	// lock_timeout applies
	if _, err := c.Exec(ctx, "select pg_advisory_lock($1)", int64(s.lock("schema", ""))); err != nil {
		return err
	}
	defer func() { _, _ = c.Exec(ctx, "select pg_advisory_unlock($1)", int64(s.lock("schema", ""))) }()
	version, err := s.version(ctx, c)
	if err != nil {
		return err
	}
	if version > newest+1 {
		return fmt.Errorf(
			"its tables are of version %d, which a newer Sluice made; this one knows version %d: upgrade Sluice", version,
			newest)
	}
	for ; version < newest; version++ {
		if err := step(ctx, c, version+1); err != nil {
			return fmt.Errorf("bring tables to version %d: %w", version+1, s.told(ctx, err))
		}
	}
	return nil
}

// version reads the version of the schema, which it creates if necessary.
func (s *Store) version(ctx context.Context, c *pgx.Conn) (version int, err error) {
	var known bool
	var tables int
	err = c.QueryRow(ctx, `select count(*) filter (where relname = 'sluice_schema') > 0, count(*)
		from pg_class join pg_namespace n on n.oid = relnamespace where n.nspname = $1 and relkind in ('r', 'p', 'v')`, s.opts.Schema).Scan(&known, &tables)
	switch {
	case err != nil:
		return 0, err
	case known:
		err = c.QueryRow(ctx, "select coalesce(max(version), 0) from sluice_schema").Scan(&version)
		return version, err
	case tables > 0:
		return 0, fmt.Errorf("the schema %s has tables that are not of a store; name another with schema=NAME", s.opts.Schema)
	}
	name := pgx.Identifier{s.opts.Schema}.Sanitize()
	tx, err := c.Begin(ctx)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "create schema if not exists "+name)
	if err == nil {
		_, err = tx.Exec(ctx, "create table sluice_schema (version int primary key, made timestamptz not null default now())")
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		_ = tx.Rollback(ctx)
		return 0, s.mayNot(ctx, err)
	}
	return 0, nil
}

// Drop deletes the schema of a URL with everything in it. No host may be using it.
func Drop(text string) error {
	return remove(text, func(schema string) string {
		return "drop schema if exists " + pgx.Identifier{schema}.Sanitize() + " cascade"
	})
}

// Empty deletes all tables in the schema of a URL and keeps the schema, which may be an administrator's. No host may be
// using it.
func Empty(text string) error {
	return remove(text, func(string) string {
		return `do $do$ declare t record; begin
			for t in select oid::regclass as name from pg_class where relnamespace = quote_ident(current_schema())::regnamespace and relkind in ('r', 'p') and not relispartition loop
				execute 'drop table if exists ' || t.name || ' cascade';
			end loop;
		end $do$`
	})
}

// remove executes the statement for the schema of a URL.
func remove(text string, statement func(schema string) string) error {
	a, err := parse(text, Options{})
	if err != nil {
		return fmt.Errorf("store postgres: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	c, err := pgx.ConnectConfig(ctx, a.config)
	if err == nil {
		_, err = c.Exec(ctx, statement(a.opts.Schema))
		end(c)
	}
	if err != nil {
		return fmt.Errorf("delete store %s: %w", a.shown, err)
	}
	return nil
}

// mayNot appends the statement that grants the right to an error about a missing right.
func (s *Store) mayNot(ctx context.Context, err error) error {
	err = s.told(ctx, err)
	if code(err) != noRight {
		return err
	}
	name, user := pgx.Identifier{s.opts.Schema}.Sanitize(), pgx.Identifier{s.address.config.User}.Sanitize()
	return fmt.Errorf("%w; an administrator of the database can run: CREATE SCHEMA %s AUTHORIZATION %s", err, name, user)
}

func step(ctx context.Context, c *pgx.Conn, version int) error {
	sql, err := migrations.ReadFile(fmt.Sprintf("migrations/%d.sql", version))
	if err != nil {
		return err
	}
	_, err = c.PgConn().Exec(ctx,
		fmt.Sprintf("begin; %s; insert into sluice_schema (version) values (%d); commit", sql, version)).ReadAll()
	if err != nil && !c.IsClosed() {
		_, _ = c.PgConn().Exec(ctx, "rollback").ReadAll()
	}
	return err
}
