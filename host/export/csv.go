package export

import (
	"context"
	"io"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// envelope are the first columns of a CSV file.
var envelope = []string{"connectionId", "stream", "key", "emittedAt", "ingestedAt", "version", "runId", "deleted", "deletedAt"}

// WriteCSV writes the envelope columns, then columns, which Columns found: members
// that stand in no column are left out. It returns how many records it wrote.
func (s Selection) WriteCSV(ctx context.Context, w io.Writer, src Source, columns []string) (records int64, err error) {
	line := []byte(strings.Join(envelope, ","))
	at := make(map[string]int, len(columns))
	for i, name := range columns {
		line = AppendCell(append(line, ','), Cell(name))
		at[name] = i
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	cells := make([]strictjson.Value, len(columns))
	err = s.Each(ctx, src, func(r store.Record) error {
		records++
		clear(cells)
		fillCells(cells, at, r.Data)
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

// fillCells puts the members of a record's data, which was checked when it was stored,
// where their columns are.
func fillCells(cells []strictjson.Value, column map[string]int, data []byte) {
	for name, m := range strictjson.ValueOf(data).RawMembers() {
		text, plain := strictjson.Plain(name)
		if !plain {
			text = strictjson.AppendString(nil, name)
		}
		if i, ok := column[string(text)]; ok {
			cells[i] = m
		}
	}
}

// appendValue appends a member as a cell: texts as they are, null as nothing, numbers and
// booleans as written, the rest as JSON.
func appendValue(b []byte, m strictjson.Value) []byte {
	switch {
	case m.Absent():
		return b
	case m.Is(strictjson.KindString):
		text, _ := m.Text()
		return AppendText(b, text)
	case m.Is(strictjson.KindNumber):
		return append(b, m.Raw...) // -1 is a number, not a formula
	}
	return AppendText(b, string(m.Raw))
}
