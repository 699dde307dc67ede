package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/api/client"
	"github.com/sluicehost/sluice/host/export"
)

// queryCommands are sluice query and sluice tables.
type queryCommands struct{ *command }

// queryFlags are the flags of sluice query.
type queryFlags struct {
	format, out string
	rows        int
}

var queryFormats = []string{"table", "csv", "json", "ndjson", "markdown"}

func (c queryCommands) query() *cobra.Command {
	f := &queryFlags{}
	cmd := &cobra.Command{
		Use: "query [SQL]", Short: "Ask with SQL about what was collected",
		Long: `Runs one SELECT of SQLite over what was collected. Tables are named CONNECTION.STREAM, and
sluice tables lists them. Without an argument it asks for statements on the terminal, or
reads one from standard input. With --json: one object, as --format json but on one line.`,
		Example: "  sluice query 'SELECT count(*) FROM mailbox.messages'\n  sluice query \"SELECT date(sent_at), count(*) FROM mailbox.messages GROUP BY 1\" --format csv --out days.csv",
		Args:    args(0, 1, "one statement"),
		RunE: func(cmd *cobra.Command, a []string) error {
			if !slices.Contains(queryFormats, f.format) {
				return usagef("--format %s: want one of %s", abi.Clean(f.format), strings.Join(queryFormats, ", "))
			}
			return c.withStoredData(cmd.Context(), func(s *client.Client) error {
				switch {
				case len(a) == 1:
					return c.ask(cmd.Context(), s, a[0], f)
				case c.interactive():
					return c.readStatements(cmd.Context(), s, f)
				}
				b, err := io.ReadAll(io.LimitReader(c.in, 1<<20))
				if err != nil {
					return usagef("read the statement from standard input: %w", err)
				}
				return c.ask(cmd.Context(), s, string(b), f)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.format, "format", "table", "how the result is written, `FORMAT`: "+strings.Join(queryFormats, ", "))
	fl.StringVar(&f.out, "out", "", "write it to `FILE`")
	fl.IntVar(&f.rows, "rows", 1000, "the most `ROWS` of the result, up to 100000")
	return cmd
}

func (c queryCommands) tables() *cobra.Command {
	return &cobra.Command{
		Use: "tables", Short: "List what queries may ask about",
		Long: "Lists the tables of sluice query with their columns, how many records they have, and when\nthe newest came. With --json: one array.", Example: "  sluice tables", Args: args(0, 0, "no arguments"),
		RunE: c.stored(func(ctx context.Context, s *client.Client, _ []string) error {
			all, err := c.listTables(ctx, s)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, t := range all {
				rows = append(rows, []string{t.Name, strconv.FormatUint(t.Records, 10), c.timeText(t.UpdatedAt),
					columnWords(t.Columns)})
			}
			return c.printList(all, []string{"table", "records", "newest", "columns"}, rows)
		}),
	}
}

func columnWords(columns []host.QueryColumn) string {
	var out []string
	for _, col := range columns {
		out = append(out, strings.TrimSpace(col.Name+" "+col.Type))
	}
	return strings.Join(out, ", ")
}

func (c queryCommands) listTables(ctx context.Context, k *client.Client) (all []host.Table, err error) {
	err = c.withCopyProgress(ctx, k, func() error {
		all, err = k.Tables(ctx, nil)
		return err
	})
	return all, err
}

// The interval at which the progress of copies is read, and the width of a bar.
const (
	lookEvery = 250 * time.Millisecond
	barWidth  = 30
)

// withCopyProgress calls do, which may wait for copies, and shows their progress on a terminal.
func (c queryCommands) withCopyProgress(ctx context.Context, k *client.Client, do func() error) error {
	s := c.screenOut()
	if !s.live {
		return do()
	}
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		for every := time.NewTicker(lookEvery); ; {
			select {
			case <-every.C:
			case <-ctx.Done():
				every.Stop()
				return
			}
			if copies, err := k.Copying(ctx, nil); err == nil {
				s.draw(copyLines(copies))
			}
		}
	})
	err := do()
	cancel()
	looking.Wait()
	s.clear()
	return err
}

// copyLines returns a bar for each copy.
func copyLines(copies []host.Copying) (lines []string) {
	for _, p := range copies {
		full := int(p.Done * barWidth / max(p.Total, 1)) // #nosec G115 -- at most barWidth
		lines = append(lines, fmt.Sprintf("copying %s for queries  [%s%s] %d of %d records", abi.Clean(p.ConnectionID),
			strings.Repeat("#", full), strings.Repeat(".", barWidth-full), p.Done, p.Total))
	}
	return lines
}

// ask runs a statement and writes what it found.
func (c queryCommands) ask(ctx context.Context, k *client.Client, sql string, f *queryFlags) error {
	var found host.QueryResult
	err := c.withCopyProgress(ctx, k, func() (err error) {
		found, err = k.Query(ctx, host.Query{SQL: sql, Rows: f.rows})
		return err
	})
	if err != nil {
		return err
	}
	if found.Truncated {
		defer c.warnf("There are more rows; --rows takes up to 100000, and sluice export has all records.")
	}
	if f.out == "" {
		return c.write(c.out, found, f)
	}
	file, err := createFile("--out", f.out)
	if err != nil {
		return err
	}
	if err := c.write(file.buffer, found, f); err != nil {
		file.abandon()
		return err
	}
	return file.commit()
}

func (c queryCommands) write(out io.Writer, found host.QueryResult, f *queryFlags) error {
	if c.json {
		return printJSON(out, found)
	}
	w := bufio.NewWriter(out)
	switch f.format {
	case "csv":
		writeCSV(w, found)
	case "json", "ndjson":
		writeObjects(w, found, f.format == "json")
	case "markdown":
		writeMarkdown(w, found)
	default:
		if f.out == "" {
			return c.table(columnNames(found), cells(found))
		}
		for _, row := range cells(found) {
			fmt.Fprintln(w, strings.Join(cleanCells(row), "\t"))
		}
	}
	return w.Flush()
}

func columnNames(found host.QueryResult) []string {
	var out []string
	for _, col := range found.Columns {
		out = append(out, abi.Clean(col.Name))
	}
	return out
}

// cells returns the values as people read them: texts without quotes, nothing for NULL.
func cells(found host.QueryResult) [][]string {
	out := make([][]string, 0, len(found.Rows))
	for _, row := range found.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = cellText(v)
		}
		out = append(out, line)
	}
	return out
}

