package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

const (
	stream     = "rows"
	stateEvery = 1000 // rows between two cursors
)

// A cursor says how far the table was read. A later run continues behind it.
type cursor struct {
	Line int `json:"line"`
}

// collect sends the rows of the table that are granted and new.
func collect(p *profile, s start) error {
	i := slices.IndexFunc(s.Scope.Streams, func(g grant) bool { return g.Name == stream })
	if i < 0 {
		return nil // nothing of this connector's is in scope
	}
	var from cursor
	if raw := s.State[stream]; len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &from); err != nil {
			return fmt.Errorf("read cursor: %w", err)
		}
	}
	table := s.Config.table()
	columns, err := table.Read()
	if errors.Is(err, io.EOF) {
		return p.state(stream, from)
	}
	if err != nil {
		return fmt.Errorf("read column names: %w", err)
	}
	columns = slices.Clone(columns)
	_, interactive := s.Bindings["interactive"]
	key, err := findKey(p, columns, s.Config.Key, interactive)
	if err != nil {
		return err
	}
	c := &copier{p: p, grant: s.Scope.Streams[i], columns: columns, key: key, at: from}
	return c.copy(table)
}

// findKey decides which column identifies rows. When no setting says so, and there is
// an owner to ask, it asks.
func findKey(p *profile, columns []string, name string, interactive bool) (int, error) {
	if i, ok := keyColumn(columns, name); ok {
		return i, nil
	}
	if name != "" || !interactive {
		return 0, fmt.Errorf("no column tells rows apart: set key to one of %q", columns)
	}
	choice, err := p.choose(stream, "Which column tells the rows of the table apart?", columns)
	if err != nil {
		return 0, err
	}
	i, ok := keyColumn(columns, choice)
	if !ok {
		return 0, fmt.Errorf("there is no column %q", choice)
	}
	return i, nil
}

// A copier turns rows into records.
type copier struct {
	p         *profile
	grant     grant
	columns   []string
	key       int
	at        cursor
	malformed int // lines that are no rows
}

func (c *copier) copy(table *csv.Reader) error {
	for {
		row, err := table.Read()
		if errors.Is(err, io.EOF) {
			return c.end()
		}
		if parse, ok := errors.AsType[*csv.ParseError](err); ok {
			if parse.Line > c.at.Line {
				c.malformed++
				c.at.Line = parse.Line
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("read row: %w", err)
		}
		if line, _ := table.FieldPos(0); line > c.at.Line {
			if err := c.row(row, line); err != nil {
				return err
			}
		}
	}
}

// row sends one row, and now and then the cursor.
func (c *copier) row(row []string, line int) error {
	c.at.Line = line
	if len(row) != len(c.columns) || row[c.key] == "" {
		c.malformed++
		return nil
	}
	date, dated := dateOf(c.columns, row)
	if !c.grant.admits(row[c.key], date, dated) {
		return nil
	}
	data := map[string]any{"id": row[c.key], "line": line, "values": valuesOf(c.columns, row)}
	if dated {
		data["date"] = date.Format(time.DateOnly)
	}
	if err := c.p.record(stream, row[c.key], c.grant.keep(data)); err != nil {
		return err
	}
	if c.p.emitted%stateEvery != 0 {
		return nil
	}
	if err := c.p.progress(stream, "Reading the table", c.p.emitted); err != nil {
		return err
	}
	return c.p.state(stream, c.at)
}

// end says what was left out, and how far the table goes.
func (c *copier) end() error {
	if c.malformed > 0 {
		if err := c.p.skip(stream, "malformed_row",
			fmt.Sprintf("%d lines are no rows of the table", c.malformed)); err != nil {
			return err
		}
	}
	return c.p.state(stream, c.at)
}
