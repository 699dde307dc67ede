package destination

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Type is the type of a column. Every type includes NULL.
type Type string

// The types of columns. A column that has to hold values of two types becomes Number if these are Integer and Number
// and no integer loses a digit, otherwise Text.
const (
	Boolean Type = "boolean"
	Integer Type = "integer" // 64 bit
	Number  Type = "number"  // 64 bit floating point
	Time    Type = "time"    // an instant of the years 1 to 9999; RFC 3339 with a zone
	JSON    Type = "json"    // objects and arrays
	Text    Type = "text"
)

// join returns the type that holds values of both types. "" is the type of no value.
func join(a, b Type) Type {
	switch {
	case a == b || b == "":
		return a
	case a == "":
		return b
	case (a == Integer || a == Number) && (b == Integer || b == Number):
		return Number
	}
	return Text
}

// A Column is a field of records.
type Column struct {
	Field string `json:"field"`           // the member of the record's data
	Inner string `json:"inner,omitempty"` // the member of that object, if objects are flattened
	Name  string `json:"name"`            // in the destination; unique regardless of case
	Type  Type   `json:"type"`            // "" if it has only held NULL
	Large bool   `json:"large,omitempty"` // has held an integer that a Number cannot
}

// exact is the bound up to which a Number represents every integer.
const exact = 1 << 53

// hold widens the column's type to include v.
func (c *Column) hold(v Value) {
	c.Large = c.Large || v.Type == Integer && (v.Integer > exact || v.Integer < -exact)
	if c.Type = join(c.Type, v.Type); c.Type == Number && c.Large {
		c.Type = Text
	}
}

// Maximum number of columns besides the table's own, and of bytes in a column's name. PostgreSQL allows 1,600 and 63,
// SQLite 2,000 columns.
const (
	MaxColumns = 1000
	maxName    = 63
)

// RestColumn holds the fields beyond MaxColumns as one JSON object.
const RestColumn = "_rest"

// Names of a table's own columns. ValidFrom and ValidTo are in tables with all versions, DeletedColumn is in the
// others.
const (
	KeyColumn       = "_key"
	VersionColumn   = "_version"
	CommittedColumn = "_committed_at"
	DeletedColumn   = "_deleted_at"
	ValidFrom       = "_valid_from"
	ValidTo         = "_valid_to"
)

var own = []string{KeyColumn, VersionColumn, CommittedColumn, DeletedColumn, ValidFrom, ValidTo, RestColumn}

// system lists the system columns of PostgreSQL and SQLite.
var system = []string{"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "rowid", "_rowid_", "oid"}

// A Shape describes the columns of a table. It only grows: fields that no record has any more keep their columns. The
// zero value has no columns.
type Shape struct {
	Columns []Column `json:"columns"`
	Rest    bool     `json:"rest,omitempty"` // more fields are in RestColumn
	Flatten bool     `json:"flatten,omitempty"`

	at    map[[2]string]int // by field and inner
	names map[string]bool   // used names in lower case
}

// ShapeOf returns a shape with the columns that a manifest declares for a stream.
func ShapeOf(spec abi.StreamSpec, flatten bool) *Shape {
	s := &Shape{Flatten: flatten}
	root, err := strictjson.Parse(spec.Schema, strictjson.ParseOptions{})
	if err != nil {
		return s
	}
	properties, _ := root.Member("properties")
	for field := range properties.Members() {
		p := spec.Properties[field]
		t := declared(p)
		if t == JSON && flatten {
			continue // its members are not known before there is a record
		}
		s.column(field, "", Value{Type: t})
	}
	return s
}

// declared returns the type that a schema declares, "" if it declares none.
func declared(p abi.Property) (t Type) {
	for _, name := range p.Types {
		switch name {
		case "null":
		case "boolean":
			t = join(t, Boolean)
		case "integer":
			t = join(t, Integer)
		case "number":
			t = join(t, Number)
		case "object", "array":
			t = join(t, JSON)
		case "string":
			if p.Format == "date-time" {
				t = join(t, Time)
				continue
			}
			t = join(t, Text)
		}
	}
	return t
}

// Clone returns a copy that grows independently.
func (s *Shape) Clone() *Shape {
	return &Shape{Columns: slices.Clone(s.Columns), Rest: s.Rest, Flatten: s.Flatten}
}

func (s *Shape) index() {
	s.at, s.names = map[[2]string]int{}, map[string]bool{}
	for _, n := range slices.Concat(own, system) {
		s.names[n] = true
	}
	for i, c := range s.Columns {
		s.at[[2]string{c.Field, c.Inner}], s.names[strings.ToLower(c.Name)] = i, true
	}
}

// column returns the index of the column for a field, which it widens to hold v or adds if necessary; -1 if there is no
// room.
func (s *Shape) column(field, inner string, v Value) int {
	if s.at == nil {
		s.index()
	}
	i, ok := s.at[[2]string{field, inner}]
	switch {
	case ok:
		s.Columns[i].hold(v)
		return i
	case len(s.Columns) == MaxColumns:
		s.Rest = true
		return -1
	}
	name := field
	if inner != "" {
		name += "_" + inner
	}
	c := Column{Field: field, Inner: inner, Name: UniqueName(name, s.names)}
	c.hold(v)
	s.Columns = append(s.Columns, c)
	s.at[[2]string{field, inner}] = len(s.Columns) - 1
	return len(s.Columns) - 1
}

// UniqueName returns a name of at most 63 bytes that is not in taken, regardless of case, and adds it in lower case.
// Control characters become underscores. A name that is cut ends with a digest of the whole.
func UniqueName(text string, taken map[string]bool) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return '_'
		}
		return r
	}, text)
	if clean == "" {
		clean = "_"
	}
	if len(clean) > maxName {
		h := fnv.New32a()
		h.Write([]byte(text))
		clean = cut(clean, maxName-9) + fmt.Sprintf("_%08x", h.Sum32())
	}
	name := clean
	for n := 2; taken[strings.ToLower(name)]; n++ {
		suffix := fmt.Sprintf("_%d", n)
		name = cut(clean, maxName-len(suffix)) + suffix
	}
	taken[strings.ToLower(name)] = true
	return name
}

