package export

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// MaxColumns bounds the columns of a CSV file, because a connector chooses the names of members.
const MaxColumns = 1000

// ErrColumns reports that the records have more than MaxColumns different fields.
var ErrColumns = errors.New("the records have more than 1000 different fields")

// Columns returns the data fields of the selected records, first in the order of the schemas, then those in no schema
// sorted by name. It reads all records and counts them. It may return ErrColumns.
func (s Selection) Columns(ctx context.Context, src Source) (fields []string, records int64, err error) {
	known := map[string]bool{}
	add := func(name string) {
		if !known[name] && (s.Keep == nil || s.Keep[name]) {
			known[name] = true
			fields = append(fields, name)
		}
	}
	for _, from := range s.Streams {
		for _, name := range SchemaFields(s.Manifest.Stream(string(from.Stream))) {
			add(name)
		}
	}
	declared := len(fields)
	spelled := map[string]bool{} // names already handled, as spelled
	err = s.Each(ctx, src, func(r store.Record) error {
		records++
		for name := range strictjson.ValueOf(r.Data).RawMembers() {
			if !spelled[string(name)] {
				spelled[string(name)] = true
				add(strictjson.String(name))
			}
		}
		if len(fields) > MaxColumns {
			return ErrColumns
		}
		return nil
	})
	slices.Sort(fields[declared:])
	return fields, records, err
}

// SchemaFields returns the properties of a stream's schema, in its order.
func SchemaFields(spec abi.StreamSpec) []string {
	v, err := strictjson.Parse(spec.Schema, strictjson.ParseOptions{})
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
