package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/host/export"
	"github.com/sluicehost/sluice/store"
)

// shownFlags choose what of the stored records is meant, for sluice records and
// sluice export alike.
type shownFlags struct {
	find, order string
	deleted     bool
}

func (f *shownFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.find, "find", "", "only records whose key or data contains `TEXT`, whatever its case")
	cmd.Flags().StringVar(&f.order, "order", "version", "`ORDER`: version, key or time, with a - in front for the reverse")
	cmd.Flags().BoolVar(&f.deleted, "deleted", false, "deleted records too")
}

// choose adds the flags to a selection.
func (f *shownFlags) choose(s *export.Selection) error {
	switch {
	case !slices.Contains(export.Orders, f.order):
		return usagef("--order %s: want one of %s", abi.Clean(f.order), strings.Join(export.Orders, ", "))
	case len(f.find) > export.MaxFind:
		return usagef("--find: want at most %d bytes", export.MaxFind)
	}
	s.Order, s.Descending = export.OrderOf(f.order)
	s.Match, s.Deleted = export.Find(f.find), s.Deleted || f.deleted
	return nil
}

// recordFlags are the flags of sluice records.
type recordFlags struct {
	shownFlags
	since   uint64
	changes bool // --changes-since was given
	limit   int
}

// recordCommands are sluice records and export.
type recordCommands struct{ *command }

func (c recordCommands) records() *cobra.Command {
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
			return c.withStoredData(cmd.Context(),
				func(src *client.Client) error { return c.doRecords(cmd.Context(), src, a[0], stream, f) })
		},
	}
	cmd.Flags().Uint64Var(&f.since, "changes-since", 0, "only what changed after version `V` of the stream")
	f.add(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", 100, "at most `N` records; 0 for all")
	return cmd
}

// errEnough ends a listing at its limit.
var errEnough = errors.New("enough")

func (c recordCommands) doRecords(ctx context.Context, src *client.Client, connection, stream string,
	f *recordFlags) error {
	if f.limit < 0 {
		return usagef("--limit %d: want 0 or more", f.limit)
	}
	conn, err := findConnection(ctx, src, connection)
	if err != nil {
		return err
	}
	streams, err := findStreams(ctx, src, store.ConnectionID(conn.ConnectionID), stream)
	if err != nil {
		return err
	}
	if f.changes && len(streams) > 1 {
		return usagef("--changes-since needs a STREAM: versions are counted per stream")
	}
	s := export.Selection{Connection: store.ConnectionID(conn.ConnectionID), Deleted: f.changes, Page: f.limit}
	if err := f.choose(&s); err != nil {
		return err
	}
	if f.changes && f.order != "version" {
		return usagef("--changes-since lists by version; leave --order out")
	}
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
			return printJSON(c.out, export.LineOf(s.Connection, r))
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

// exportFlags are the flags of sluice export.
type exportFlags struct {
	shownFlags
	to, stream, format, sinceMark string
	files                         bool
}

func (c recordCommands) export() *cobra.Command {
	f := &exportFlags{}
	cmd := &cobra.Command{
		Use: "export CONNECTION --to FILE", Short: "Write records to a file",
		Long: `Writes the current records of a connection to FILE.jsonl, one record with its
envelope per line, or to FILE.csv: the envelope, then the fields in the order of
the schema, nested values as JSON, and a ' before what a spreadsheet would take
for a formula. FILE.sqlite has a table for each stream and FILE.parquet is one, as
destinations have them. A file that exists is complete: it gets its name at the end.

--to DIR/ writes a file for each stream, --to - to the standard output; --format
says there which. --find, --order and --deleted choose records as in sluice records.

--since-mark FILE writes only what changed since the export before, deletions too.
How far that is stands in FILE, which is replaced when everything else is written.
Each such export is a file of its own, or DIR/ of files: none that exists is replaced.

--files puts the files that records hold into the folder _files beside, each once and
under its digest, and the path into their fields; FILE.sqlite has a table _files.`,
		Example: "  sluice export git --to git-2.jsonl --since-mark git.mark\n  sluice export git --to commits.csv --stream commits\n  sluice export git --to - --find fix | wc -l",
		Args:    args(1, 1, "one connection"),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return c.withStoredData(cmd.Context(),
				func(src *client.Client) error { return c.doExport(cmd.Context(), src, a[0], f) })
		},
	}
	cmd.Flags().StringVar(&f.sinceMark, "since-mark", "",
		"only what changed since the mark in `FILE`, which is moved afterwards")
	cmd.Flags().StringVar(&f.to, "to", "",
		"`FILE`.{jsonl,csv,parquet,sqlite} to write, DIR/ for a file each stream, or - for the standard output")
	cmd.Flags().BoolVar(&f.files, "files", false, "the files that records hold too")
	cmd.Flags().StringVar(&f.stream, "stream", "", "only the stream `S`")
	cmd.Flags().StringVar(&f.format, "format", "", "jsonl (the default), csv or parquet, for DIR/ and -")
	f.add(cmd)
	return cmd
}