// cut cuts a text to at most n bytes without splitting a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// A Value is a value of one column and row, with its own type. The zero Value is NULL.
type Value struct {
	Type    Type
	Integer int64   // 1 for true; microseconds since 1970 for a time
	Number  float64 // also set for an integer
	Text    string  // original spelling: digits of a number, text of a string, JSON
}

// Row maps the data of a record to the shape, which grows if necessary. The values are in the order of the columns;
// trailing ones may be missing. rest has the fields for which there is no room, "" for none. data is a JSON object that
// was validated when it was stored.
func (s *Shape) Row(data []byte, into []Value) (values []Value, rest string) {
	values = into[:0]
	var more bytes.Buffer
	set := func(field, inner string, v strictjson.Value) bool {
		value := valueOf(v)
		i := s.column(field, inner, value)
		if i < 0 {
			return false
		}
		for len(values) <= i {
			values = append(values, Value{})
		}
		values[i] = value
		return true
	}
	for field, v := range strictjson.ValueOf(data).Members() {
		fits := true
		if s.Flatten && v.Is(strictjson.KindObject) && !unnamed(v) {
			for inner, v := range v.Members() {
				fits = set(field, inner, v) && fits
			}
		} else {
			fits = set(field, "", v)
		}
		if !fits {
			if more.Len() > 0 {
				more.WriteByte(',')
			}
			more.Write(strictjson.AppendQuote(nil, field))
			more.WriteByte(':')
			more.Write(strictjson.AppendCompact(nil, v.Raw))
		}
	}
	if more.Len() > 0 {
		rest = "{" + more.String() + "}"
	}
	return values, rest
}

// unnamed reports whether an object has a member without a name, which would get the column of the field itself.
func unnamed(v strictjson.Value) bool {
	_, has := v.Member("")
	return has
}

func valueOf(v strictjson.Value) Value {
	switch v.Kind {
	case strictjson.KindBool:
		if yes, _ := v.Bool(); yes {
			return Value{Type: Boolean, Integer: 1, Text: "true"}
		}
		return Value{Type: Boolean, Text: "false"}
	case strictjson.KindNumber:
		if n, ok := v.Int64(); ok && !bytes.ContainsAny(v.Raw, ".eE") {
			return Value{Type: Integer, Integer: n, Number: float64(n), Text: string(v.Raw)}
		}
		if f, ok := v.Float64(); ok && bytes.ContainsAny(v.Raw, ".eE") {
			return Value{Type: Number, Number: f, Text: string(v.Raw)}
		}
		return Value{Type: Text, Text: string(v.Raw)} // out of range
	case strictjson.KindString:
		text, _ := v.Text()
		if t, ok := instant(text); ok {
			return Value{Type: Time, Integer: t.UnixMicro(), Text: text}
		}
		return Value{Type: Text, Text: text}
	case strictjson.KindObject, strictjson.KindArray:
		return Value{Type: JSON, Text: string(strictjson.AppendCompact(nil, v.Raw))}
	}
	return Value{}
}

// instant parses an RFC 3339 time with a zone whose year has four digits also in UTC. Most texts are rejected by their
// first bytes.
func instant(text string) (time.Time, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || len(text) > 40 || text[4] != '-' || text[7] != '-' || text[10] != 'T' {
		return time.Time{}, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	year := t.UTC().Year()
	return t, err == nil && year >= 1 && year <= 9999
}

// As returns the value for a column of type t, into which it must fit. Every value fits Text.
func (v Value) As(t Type) Value {
	if v.Type != "" {
		v.Type = t
	}
	return v
}
