package export

import (
	"context"
	"encoding/csv"
	"io"
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// envelope are the first columns of a CSV file.
var envelope = []string{"connectionId", "stream", "key", "emittedAt", "ingestedAt", "version", "runId", "deleted", "deletedAt"}

// WriteCSV writes the envelope columns, then columns, which Columns found: members
// that stand in no column are left out. It returns how many records it wrote.
func (s Selection) WriteCSV(ctx context.Context, w io.Writer, src Source, columns []string) (records int64, err error) {
	out := csv.NewWriter(w)
	head := slices.Clone(envelope)
	for _, name := range columns {
		head = append(head, Cell(name))
	}
	if err := out.Write(head); err != nil {
		return 0, err
	}
	at := make(map[string]int, len(columns))
	for i, name := range columns {
		at[name] = len(envelope) + i
	}
	row := make([]string, len(head))
	err = s.Each(ctx, src, func(r store.Record) error {
		records++
		clear(row)
		copy(row, envelopeCells(s.Connection, r))
		if err := fillCells(row, at, r); err != nil {
			return err
		}
		return out.Write(row)
	})
	if err != nil {
		return records, err
	}
	out.Flush()
	return records, out.Error()
}

func envelopeCells(connection store.ConnectionID, r store.Record) []string {
	l := LineOf(connection, r)
	deleted := ""
	if r.Deleted {
		deleted = "true"
	}
	return []string{Cell(string(connection)), Cell(string(r.Stream)), Cell(r.Key), l.EmittedAt, l.IngestedAt,
		strconv.FormatUint(r.Version, 10), string(r.RunID), deleted, l.DeletedAt}
}

func fillCells(row []string, column map[string]int, r store.Record) error {
	if len(r.Data) == 0 {
		return nil
	}
	v, err := parse(r)
	if err != nil {
		return err
	}
	for name, m := range v.Members() {
		if i, ok := column[name]; ok {
			row[i] = value(m)
		}
	}
	return nil
}

// value is a member as a cell: texts as they are, null as nothing, numbers and
// booleans as written, the rest as JSON.
func value(m strictjson.Value) string {
	switch {
	case m.Absent():
		return ""
	case m.Is(strictjson.KindString):
		text, _ := m.Text()
		return Cell(text)
	case m.Is(strictjson.KindNumber):
		return string(m.Raw) // -1 is a number, not a formula
	}
	return Cell(string(m.Raw))
}

// Cell makes text of a connector safe in a spreadsheet: cleaned, and with a
// leading ' where it could be a formula.
func Cell(s string) string {
	formula := s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r')
	s = abi.CleanLines(s)
	if formula || s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}