func cellText(v json.RawMessage) string {
	var text string
	if json.Unmarshal(v, &text) == nil {
		return text // "" for null
	}
	return string(v)
}

func writeCSV(w io.Writer, found host.QueryResult) {
	out := csv.NewWriter(w)
	_ = out.Write(columnNames(found)) // Flush of w has the error
	for _, row := range found.Rows {
		line := make([]string, len(row))
		for i, v := range row {
			line[i] = cellText(v)
			if len(v) > 0 && v[0] == '"' {
				line[i] = export.Cell(line[i])
			}
		}
		_ = out.Write(line)
	}
	out.Flush()
}

// writeObjects writes an object a row, its members in the order of the columns.
func writeObjects(w io.Writer, found host.QueryResult, array bool) {
	begin, between, end := "", "\n", "\n"
	if array {
		begin, between, end = "[\n", ",\n", "\n]\n"
	}
	if len(found.Rows) == 0 && !array {
		return
	}
	var names []string
	taken := map[string]bool{}
	for _, c := range found.Columns { // of SELECT * over two tables, some are equal
		name := c.Name
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s_%d", c.Name, n)
		}
		taken[name] = true
		quoted, _ := json.Marshal(name) // a text
		names = append(names, string(quoted))
	}
	fmt.Fprint(w, begin)
	for n, row := range found.Rows {
		if n > 0 {
			fmt.Fprint(w, between)
		}
		fmt.Fprint(w, "{")
		for i, v := range row {
			if i > 0 {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, "%s:%s", names[i], v)
		}
		fmt.Fprint(w, "}")
	}
	fmt.Fprint(w, end)
}

