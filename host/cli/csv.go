package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/store"
)

// envelope are the first columns of a CSV file (A215).
var envelope = []string{"connectionId", "stream", "key", "emittedAt", "ingestedAt", "version", "runId", "deleted", "deletedAt"}

// maxColumns bounds what records can make of a CSV file: a guest chooses the
// names of its members.
const maxColumns = 1000

// writeCSV writes the envelope columns, then the top-level data fields in the
// order of the schemas, then those that no schema names, in name order (A215).
func (f *recordFile) writeCSV(ctx context.Context, st store.Store, s selection) error {
	fields, err := s.fields(ctx, st)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f.buffer)
	head := slices.Clone(envelope)
	for _, name := range fields {
		head = append(head, cell(name))
	}
	if err := w.Write(head); err != nil {
		return err
	}
	column := make(map[string]int, len(fields))
	for i, name := range fields {
		column[name] = len(envelope) + i
	}
	row := make([]string, len(head))
	err = s.each(ctx, st, func(r store.Record) error {
		f.records++
		clear(row)
		copy(row, envelopeCells(s.connection, r))
		if err := fillCells(row, column, r); err != nil {
			return err
		}
		return w.Write(row)
	})
	if err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

func envelopeCells(connection store.ConnectionID, r store.Record) []string {
	l := lineOf(connection, r)
	deleted := ""
	if r.Deleted {
		deleted = "true"
	}
	return []string{cell(string(connection)), cell(string(r.Stream)), cell(r.Key), l.EmittedAt, l.IngestedAt,
		strconv.FormatUint(r.Version, 10), string(r.RunID), deleted, l.DeletedAt}
}

func fillCells(row []string, column map[string]int, r store.Record) error {
	if len(r.Data) == 0 {
		return nil
	}
	v, err := abi.Parse(r.Data, abi.ParseOptions{})
	if err != nil {
		return fmt.Errorf("read record %q of %s: %w", abi.Clean(r.Key), r.Stream, err)
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
func value(m abi.Value) string {
	switch {
	case m.Absent():
		return ""
	case m.Is(abi.KindString):
		text, _ := m.Text()
		return cell(text)
	case m.Is(abi.KindNumber):
		return string(m.Raw) // -1 is a number, not a formula
	}
	return cell(string(m.Raw))
}

// cell makes text of a connector safe in a spreadsheet: cleaned, and with a
// leading ' where it could be a formula (S50).
func cell(s string) string {
	formula := s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@' || s[0] == '\t' || s[0] == '\r')
	s = abi.CleanLines(s)
	if formula || s != "" && (s[0] == '=' || s[0] == '+' || s[0] == '-' || s[0] == '@') {
		return "'" + s
	}
	return s
}

// fields lists the data fields of the selected records in column order.
func (s selection) fields(ctx context.Context, st store.Store) ([]string, error) {
	var fields []string
	known := map[string]bool{}
	for _, from := range s.streams {
		for _, name := range schemaFields(s.manifest.Stream(string(from.name))) {
			if !known[name] {
				known[name] = true
				fields = append(fields, name)
			}
		}
	}
	declared := len(fields)
	err := s.each(ctx, st, func(r store.Record) error {
		if len(r.Data) == 0 {
			return nil
		}
		v, err := abi.Parse(r.Data, abi.ParseOptions{})
		if err != nil {
			return fmt.Errorf("read record %q of %s: %w", abi.Clean(r.Key), r.Stream, err)
		}
		for name := range v.Members() {
			if !known[name] {
				known[name] = true
				fields = append(fields, name)
			}
		}
		if len(fields) > maxColumns {
			return fmt.Errorf("the records have more than %d different fields; export to .jsonl", maxColumns)
		}
		return nil
	})
	slices.Sort(fields[declared:])
	return fields, err
}

// schemaFields are the properties of a stream's schema, in its order.
func schemaFields(spec abi.StreamSpec) []string {
	v, err := abi.Parse(spec.Schema, abi.ParseOptions{})
	if err != nil {
		return nil // a stream without a schema has no declared fields
	}
	properties, _ := v.Member("properties")
	var out []string
	for name := range properties.Members() {
		out = append(out, name)
	}
	return out
}
