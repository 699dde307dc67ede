package export

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// envelope lists the first columns of a CSV file.
var envelope = []string{"connectionId", "stream", "key", "emittedAt", "ingestedAt", "version", "runId",
	"deleted", "deletedAt"}

// WriteCSV writes the envelope columns, then the given ones, which Columns returned. Members in none of them are
// omitted. It returns the number of records.
func (s Selection) WriteCSV(ctx context.Context, w io.Writer, src Source, columns []string) (records int64, err error) {
	line := []byte(strings.Join(envelope, ","))
	for _, name := range columns {
		line = AppendCell(append(line, ','), Cell(name))
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	cells, places := make([]strictjson.Value, len(columns)), placesOf(columns)
	err = s.Each(ctx, src, func(r store.Record) error {
		records++
		clear(cells)
		places.fill(cells, r.Data)
		line = appendEnvelope(line[:0], s.Connection, r)
		for _, v := range cells {
			line = appendValue(append(line, ','), v)
		}
		line = append(line, '\n')
		_, err := w.Write(line)
		return err
	})
	return records, err
}

func appendEnvelope(b []byte, connection store.ConnectionID, r store.Record) []byte {
	b = append(AppendText(b, string(connection)), ',')
	b = append(AppendText(b, string(r.Stream)), ',')
	b = append(AppendText(b, r.Key), ',')
	b = append(store.AppendTime(b, r.EmittedAt), ',')
	b = append(store.AppendTime(b, r.IngestedAt), ',')
	b = append(strconv.AppendUint(b, r.Version, 10), ',')
	b = append(append(b, r.RunID...), ',')
	if !r.Deleted {
		return append(b, ',')
	}
	return store.AppendTime(append(b, "true,"...), r.IngestedAt)
}

// places maps the members of records to columns. Most records have the same members in the same order as the one
// before, whose places are reused without looking up names.
type places struct {
	column map[string]int
	before []place // of the previous record, in the order of its members
}

type place struct {
	name []byte // as spelled
	at   int    // index of the column, or -1 for none
}

func placesOf(columns []string) *places {
	p := &places{column: make(map[string]int, len(columns))}
	for i, name := range columns {
		p.column[name] = i
	}
	return p
}

// fill sets the cells for the members of a record's data, which was validated when it was stored.
func (p *places) fill(cells []strictjson.Value, data []byte) {
	n := 0
	for name, m := range strictjson.ValueOf(data).RawMembers() {
		if at := p.of(n, name); at >= 0 {
			cells[at] = m
		}
		n++
	}
}

// of returns the place of member n of a record.
func (p *places) of(n int, name []byte) int {
	if n < len(p.before) && bytes.Equal(p.before[n].name, name) {
		return p.before[n].at
	}
	at, ok := p.column[strictjson.String(name)]
	if !ok {
		at = -1
	}
	if n < MaxColumns {
		p.before = append(p.before[:n], place{bytes.Clone(name), at})
	}
	return at
}

// appendValue appends a member as a cell: strings as text, null as an empty cell, numbers and booleans as spelled,
// everything else as JSON.
func appendValue(b []byte, m strictjson.Value) []byte {
	switch {
	case m.Absent():
		return b
	case m.Is(strictjson.KindString):
		if text, plain := strictjson.Plain(m.Raw); plain {
			return AppendText(b, text)
		}
		return AppendText(b, strictjson.String(m.Raw))
	case m.Is(strictjson.KindNumber):
		return append(b, m.Raw...) // -1 is a number, not a formula
	}
	return AppendText(b, m.Raw)
}
