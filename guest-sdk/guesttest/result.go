//go:build !wasip1

package guesttest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sluicehost/sluice/abi"
)

// A Result is everything that a run produced.
type Result struct {
	// Status is succeeded, failed or cancelled. It is failed also if a violation ended the
	// run or the connector exited without DONE.
	Status   string
	ExitCode int
	// Done is the accepted DONE, or nil.
	Done *abi.DoneMessage
	// Records are the admitted records by stream, in order.
	Records map[string][]Record
	// States are the last staged cursors by stream, from which the next run would start if
	// this one succeeded.
	States       map[string]json.RawMessage
	Progress     []abi.ProgressMessage
	Skips        []abi.SkipMessage
	Gaps         []abi.GapMessage
	Recovered    []abi.RecoveredMessage
	Coverage     []abi.CoverageMessage
	Interactions []Interaction
	Assistances  []Assistance
	Text         []string // chunks of Run.Message
	Logs         []Log
	// Files are the contents of attached files by digest.
	Files map[string][]byte
	// Violation is what ended the run, or nil.
	Violation *abi.Violation
	// Transcript has one line per message, without the values of answers. Equal runs have
	// equal transcripts, so it can serve as golden text.
	Transcript string
}

// A Record is an admitted record.
type Record struct {
	Key       string // a compound key is a JSON array
	Deleted   bool
	EmittedAt time.Time // zero if the connector left it to the host
	Data      json.RawMessage
}

// Decode unmarshals the data into v.
func (r Record) Decode(v any) error { return json.Unmarshal(r.Data, v) }

// An Interaction is a question and its outcome.
type Interaction struct {
	abi.InteractionMessage
	Status string // success, cancelled, timeout
}

// An Assistance is an assistance and its outcome.
type Assistance struct {
	abi.AssistanceMessage
	Status string // of its ASSISTANCE_STATUS; "" for none
}

// A Log is a line of the connector's diagnostics.
type Log struct {
	Level   string
	Message string
	Fields  json.RawMessage
}

// frame serves the emit call.
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

// keep copies an admitted record to the result.
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
