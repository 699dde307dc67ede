package guest

import (
	"math"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// A Filter says what the scope grants of a stream. A record outside of the scope ends the
// run, so consult the filter before Emit. Emit leaves out fields that are not granted, so
// Wants is only needed for values that are costly to produce. A Filter is safe for
// concurrent use.
type Filter struct {
	fields, resources map[string]bool // nil grants all
	since, until      int64           // µs since 1970
	ranged            bool
}

// Filter returns the filter of a stream. ok is false if the stream is not in scope.
func (r *Run) Filter(stream string) (f *Filter, ok bool) {
	entry, ok := r.Stream(stream)
	if !ok {
		return nil, false
	}
	f = &Filter{fields: setOf(entry.Fields), since: math.MinInt64, until: math.MaxInt64}
	if len(entry.Resources) > 0 {
		f.resources = setOf(entry.Resources)
	}
	if t := entry.TimeRange; t != nil {
		f.ranged = true
		if at, ok := abi.ParseTime(t.Since); ok {
			f.since = at
		}
		if at, ok := abi.ParseTime(t.Until); ok {
			f.until = at
		}
	}
	return f, true
}

func setOf(items []string) map[string]bool {
	if items == nil {
		return nil
	}
	set := make(map[string]bool, len(items))
	for _, i := range items {
		set[i] = true
	}
	return set
}

// Wants reports whether a field is granted.
func (f *Filter) Wants(field string) bool { return f.fields == nil || f.fields[field] }

// Admits reports whether the resources of the scope include one of these names: the
// record's key, or its resource field if the stream has one.
func (f *Filter) Admits(names ...string) bool {
	return f.resources == nil || slices.ContainsFunc(names, func(n string) bool { return f.resources[n] })
}

// AdmitsTime reports whether the time range of the scope includes a record with this value
// of the stream's consent time field; "" stands for a record without one.
func (f *Filter) AdmitsTime(text string) bool {
	if !f.ranged {
		return true
	}
	t, ok := abi.ParseTime(text)
	return ok && t >= f.since && t < f.until
}