func writeMarkdown(w io.Writer, found host.QueryResult) {
	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "`", "\\`")
	line := func(cells []string) {
		for i, s := range cleanCells(cells) {
			cells[i] = escape.Replace(s)
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
	line(columnNames(found))
	fmt.Fprintln(w, "|"+strings.Repeat(" --- |", len(found.Columns)))
	for _, row := range cells(found) {
		line(row)
	}
}

// interactive reports whether somebody types statements.
func (c queryCommands) interactive() bool {
	in, ok := c.in.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && c.screenOut().live // #nosec G115 -- a descriptor
}

// readStatements reads and runs statements until the end of input. Tab completes tables and
// columns, the arrow keys recall earlier statements.
func (c queryCommands) readStatements(ctx context.Context, k *client.Client, f *queryFlags) error {
	tables, err := c.listTables(ctx, k)
	if err != nil {
		return err
	}
	words := completions(tables)
	in := c.in.(*os.File)                  // see interactive
	old, err := term.MakeRaw(int(in.Fd())) // #nosec G115 -- a descriptor
	if err != nil {
		return usagef("read from the terminal: %w", err)
	}
	cooked := func() { _ = term.Restore(int(in.Fd()), old) } // #nosec G115 -- a descriptor
	defer cooked()
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, c.errs}, "sluice> ")
	t.History = openHistory(historyFile())
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		return complete(line, pos, words)
	}
	for {
		statement, err := readStatement(t)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
			return usagef("read from the terminal: %w", err)
		}
		cooked()
		if err == nil {
			err = c.ask(ctx, k, statement, f)
		}
		if err != nil {
			c.warnf("%s", abi.Clean(err.Error()))
		}
		if _, err := term.MakeRaw(int(in.Fd())); err != nil { // #nosec G115 -- a descriptor
			return usagef("read from the terminal: %w", err)
		}
	}
}

// maxTyped is the number of characters that the terminal takes of a line. It drops the rest without a word.
const maxTyped = 4096

var errLineTooLong = fmt.Errorf(
	"a line is longer than %d characters; give the statement in several, or on standard input: sluice query < FILE",
	maxTyped-1)

// readStatement reads lines up to one that ends with a semicolon. It returns io.EOF for exit, too.
func readStatement(t *term.Terminal) (string, error) {
	t.SetPrompt("sluice> ")
	for statement := ""; ; {
		line, err := t.ReadLine()
		if err != nil {
			return "", err
		}
		statement = strings.TrimSpace(statement + "\n" + line)
		switch {
		case utf8.RuneCountInString(line) >= maxTyped:
			return "", errLineTooLong
		case statement == "":
			continue
		case statement == "exit" || statement == "quit" || statement == `\q`:
			return "", io.EOF
		case strings.HasSuffix(statement, ";"):
			return statement, nil
		}
		t.SetPrompt("   ...> ")
	}
}

// keywords are completed like names.
var keywords = []string{"SELECT ", "FROM ", "WHERE ", "GROUP BY ", "ORDER BY ", "LIMIT ", "JOIN ", "count(*)"}

// completions returns the words that a statement may have. Connectors choose names: those that a terminal does not show
// as they are, because of control characters or a change of the direction of writing, are left out.
func completions(tables []host.Table) []string {
	words := slices.Clone(keywords)
	for _, t := range tables {
		words = append(words, t.Name)
		for _, col := range t.Columns {
			words = append(words, columnWord(col.Name))
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return abi.Clean(w) != w })
	slices.Sort(words)
	return slices.Compact(words)
}

var plainName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// columnWord returns the name of a column as a statement wants it, or in quotes that it does not need.
func columnWord(name string) string {
	isKeyword := slices.ContainsFunc(keywords, func(k string) bool {
		first, _, _ := strings.Cut(k, " ")
		return strings.EqualFold(first, name)
	})
	if plainName().MatchString(name) && !isKeyword {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// complete extends the word before the cursor to the longest common prefix of the words
// that begin with it.
func complete(line string, pos int, words []string) (string, int, bool) {
	at := strings.LastIndexAny(line[:pos], " ,(=<>\n") + 1
	typed, found := line[at:pos], ""
	if typed == "" {
		return "", 0, false
	}
	for _, w := range words {
		if !beginsWith(w, typed) && !beginsWith(strings.TrimPrefix(w, `"`), typed) {
			continue
		}
		if found == "" {
			found = w
			continue
		}
		n := 0
		for n < min(len(found), len(w)) && found[n] == w[n] {
			n++
		}
		found = strings.ToValidUTF8(found[:n], "") // not half of a character
	}
	if len(found) <= len(typed) {
		return "", 0, false
	}
	return line[:at] + found + line[pos:], at + len(found), true
}

// beginsWith reports whether a word begins with what was typed, in either case.
func beginsWith(word, typed string) bool {
	return len(word) >= len(typed) && strings.EqualFold(word[:len(typed)], typed)
}
