package webhook

import (
	"strconv"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/destination"
)

// Maximum size of a body. A larger record is sent alone.
const (
	maxRecords = 500
	maxBytes   = 1 << 20
	envelope   = 128 // approximate bytes of a record besides its key and data
)

// fitting returns how many of the rows fit into a body, at least one if there are any.
func fitting(rows []destination.Row) (n int) {
	size := 0
	for n < len(rows) && n < maxRecords {
		if size += len(rows[n].Key) + len(rows[n].Data) + envelope; size > maxBytes && n > 0 {
			break
		}
		n++
	}
	return n
}

const layout = "2006-01-02T15:04:05.000000Z"

// begin returns the beginning of every body.
func begin(kind, name string, id destination.StreamID, m mark) []byte {
	b := append(make([]byte, 0, 1<<16), `{"type":"`...)
	b = append(append(b, kind...), `","destination":`...)
	b = append(strictjson.AppendQuote(b, name), `,"connectionId":`...)
	b = append(strictjson.AppendQuote(b, string(id.Connection)), `,"stream":`...)
	b = append(strictjson.AppendQuote(b, string(id.Stream)), `,"begun":"`...)
	b = append(m.Begun.UTC().AppendFormat(b, layout), `","fromVersion":`...)
	return strconv.AppendUint(b, m.Mark, 10)
}

// changed returns the body that lists the records changed above mark m up to version to.
func changed(name string, id destination.StreamID, m mark, to uint64, rows []destination.Row) []byte {
	b := append(begin("records.changed", name, id, m), `,"toVersion":`...)
	b = append(strconv.AppendUint(b, to, 10), `,"records":[`...)
	for i, r := range rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendQuote(append(b, `{"key":`...), r.Key), `,"version":`...)
		b = append(strconv.AppendUint(b, r.Version, 10), `,"committedAt":"`...)
		b = append(r.At.UTC().AppendFormat(b, layout), '"')
		if r.Deleted {
			b = append(b, `,"deleted":true`...)
		} else if len(r.Data) > 0 {
			b = append(append(b, `,"data":`...), r.Data...)
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

// cleared returns the body that declares void what was sent of a stream since m.Begun.
func cleared(name string, id destination.StreamID, m mark) []byte {
	return append(begin("records.cleared", name, id, m), '}')
}
