package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/dashboard/export"
	"github.com/sluicehost/sluice/store"
)

// recordFlags are the flags of sluice records.
type recordFlags struct {
	since   uint64
	changes bool // --changes-since was given
	deleted bool
	limit   int
}

func (c *command) records() *cobra.Command {
	f := &recordFlags{}
	cmd := &cobra.Command{
		Use: "records CONNECTION [STREAM]", Short: "Print stored records",
		Long: `Prints the current records of a connection, stream by stream, in the order in
which they were stored. With --json: one record per line, with its envelope.

Each change gives a record a version, counted per stream. --changes-since V prints
the records that are newer than V, deletions included; the version of the last
one is where to go on from.`,
		Example: "  sluice records git\n  sluice records git commits --changes-since 120 --json",
		Args:    args(1, 2, "a connection and perhaps a stream"),
		RunE: func(cmd *cobra.Command, a []string) error {
			f.changes = cmd.Flags().Changed("changes-since")
			stream := ""
			if len(a) == 2 {
				stream = a[1]
			}
			return c.reading(cmd.Context(), func(src source) error { return c.doRecords(cmd.Context(), src, a[0], stream, f) })
		},
	}
	cmd.Flags().Uint64Var(&f.since, "changes-since", 0, "only what changed after version `V` of the stream")
	cmd.Flags().BoolVar(&f.deleted, "deleted", false, "deleted records too")
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most `N` records; 0 for all")
	return cmd
}

// errEnough ends a listing at its limit.
var errEnough = errors.New("enough")

func (c *command) doRecords(ctx context.Context, src source, connection, stream string, f *recordFlags) error {
	if f.limit < 0 {
		return usagef("--limit %d: want 0 or more", f.limit)
	}
	conn, err := findConnection(ctx, src, connection)
	if err != nil {
		return err
	}
	streams, err := findStreams(ctx, src, conn.ID, stream)
	if err != nil {
		return err
	}
	if f.changes && len(streams) > 1 {
		return usagef("--changes-since needs a STREAM: versions are counted per stream")
	}
	s := export.Selection{Connection: conn.ID, Deleted: f.deleted || f.changes}
	for _, st := range streams {
		s.Streams = append(s.Streams, export.From{Stream: st.Stream, After: f.since})
	}
	n := 0
	var rows [][]string
	err = s.Each(ctx, src, func(r store.Record) error {
		if f.limit > 0 && n == f.limit {
			return errEnough
		}
		n++
		if c.json {
			return printJSON(c.out, export.LineOf(conn.ID, r))
		}
		rows = append(rows, recordRow(r))
		if len(rows) < page || c.screenOut().live {
			return nil
		}
		defer func() { rows = rows[:0] }()
		return c.table(recordHeads, rows)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if err := c.table(recordHeads, rows); !c.json && err != nil {
		return err
	}
	if errors.Is(err, errEnough) {
		c.warnf("There are more; --limit 0 prints all.")
	}
	return nil
}

var recordHeads = []string{"stream", "key", "version", "data"}

// shownData is how much of a record a table shows.
const shownData = 200

func recordRow(r store.Record) []string {
	data := string(r.Data)
	if r.Deleted {
		data = "(deleted)"
	}
	if short := abi.Cut(data, shownData); short != data {
		data = short + "…"
	}
	return []string{string(r.Stream), r.Key, fmt.Sprint(r.Version), data}
}

func (c *command) export() *cobra.Command {
	var to, stream string
	cmd := &cobra.Command{
		Use: "export CONNECTION --to FILE", Short: "Write records to a file",
		Long: `Writes the current records of a connection to FILE.jsonl, one record with its
envelope per line, or to FILE.csv: the envelope, then the fields in the order of
the schema, nested values as JSON, and a ' before what a spreadsheet would take
for a formula. A file that exists is complete: it gets its name at the end.`,
		Example: "  sluice export git --to commits.csv --stream commits",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			if to == "" {
				return usagef("sluice export needs --to FILE.jsonl or --to FILE.csv")
			}
			if err := recordFormat("--to", to); err != nil {
				return err
			}
			return c.reading(cmd.Context(), func(src source) error { return c.doExport(cmd.Context(), src, a[0], stream, to) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`FILE`.{jsonl,csv} to write")
	cmd.Flags().StringVar(&stream, "stream", "", "only the stream `S`")
	return cmd
}

// exported is what sluice export prints.
type exported struct {
	File    string `json:"file"`
	Records int64  `json:"records"`
	Digest  string `json:"digest"`
}

func (c *command) doExport(ctx context.Context, src source, connection, stream, to string) error {
	conn, err := findConnection(ctx, src, connection)
	if err != nil {
		return err
	}
	streams, err := findStreams(ctx, src, conn.ID, stream)
	if err != nil {
		return err
	}
	s := export.Selection{Connection: conn.ID}
	if s.Manifest, err = abi.ReadManifest(conn.Manifest); err != nil {
		s.Manifest = nil // without one, columns stand in name order
	}
	for _, st := range streams {
		s.Streams = append(s.Streams, export.From{Stream: st.Stream})
	}
	f, err := createRecords("--to", to)
	if err != nil {
		return err
	}
	if err := f.write(ctx, src, s); err != nil {
		f.abandon()
		return fmt.Errorf("export %s: %w", conn.ID, err)
	}
	if err := src.exported(f, conn.ID, stream); err != nil {
		f.abandon()
		return err
	}
	if err := f.commit(); err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, exported{to, f.records, f.digest()})
	}
	c.warnf("%s: %s records, %s", to, count(f.records), f.digest())
	return nil
}
