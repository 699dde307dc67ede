package run

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Rejection describes one record that can never be stored, for the author of the connector and its owner. It
// has no value of the record's data.
type Rejection struct {
	Key      string `json:"key"`
	Code     string `json:"code"`
	Field    string `json:"field,omitempty"`
	Expected string `json:"expected,omitempty"`
	Received string `json:"received,omitempty"` // a JSON type, or "missing"
}

// String returns the rejection as a sentence without its full stop.
func (j Rejection) String() string {
	if j.Field == "" {
		return j.Key + ": " + reasonText(j.Code)
	}
	if j.Received == "missing" {
		return fmt.Sprintf("%s: %s is missing", j.Key, j.Field)
	}
	if j.Received == "" {
		return fmt.Sprintf("%s: %s %s", j.Key, j.Field, reasonText(j.Code))
	}
	return fmt.Sprintf("%s: %s must be %s and is %s", j.Key, j.Field, j.Expected, j.Received)
}

func reasonText(code string) string {
	if text, ok := rejectionTexts[code]; ok {
		return text
	}
	return code
}

// The codes of rejected records.
const (
	rejectIdentity    = "invalid_record_identity"
	rejectSchema      = "invalid_record_schema"
	rejectText        = abi.RejectedText
	rejectKeyForm     = "ambiguous_record_key"
	rejectFile        = "invalid_record_file"
	rejectUnknownFile = "unknown_file"
)

var rejectionTexts = map[string]string{
	rejectIdentity:    "differs from its part of the key",
	rejectSchema:      "does not fit the schema",
	rejectText:        "it holds NUL or half a surrogate pair, which no text may",
	rejectFile:        "holds something that is no reference to a file",
	rejectUnknownFile: "names a file that this run did not attach and the connection does not hold",
	rejectKeyForm:     "its key is a text that spells an array, and so the key of another record",
}

// maxRejections is how many rejected records of a stream are described. All are counted.
const maxRejections = 5

// rejections are the rejected records of a buffer or a run.
type rejections struct {
	count int
	codes map[string]int
	first []Rejection
}

func (x *rejections) add(j Rejection) {
	x.count++
	if x.codes == nil {
		x.codes = map[string]int{}
	}
	x.codes[j.Code]++
	if len(x.first) < maxRejections {
		x.first = append(x.first, j)
	}
}

// join adds the counts of o.
func (x *rejections) join(o rejections) {
	x.count += o.count
	if x.codes == nil {
		x.codes = map[string]int{}
	}
	for code, n := range o.codes {
		x.codes[code] += n
	}
	x.first = append(x.first, o.first[:min(len(o.first), maxRejections-len(x.first))]...)
}

// most returns the most frequent code.
func (x *rejections) most() string {
	codes := slices.Sorted(maps.Keys(x.codes))
	return slices.MaxFunc(codes,
		func(a, b string) int { return cmp.Or(cmp.Compare(x.codes[a], x.codes[b]), cmp.Compare(b, a)) })
}

func countOf(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.FormatInt(n, 10) + " " + word + "s"
}

// reject returns why a record can never be stored, nil if it can.
func (b *buffer) reject(m *abi.RecordMessage) *Rejection {
	if m.Rejected != "" {
		return &Rejection{Code: m.Rejected, Field: m.RejectedAt}
	}
	if !m.Compound && spellsArray(m.Key) {
		return &Rejection{Code: rejectKeyForm}
	}
	if len(m.Data) == 0 {
		return nil
	}
	if field, ok := b.identity(m); !ok {
		return &Rejection{Code: rejectIdentity, Field: field}
	}
	if b.spec.CheckSchema {
		return mismatch(b.spec, m)
	}
	return nil
}

// spellsArray reports whether a text key equals the stored form of a compound key, since both would be the same
// record.
func spellsArray(key []byte) bool {
	if len(key) < 2 || key[0] != '[' || key[len(key)-1] != ']' {
		return false
	}
	var s strictjson.Scanner
	if kind, err := s.Valid(key); err != nil || kind != strictjson.KindArray {
		return false
	}
	canonical, _, ok := abi.CanonicalKey(nil, key)
	return ok && bytes.Equal(canonical, key)
}

// identity compares the primary-key fields in the data with their parts of the key. It returns the field that
// differs.
func (b *buffer) identity(m *abi.RecordMessage) (field string, ok bool) {
	names := b.spec.PrimaryKey
	agrees := func(name string, part []byte) bool {
		v := memberOf(m.Members, name)
		return v.Kind == 0 || v.Kind == strictjson.KindNull || textEquals(v, part)
	}
	switch {
	case len(names) == 0 || !m.Compound && len(names) > 1:
		return "", false
	case !m.Compound:
		return names[0], agrees(names[0], m.Key)
	}
	i := 0
	key := strictjson.Member{Value: m.Key, Kind: strictjson.KindArray}.Tree()
	for part := range key.Items() {
		if i < len(names) {
			if text, _ := part.Text(); !agrees(names[i], []byte(text)) {
				return names[i], false
			}
		}
		i++
	}
	if len(names) == 1 { // an array of one element stands for one field
		return names[0], i == 1
	}
	return "", i == len(names)
}

func memberOf(members []strictjson.Member, name string) strictjson.Member {
	for _, m := range members {
		if string(m.Name) == name {
			return m
		}
	}
	return strictjson.Member{}
}

// textEquals reports whether a value, as text, equals a part of a key.
func textEquals(v strictjson.Member, key []byte) bool {
	switch v.Kind {
	case strictjson.KindString:
		if inner := v.Value[1 : len(v.Value)-1]; bytes.Equal(inner, key) && bytes.IndexByte(inner, '\\') < 0 {
			return true
		}
		return strictjson.EqualText(v.Value, string(key))
	case strictjson.KindNumber:
		if bytes.Equal(v.Value, key) {
			return true
		}
		a, okA := strictjson.Int64(v.Value)
		k, okK := strictjson.Int64(key)
		return okA && okK && a == k && isInteger(key)
	default:
		return bytes.Equal(v.Value, key)
	}
}

func isInteger(key []byte) bool {
	return len(key) > 0 && !slices.ContainsFunc(key, func(c byte) bool { return (c < '0' || c > '9') && c != '-' })
}

// mismatch checks required members and the types of present ones, and returns the first mismatch, nil for none.
func mismatch(spec abi.StreamSpec, m *abi.RecordMessage) *Rejection {
	for _, name := range spec.Required {
		if memberOf(m.Members, name).Kind == 0 {
			return &Rejection{Code: rejectSchema, Field: name, Received: "missing"}
		}
	}
	for _, v := range m.Members {
		if p, ok := spec.Properties[string(v.Name)]; ok && !hasType(p.Types, v) {
			return &Rejection{Code: rejectSchema, Field: string(v.Name), Expected: strings.Join(p.Types, " or "),
				Received: v.Kind.String()}
		}
	}
	return nil
}

func hasType(types []string, v strictjson.Member) bool {
	if len(types) == 0 {
		return true
	}
	for _, t := range types {
		switch {
		case t == "string" && v.Kind == strictjson.KindString,
			t == "number" && v.Kind == strictjson.KindNumber,
			t == "boolean" && v.Kind == strictjson.KindBool,
			t == "object" && v.Kind == strictjson.KindObject,
			t == "array" && v.Kind == strictjson.KindArray,
			t == "null" && v.Kind == strictjson.KindNull:
			return true
		case t == "integer" && v.Kind == strictjson.KindNumber:
			if _, ok := strictjson.Int64(v.Value); ok {
				return true
			}
		}
	}
	return false
}
