package export

import (
	"context"
	"io"
	"strconv"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/store"
)

// WriteNDJSON writes records as lines and returns their number.
func (s Selection) WriteNDJSON(ctx context.Context, w io.Writer, src Source) (records int64, err error) {
	var line []byte
	err = s.Each(ctx, src, func(r store.Record) error {
		records++
		line = append(appendLine(line[:0], s.Connection, r), '\n')
		_, err := w.Write(line)
		return err
	})
	return records, err
}

// appendLine appends the JSON of LineOf.
func appendLine(b []byte, connection store.ConnectionID, r store.Record) []byte {
	b = strictjson.AppendQuote(append(b, `{"connectionId":`...), string(connection))
	b = append(strictjson.AppendQuote(append(b, `,"stream":`...), string(r.Stream)), `,"key":`...)
	if r.Compound {
		b = append(b, r.Key...)
	} else {
		b = strictjson.AppendQuote(b, r.Key)
	}
	if len(r.Data) > 0 && !r.Deleted {
		b = strictjson.AppendCompact(append(b, `,"data":`...), r.Data)
	}
	b = store.AppendTime(append(b, `,"emittedAt":"`...), r.EmittedAt)
	b = store.AppendTime(append(b, `","ingestedAt":"`...), r.IngestedAt)
	b = strconv.AppendUint(append(b, `","version":`...), r.Version, 10)
	b = strictjson.AppendQuote(append(b, `,"runId":`...), string(r.RunID))
	if r.Deleted {
		b = append(store.AppendTime(append(b, `,"deleted":true,"deletedAt":"`...), r.IngestedAt), '"')
	}
	return append(b, '}')
}

// An End is the last line of an export over a network, by which the client recognizes that it is complete.
type End struct {
	End     bool   `json:"end"` // true
	Records int64  `json:"records"`
	Digest  string `json:"digest"` // sha256:HEX of the preceding lines
}
