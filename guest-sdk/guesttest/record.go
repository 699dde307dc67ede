//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// frame is the emit call.
func (h *host) frame(request []byte) {
	frame, v := h.protocol.Frame(request)
	if v != nil {
		h.violate(v)
		return
	}
	var rec abi.FrameRecord
	for frame.Next(&rec) {
		m, v := h.protocol.Record(&rec)
		if v != nil {
			h.violate(v)
			return
		}
		h.keep(m)
	}
	if err := frame.Err(); err != nil {
		h.violate(h.protocol.FrameFault(err))
	}
}

// keep copies an admitted record into the result.
func (h *host) keep(m *abi.RecordMessage) {
	stream := h.protocol.Scope.Streams[m.Stream].Name
	r := Record{Key: string(m.Key), Deleted: m.Delete, Data: json.RawMessage(slices.Clone(m.Data))}
	if m.EmittedAt != 0 {
		r.EmittedAt = time.UnixMicro(m.EmittedAt).UTC()
	}
	h.result.Records[stream] = append(h.result.Records[stream], r)
	verb := "RECORD"
	if m.Delete {
		verb = "DELETE"
	}
	h.line("%s", joined(verb, stream, keyText(m), string(m.Data)))
}

func keyText(m *abi.RecordMessage) string {
	if m.Compound {
		return string(m.Key)
	}
	return quote(string(m.Key))
}
