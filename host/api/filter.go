package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// A filter compares one member of a record's data.
type filter struct {
	field, op string
	operands  []operand // one, or several for in
	want      bool      // for exists
}

// An operand is a value of a query in every form in which it can be compared. The type of the
// record's member decides which form counts.
type operand struct {
	text     string
	number   strictjson.Value // zero if it is not a number
	micros   int64
	readable bool // it is a valid time
}

var filterOps = []string{"eq", "ne", "gt", "gte", "lt", "lte", "in", "exists"}

// maxOperands bounds the values of in.
const maxOperands = 100

// readFilters parses field:op:value. A field may contain colons, and so may the value.
func readFilters(texts []string, spec abi.StreamSpec) ([]filter, error) {
	var out []filter
	for _, text := range texts {
		var f *filter
		for _, field := range filterable(spec) {
			if rest, ok := strings.CutPrefix(text, field+":"); ok {
				f = &filter{field: field}
				text = rest
				break
			}
		}
		if f == nil {
			return nil, unsupported(spec)
		}
		op, value, ok := strings.Cut(text, ":")
		if !ok || !slices.Contains(filterOps, op) {
			return nil, web.Invalid(web.Field{Path: "query.filter",
				Rule: "field:op:value with op one of " + strings.Join(filterOps, ", ")})
		}
		f.op = op
		switch op {
		case "exists":
			if value != "true" && value != "false" {
				return nil, web.Invalid(web.Field{Path: "query.filter", Rule: "exists:true or exists:false"})
			}
			f.want = value == "true"
		case "in":
			for v := range strings.SplitSeq(value, ",") {
				f.operands = append(f.operands, f.operand(v, spec))
			}
			if len(f.operands) > maxOperands {
				return nil, web.Invalid(web.Field{Path: "query.filter", Rule: "in with at most 100 values"})
			}
		default:
			f.operands = []operand{f.operand(value, spec)}
		}
		out = append(out, *f)
	}
	return out, nil
}

func unsupported(spec abi.StreamSpec) error {
	return web.NewProblem(0, "unsupported_filter",
		"Records can be filtered only by the fields that the stream lists as filterable.").
		With("filterable", filterable(spec))
}

func (f *filter) operand(text string, spec abi.StreamSpec) operand {
	o := operand{text: text}
	if v, err := strictjson.Parse([]byte(text), strictjson.ParseOptions{AnyKind: true}); err == nil &&
		v.Is(strictjson.KindNumber) {
		o.number = v
	}
	format := spec.Properties[f.field].Format
	if f.field == spec.ConsentTimeField || format == "date-time" || format == "date" {
		o.micros, o.readable = abi.ParseTime(text)
	}
	return o
}

// timeFilter turns from and until into filters on the consent-time field.
func timeFilter(field string, b timeRange) (out []filter) {
	if !b.from.IsZero() {
		out = append(out, filter{field: field, op: "gte", operands: []operand{{micros: b.from.UnixMicro(),
			readable: true}}})
	}
	if !b.until.IsZero() {
		out = append(out, filter{field: field, op: "lt", operands: []operand{{micros: b.until.UnixMicro(),
			readable: true}}})
	}
	return out
}

// matcher returns a store.RecordQuery.Match for all filters, or nil if there are none. No filter
// holds for a tombstone, which has no data.
func matcher(filters []filter, updated timeRange) func(store.Record) bool {
	if len(filters) == 0 && updated.open() {
		return nil
	}
	return func(r store.Record) bool {
		if !updated.holds(r.IngestedAt) {
			return false
		}
		if len(filters) == 0 {
			return true
		}
		if r.Deleted {
			return false
		}
		v, err := strictjson.Parse(r.Data, strictjson.ParseOptions{})
		return err == nil && !slices.ContainsFunc(filters, func(f filter) bool {
			m, _ := v.Member(f.field)
			return !f.holds(m)
		})
	}
}

// holds reports whether the filter holds for a member. ne is the negation of eq, even for a missing
// member; other comparisons hold only between values of one kind.
func (f *filter) holds(m strictjson.Value) bool {
	if f.op == "exists" {
		return f.want != m.Absent()
	}
	equal := slices.ContainsFunc(f.operands, func(o operand) bool {
		n, ok := o.compare(m)
		return ok && n == 0
	})
	switch f.op {
	case "eq", "in":
		return equal
	case "ne":
		return !equal
	}
	n, ok := f.operands[0].compare(m)
	if !ok || m.Is(strictjson.KindBool) {
		return false
	}
	switch f.op {
	case "gt":
		return n > 0
	case "gte":
		return n >= 0
	case "lt":
		return n < 0
	}
	return n <= 0
}

// compare returns the sign of m - o. ok is false if they cannot be compared.
func (o operand) compare(m strictjson.Value) (n int, ok bool) {
	if o.readable {
		at, ok := abi.TimeOf(m.Raw)
		return cmp.Compare(at, o.micros), ok
	}
	switch m.Kind {
	case strictjson.KindString:
		text, _ := m.Text()
		return strings.Compare(text, o.text), true
	case strictjson.KindBool:
		return strings.Compare(string(m.Raw), o.text), true
	case strictjson.KindNumber:
		return compareNumbers(m, o.number)
	}
	return 0, false
}

// compareNumbers is exact for 64-bit integers.
func compareNumbers(x, y strictjson.Value) (int, bool) {
	a, ok1 := x.Int64()
	b, ok2 := y.Int64()
	if ok1 && ok2 {
		return cmp.Compare(a, b), true
	}
	f, ok1 := x.Float64()
	g, ok2 := y.Float64()
	return cmp.Compare(f, g), ok1 && ok2
}
