package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/destination"
)

// types maps types to those of columns. A column that has only held NULL is text until it has a type.
var types = map[destination.Type]string{
	"": "text", destination.Boolean: "boolean", destination.Integer: "bigint", destination.Number: "double precision",
	destination.Time: "timestamptz", destination.JSON: "jsonb", destination.Text: "text",
}

// prepare creates or alters the table of a batch.
func (s *Sink) prepare(ctx context.Context, b *destination.Batch) error {
	if b.From == nil {
		return s.create(ctx, b)
	}
	b.To.Table = b.From.Table
	changes := alterations(b)
	if len(changes) == 0 {
		return nil
	}
	if err := s.exec(ctx, "SET LOCAL statement_timeout = '"+alterTimeout+"'"); err != nil {
		return err
	}
	return s.exec(ctx, "ALTER TABLE "+s.in(b.To.Table)+" "+strings.Join(changes, ", "))
}

// create names and creates the table of a batch.
func (s *Sink) create(ctx context.Context, b *destination.Batch) error {
	have, err := s.holdings(ctx)
	if err != nil {
		return err
	}
	taken := map[string]bool{destination.FilesTable: true, destination.MetaTable: true, destination.StreamsTable: true}
	for _, h := range have {
		taken[strings.ToLower(h.Table)] = true
	}
	// The server chooses the names of indexes and sequences, so a table has to avoid them.
	rows, err := s.query(ctx,
		"SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = "+
			literal(s.address.schema)+" AND c.relkind IN ('i', 'I', 'S')")
	if err != nil {
		return err
	}
	for _, row := range rows {
		taken[strings.ToLower(string(row[0]))] = true
	}
	b.To.Table = destination.UniqueName(b.ID.Table(), taken)
	if err := s.vacant(ctx, b.To.Table); err != nil {
		return err
	}
	columns := []string{"_key text NOT NULL", "_version bigint NOT NULL", "_committed_at timestamptz NOT NULL"}
	key, index := "PRIMARY KEY (_key)", ""
	if b.To.Mode == destination.History {
		columns = append(columns, "_valid_from timestamptz NOT NULL", "_valid_to timestamptz")
		key, index = "PRIMARY KEY (_key, _version)", "; CREATE UNIQUE INDEX ON "+s.in(b.To.Table)+
			" (_key) WHERE _valid_to IS NULL"
	} else {
		columns = append(columns, "_deleted_at timestamptz")
	}
	columns = append(columns, declared(b.To.Shape)...)
	return s.exec(ctx, "CREATE TABLE "+s.in(b.To.Table)+" ("+strings.Join(append(columns, key), ", ")+")"+index)
}

// declared returns the column definitions of a shape, and that of _rest.
func declared(shape *destination.Shape) (out []string) {
	for _, c := range shape.Columns {
		out = append(out, quote(c.Name)+" "+types[c.Type])
	}
	return append(out, destination.RestColumn+" jsonb")
}

// vacant returns an error if the schema has a relation or a type by that name.
func (s *Sink) vacant(ctx context.Context, table string) error {
	rows, err := s.query(ctx,
		fmt.Sprintf("SELECT 1 FROM pg_namespace n WHERE n.nspname = %s AND (EXISTS (SELECT FROM pg_class WHERE relnamespace = n.oid AND relname = %s)"+
			" OR EXISTS (SELECT FROM pg_type WHERE typnamespace = n.oid AND typname = %[2]s))",
			literal(s.address.schema), literal(table)))
	if err == nil && len(rows) > 0 {
		return foreign(table)
	}
	return err
}

func foreign(table string) error {
	return fmt.Errorf("%w: %s", destination.ErrForeign, abi.Clean(table))
}

// alterations returns the clauses that add new columns and widen others. They form one statement, so that the server
// rewrites the table only once.
func alterations(b *destination.Batch) (out []string) {
	for i, c := range b.To.Shape.Columns {
		if i >= len(b.From.Shape.Columns) {
			out = append(out, "ADD COLUMN "+quote(c.Name)+" "+types[c.Type])
			continue
		}
		was := b.From.Shape.Columns[i].Type
		if types[was] != types[c.Type] {
			out = append(out, "ALTER COLUMN "+quote(c.Name)+" TYPE "+types[c.Type]+" USING "+widened(quote(c.Name), was, c.Type))
		}
	}
	return out
}

// widened returns the expression that converts a column from one type to another.
func widened(column string, was, is destination.Type) string {
	switch {
	case was == "":
		return "NULL::" + types[is]
	case was == destination.Time && is == destination.Text:
		return "to_char(" + column + ` AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	}
	return column + "::" + types[is]
}

// Describe implements destination.Sink.
func (s *Sink) Describe(ctx context.Context, streams []destination.Described) error {
	return s.own(ctx, nil, func(ctx context.Context, _ int64) (end string, err error) {
		rows, err := s.query(ctx, "SELECT 1 FROM "+s.meta()+" WHERE name = "+literal(streamsRow))
		if err != nil {
			return "", err
		}
		if len(rows) == 0 {
			if err := s.vacant(ctx, destination.StreamsTable); err != nil {
				return "", err
			}
		}
		ours, err := s.setMeta(streamsRow, true, 0)
		table := s.in(destination.StreamsTable)
		// The table is emptied instead of dropped, so that views of it and grants on it stay.
		sql := []string{ours, "CREATE TABLE IF NOT EXISTS " + table +
			" (connection text NOT NULL, stream text NOT NULL, connector text, version text, table_name text," +
			" records bigint, deleted bigint, mark bigint, last_run text, ended_at timestamptz, left_out boolean, synced_at timestamptz, PRIMARY KEY (connection, stream))",
			"DELETE FROM " + table}
		for _, d := range streams {
			sql = append(sql, fmt.Sprintf("INSERT INTO %s VALUES (%s, %s, %s, %s, %s, %d, %d, %d, %s, %s, %t, %s)", table,
				textLiteral(string(d.Connection)), textLiteral(string(d.Stream)), textLiteral(d.Connector), textLiteral(d.Version),
				textLiteral(d.Table), d.Records, d.Deleted, d.Mark, textLiteral(d.LastRun), timeLiteral(d.EndedAt), d.Partial,
				timeLiteral(d.SyncedAt)))
		}
		return strings.Join(sql, "; "), err
	})
}

func textLiteral(text string) string { return literal(withoutNUL(text)) }

func timeLiteral(t time.Time) string {
	if t.IsZero() {
		return "NULL"
	}
	return literal(t.UTC().Format("2006-01-02 15:04:05.000000+00"))
}
