package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluicehost/sluice/host/destination"
)

// stage is the temporary table of a batch. Its _deleted_at marks deleted rows.
const stage = "pg_temp._sluice_stage"

// write writes the rows of a batch and returns statements to be sent with the commit, each followed by a semicolon. If
// straight is true, the keys are believed to be new to the table, and rows are copied straight into it; collided
// reports that one was there after all, so that all went through the stage.
func (s *Sink) write(ctx context.Context, b *destination.Batch, straight bool) (end string, collided bool, err error) {
	w := newWriter(b)
	if !straight {
		end, err = s.staged(ctx, w, all)
		return end, false, err
	}
	if b.From == nil {
		return "", false, s.direct(ctx, w, w.kept())
	}
	// Deletions go through the stage, live rows straight into the table.
	end, err = s.staged(ctx, w, gone)
	if err == nil && end != "" {
		err = s.exec(ctx, end)
	}
	if err == nil {
		err = s.direct(ctx, w, live)
	}
	var said *pgconn.PgError
	if !errors.As(err, &said) || said.Code != uniqueViolation {
		return "", false, err
	}
	// This also undoes the changes of prepare.
	if err := s.exec(ctx, "ROLLBACK TO SAVEPOINT begun"); err != nil {
		return "", true, err
	}
	if err := s.prepare(ctx, b); err != nil {
		return "", true, err
	}
	end, err = s.staged(ctx, w, all)
	return end, true, err
}

// staged copies rows into the stage and returns the statements that merge them.
func (s *Sink) staged(ctx context.Context, w *writer, which rowSet) (end string, err error) {
	if !w.has(which) {
		return "", nil
	}
	columns := append([]string{"_key text", "_version bigint", "_committed_at timestamptz", "_deleted_at timestamptz"},
		declared(w.to.Shape)...)
	if err := s.exec(ctx, "CREATE TEMPORARY TABLE _sluice_stage ("+strings.Join(columns, ", ")+
		") ON COMMIT DROP"); err != nil {
		return "", err
	}
	if err := s.copy(ctx, stage, w.names(destination.DeletedColumn), w.rows(which, false)); err != nil {
		return "", err
	}
	return strings.Join(w.upsert(s.in(w.to.Table), which), "; ") + "; ", nil
}

// direct copies rows straight into the table.
func (s *Sink) direct(ctx context.Context, w *writer, which rowSet) error {
	if !w.has(which) {
		return nil
	}
	fourth := destination.DeletedColumn
	if w.to.Mode == destination.History {
		fourth = destination.ValidFrom
	}
	return s.copy(ctx, s.in(w.to.Table), w.names(fourth), w.rows(which, w.to.Mode == destination.History))
}

func (s *Sink) copy(ctx context.Context, table string, names []string, rows *rows) error {
	_, err := s.conn.CopyFrom(ctx, rows, "COPY "+table+" ("+strings.Join(names, ", ")+") FROM STDIN (FORMAT binary)")
	return err
}

// A rowSet selects rows of a batch.
type rowSet int

const (
	all  rowSet = iota
	live        // not deleted
	gone        // deleted
)

// A writer holds the state for one batch.
type writer struct {
	to         *destination.Holding
	batch      []destination.Row
	live, gone bool // whether there are such rows
}

func newWriter(b *destination.Batch) *writer {
	deleted := func(r destination.Row) bool { return r.Deleted }
	return &writer{to: &b.To, batch: b.Rows, gone: slices.ContainsFunc(b.Rows, deleted),
		live: slices.ContainsFunc(b.Rows, func(r destination.Row) bool { return !r.Deleted })}
}

func (w *writer) has(which rowSet) bool {
	return w.live && which != gone || w.gone && which != live
}

// kept returns the rows of a batch that belong in an empty table.
func (w *writer) kept() rowSet {
	if w.to.Mode == destination.CurrentDeleted {
		return all
	}
	return live
}

// names returns the columns that rows are copied into.
func (w *writer) names(fourth string) []string {
	names := []string{destination.KeyColumn, destination.VersionColumn, destination.CommittedColumn, fourth}
	for _, c := range w.to.Shape.Columns {
		names = append(names, quote(c.Name))
	}
	return append(names, destination.RestColumn)
}

// upsert returns the statements that merge the stage into the table.
func (w *writer) upsert(table string, which rowSet) (sql []string) {
	insert := func(names, values []string, where string) string {
		return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ") SELECT " + strings.Join(values, ", ") +
			" FROM " + stage + " WHERE _deleted_at IS " + where
	}
	update := func(names []string) string {
		sets := make([]string, len(names))
		for i, n := range names {
			sets[i] = n + " = excluded." + n
		}
		return " ON CONFLICT (_key) DO UPDATE SET " + strings.Join(sets, ", ")
	}
	names := w.names(destination.DeletedColumn)
	hasGone, hasLive := w.gone && which != live, w.live && which != gone
	switch w.to.Mode {
	case destination.History:
		sql = append(sql, "UPDATE "+table+" t SET _valid_to = s._committed_at FROM "+stage+
			" s WHERE t._key = s._key AND t._valid_to IS NULL")
		if hasLive {
			values := slices.Clone(names)
			values[3] = destination.CommittedColumn
			sql = append(sql, insert(w.names(destination.ValidFrom), values, "NULL"))
		}
		return sql
	case destination.CurrentDeleted:
		if hasGone { // the collected data stays
			sql = append(sql, insert(names, names, "NOT NULL")+update(names[1:4]))
		}
	default:
		if hasGone {
			sql = append(sql, "DELETE FROM "+table+" t USING "+stage+" s WHERE t._key = s._key AND s._deleted_at IS NOT NULL")
		}
	}
	if hasLive {
		sql = append(sql, insert(names, names, "NULL")+update(names[1:]))
	}
	return sql
}
