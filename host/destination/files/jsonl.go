package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/destination"
)

// jsonl has one object per row and line: first the table's own members, then the columns by name. NULL is omitted.
// Numbers keep their original digits.
type jsonl struct{}

func (jsonl) Name() string          { return "jsonl" }
func (jsonl) Key(key string) string { return key }

// Fits implements Format. Earlier lines need no change for a new member, nor for a column whose values look the same in
// the new type.
func (jsonl) Fits(from, to *destination.Shape) bool {
	for i, c := range from.Columns {
		was, is := c.Type, to.Columns[i].Type
		if was != is && was != "" && (is == destination.Text && was != destination.Time || is == destination.JSON) {
			return false
		}
	}
	return true
}

func (jsonl) Create(w io.Writer, t Table) (Writer, error) {
	j := &jsonlWriter{out: w, table: t, own: t.Own(), types: map[string]destination.Type{}}
	for _, c := range t.Shape.Columns {
		j.names = append(j.names, append(strictjson.AppendQuote([]byte{','}, c.Name), ':'))
		j.types[c.Name] = c.Type
	}
	return j, nil
}

func (jsonl) Open(f *os.File, t Table, _ bool) (Reader, error) {
	return &jsonlReader{in: bufio.NewReaderSize(f, 1<<18), history: t.Mode == destination.History, shape: t.Shape}, nil
}

type jsonlWriter struct {
	out   io.Writer
	table Table
	own   []string
	names [][]byte // of the columns, with comma and colon
	types map[string]destination.Type
	line  []byte
	stamp stamper

	from    *jsonlReader // of the last copy
	convert bool         // its lines need conversion
}

func (w *jsonlWriter) Close() error { return nil }

func (w *jsonlWriter) Put(r *destination.Row) error {
	b := append(w.line[:0], '{')
	if w.table.Mode != "" {
		b = append(strictjson.AppendQuote(append(b, `"_key":`...), r.Key), `,"_version":`...)
		b = append(strconv.AppendUint(b, r.Version, 10), `,"_committed_at":"`...)
		b = append(w.stamp.append(b, r.At), '"')
		switch {
		case w.table.Mode == destination.History:
			b = append(w.stamp.append(append(b, `,"_valid_from":"`...), r.At), '"')
		case r.Deleted:
			b = append(w.stamp.append(append(b, `,"_deleted_at":"`...), r.At), '"')
		}
	}
	for i, c := range w.table.Shape.Columns {
		if i == len(r.Values) {
			break
		}
		v := &r.Values[i]
		if v.Type == "" {
			continue
		}
		b = append(b, w.names[i]...)
		if v.Type == destination.Text || v.Type == destination.Time || c.Type == destination.Text {
			b = strictjson.AppendQuote(b, v.Text)
		} else {
			b = append(b, v.Text...)
		}
	}
	if r.Rest != "" {
		b = append(append(b, `,"_rest":`...), r.Rest...)
	}
	return w.write(b)
}

// write writes a line. If the first member begins with a comma, that is dropped.
func (w *jsonlWriter) write(b []byte) error {
	w.line = append(b, '}', '\n')
	if len(b) > 1 && b[1] == ',' {
		w.line[1] = '{'
		_, err := w.out.Write(w.line[1:])
		return err
	}
	_, err := w.out.Write(w.line)
	return err
}

func appendMember(b []byte, name, text string) []byte {
	return strictjson.AppendQuote(append(strictjson.AppendQuote(append(b, ','), name), ':'), text)
}

func (w *jsonlWriter) Copy(from Reader, change *destination.Row) error {
	r := from.(*jsonlReader)
	if w.from != r {
		w.from, w.convert = r, !jsonl{}.Fits(r.shape, w.table.Shape)
	}
	if change == nil && !w.convert {
		_, err := w.out.Write(r.line)
		return err
	}
	row, err := strictjson.Parse(r.line, strictjson.ParseOptions{})
	if err != nil {
		return ErrLost
	}
	b := append(w.line[:0], '{')
	for name, v := range row.Members() {
		if change != nil && w.replaces(name) {
			continue
		}
		b = append(strictjson.AppendQuote(append(b, ','), name), ':')
		if w.types[name] == destination.Text && !v.Is(strictjson.KindString) {
			b = strictjson.AppendQuote(b, string(v.Raw))
		} else {
			b = append(b, v.Raw...)
		}
		if name == destination.KeyColumn && change != nil {
			b = w.appendChange(b, change)
		}
	}
	return w.write(b)
}

// replaces reports whether a change replaces a member of the table's own.
func (w *jsonlWriter) replaces(name string) bool {
	if w.table.Mode == destination.History {
		return name == destination.ValidTo
	}
	return name == destination.VersionColumn || name == destination.CommittedColumn || name == destination.DeletedColumn
}

func (w *jsonlWriter) appendChange(b []byte, change *destination.Row) []byte {
	at := Stamp(change.At)
	if w.table.Mode == destination.History {
		return appendMember(b, destination.ValidTo, at)
	}
	b = strconv.AppendUint(append(b, `,"_version":`...), change.Version, 10)
	return appendMember(appendMember(b, destination.CommittedColumn, at), destination.DeletedColumn, at)
}

type jsonlReader struct {
	in      *bufio.Reader
	history bool
	shape   *destination.Shape
	line    []byte
	long    []byte // a line longer than the buffer
	key     []byte
	rest    []byte // of the line, after the key
}

var jsonlBegin = []byte(`{"_key":"`)

func (r *jsonlReader) Next() error {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		r.long = append(r.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = r.in.ReadSlice('\n')
			r.long = append(r.long, line...)
		}
		line = r.long
	}
	if err == io.EOF && len(line) > 0 {
		return ErrLost
	}
	if err != nil {
		return err
	}
	r.line = line
	text, ok := bytes.CutPrefix(line, jsonlBegin)
	if !ok {
		return ErrLost
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			r.key, r.rest = text[:i], text[i+1:]
			return r.unquote(line[len(jsonlBegin)-1 : len(jsonlBegin)+i+1])
		}
	}
	return ErrLost
}

// unquote decodes a key that has escapes.
func (r *jsonlReader) unquote(quoted []byte) error {
	if bytes.IndexByte(r.key, '\\') < 0 {
		return nil
	}
	v, err := strictjson.Parse(quoted, strictjson.ParseOptions{AnyKind: true})
	text, ok := v.Text()
	if err != nil || !ok {
		return ErrLost
	}
	r.key = []byte(text)
	return nil
}

func (r *jsonlReader) Key() []byte { return r.key }

func (r *jsonlReader) Version() (n uint64) {
	_, text, _ := bytes.Cut(r.rest, []byte(`"_version":`))
	for _, c := range text {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// Live returns false if a change has put ValidTo behind the key.
func (r *jsonlReader) Live() bool {
	return !r.history || !bytes.HasPrefix(r.rest, []byte(`,"_valid_to":`))
}
