package export

import (
	"context"
	"encoding/json"
	"io"

	"github.com/sluicehost/sluice/store"
)

// WriteNDJSON writes one Line after the other and returns how many.
func (s Selection) WriteNDJSON(ctx context.Context, w io.Writer, src Source) (records int64, err error) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	err = s.Each(ctx, src, func(r store.Record) error {
		records++
		return e.Encode(LineOf(s.Connection, r))
	})
	return records, err
}

// An End is the last line of an export over a network, which says that it is
// whole.
type End struct {
	End     bool   `json:"end"` // true
	Records int64  `json:"records"`
	Digest  string `json:"digest"` // sha256:HEX of the lines before
}