// check refuses what cannot be written, before anything is done.
func (f *exportFlags) check() error {
	switch {
	case f.to == "":
		return usagef("sluice export needs --to FILE.jsonl, --to FILE.csv, --to FILE.parquet, --to FILE.sqlite, --to DIR/ or --to -")
	case !slices.Contains([]string{"", "jsonl", "csv", "parquet"}, f.format):
		return usagef("--format %s: want jsonl, csv or parquet", abi.Clean(f.format))
	case f.format != "" && f.as() != "."+f.format:
		return usagef("--format %s: --to %s says another by its name; leave --format out, it is for DIR/ and -", f.format,
			f.to)
	case f.sinceMark != "" && f.order != "version":
		return usagef("--since-mark exports by version; leave --order out")
	case f.sinceMark != "" && filepath.Clean(app.Home(f.sinceMark)) == filepath.Clean(app.Home(f.to)):
		return usagef("--since-mark %s: --to names the same file", f.sinceMark)
	case (filepath.Ext(f.to) == ".sqlite" || f.as() == ".parquet") && f.order != "version":
		return usagef("--order %s: tables have no order", abi.Clean(f.order))
	case f.to == "-" && f.files:
		return usagef("--files: want --to FILE or --to DIR/, for files go beside it")
	case f.to == "-" || f.eachStream():
		return nil
	}
	return recordFormat("--to", f.to)
}

// as returns the format of all files, by its extension.
func (f *exportFlags) as() string {
	if f.to == "-" || f.eachStream() {
		return "." + cmp.Or(f.format, "jsonl")
	}
	return filepath.Ext(f.to)
}

// eachStream reports whether every stream gets a file of its own.
func (f *exportFlags) eachStream() bool {
	fi, err := os.Stat(f.to)
	return strings.HasSuffix(f.to, "/") || err == nil && fi.IsDir()
}

// exported is what sluice export prints of a file.
type exported struct {
	File    string `json:"file"`
	Records int64  `json:"records"`
	Digest  string `json:"digest"`
}

func (c recordCommands) doExport(ctx context.Context, src *client.Client, connection string, f *exportFlags) error {
	conn, err := findConnection(ctx, src, connection)
	if err != nil {
		return err
	}
	streams, err := findStreams(ctx, src, store.ConnectionID(conn.ConnectionID), f.stream)
	if err != nil {
		return err
	}
	s := export.Selection{Connection: store.ConnectionID(conn.ConnectionID)}
	if err := f.choose(&s); err != nil {
		return err
	}
	if s.Manifest, err = abi.ReadManifest(conn.Manifest); err != nil {
		s.Manifest = nil // columns in the order of names
	}
	mark, err := c.readMark(f.sinceMark, conn)
	if err != nil {
		return err
	}
	for _, st := range streams {
		s.Streams = append(s.Streams, export.From{Stream: st.Stream, After: mark.after(c.command, st)})
	}
	s.Match = nil // the host searches
	exporter := func() *client.Exporter { return src.Exporter(f.find, nil) }
	if mark != nil {
		s.Deleted, exporter = true, func() *client.Exporter { return src.Exporter(f.find, mark.Streams) }
	}
	if err := c.exportFiles(ctx, src, exporter, s, f); err != nil {
		return err
	}
	return mark.write(f.sinceMark)
}

// exportFiles writes one file, or one for each stream.
func (c recordCommands) exportFiles(ctx context.Context, src *client.Client, exporter func() *client.Exporter,
	s export.Selection, f *exportFlags) error {
	if !f.eachStream() || f.to == "-" {
		if err := f.increment(f.to); err != nil {
			return err
		}
		return c.exportFile(ctx, src, exporter, s, f, f.to)
	}
	if err := os.MkdirAll(f.to, 0o700); err != nil {
		return usagef("--to %s: %w", f.to, err)
	}
	names, paths := map[string]bool{}, make([]string, len(s.Streams))
	for i, st := range s.Streams {
		paths[i] = filepath.Join(f.to, fileOf(string(st.Stream), names)+f.as())
		if err := f.increment(paths[i]); err != nil {
			return err
		}
	}
	for i, st := range s.Streams {
		one := s
		one.Streams = []export.From{st}
		if err := c.exportFile(ctx, src, exporter, one, f, paths[i]); err != nil {
			return err
		}
	}
	return nil
}

// increment refuses to overwrite a file with an incremental export, because the file's
// records are exported only once.
func (f *exportFlags) increment(path string) error {
	if f.sinceMark == "" || path == "-" {
		return nil
	}
	if _, err := os.Lstat(app.Home(path)); err == nil {
		return usagef("--to %s: it is there already, and --since-mark writes only what changed since; give each export a name of its own, or remove it", path)
	}
	return nil
}

// fileOf returns a safe file name for a stream, whose name the connector chose; names
// has those taken, compared without regard to case.
func fileOf(stream string, names map[string]bool) string {
	safe := cmp.Or(strings.TrimLeft(export.FileName(abi.Cut(stream, 128)), ".-"), "stream")
	name := safe
	for n := 2; names[strings.ToLower(name)]; n++ {
		name = fmt.Sprintf("%s_%d", safe, n)
	}
	names[strings.ToLower(name)] = true
	return name
}

// exportFile writes one file of records, or the standard output.
func (c recordCommands) exportFile(ctx context.Context, src *client.Client, exporter func() *client.Exporter,
	s export.Selection, flags *exportFlags, path string) error {
	var f *recordFile
	var err error
	if path == "-" {
		f = writeRecords(c.out, flags.as())
	} else if f, err = createRecords("--to", path); err != nil {
		return err
	}
	f.exporter = exporter
	if flags.files {
		if f.files, err = openExportedFiles(src, path); err != nil {
			f.abandon()
			return err
		}
	}
	if err := f.write(ctx, s); err != nil {
		f.abandon()
		return fmt.Errorf("export %s: %w", s.Connection, errors.Join(err, f.files.close()))
	}
	if err := errors.Join(f.commit(), f.files.close()); err != nil {
		return err
	}
	f.files.printCounts(c.command)
	if c.json && path != "-" {
		return printJSON(c.out, exported{path, f.records, f.digest()})
	}
	c.warnf("%s: %s records, %s", path, count(f.records), f.digest())
	return nil
}
