package abi

// ProgressMessage is a PROGRESS, which only informs.
type ProgressMessage struct {
	Stream  string   `json:"stream,omitempty"`
	Message string   `json:"message"`
	Count   *float64 `json:"count,omitempty"`
	Total   *float64 `json:"total,omitempty"`
}

// Type returns PROGRESS.
func (*ProgressMessage) Type() string { return progressKind.name }
func (*ProgressMessage) message()     {}

var progressKind = kind{
	name: "PROGRESS",
	step: StepMessage,
	call: CallProgress,
	read: readProgress,
	faults: []fault{
		{VProgressForUndeclaredStream, "named a stream that is not in scope"},
		{VProgressInvalidCount, "has a count that is not a number of at least 0"},
		{VProgressInvalidMessage, "needs a message text"},
		{VProgressInvalidStream, "has a stream that is not a text"},
		{VProgressInvalidTotal, "has a total that is not a number of at least 0"},
	},
}

const (
	VProgressForUndeclaredStream Subtype = "progress_for_undeclared_stream"
	VProgressInvalidCount        Subtype = "progress_invalid_count"
	VProgressInvalidMessage      Subtype = "progress_invalid_message"
	VProgressInvalidStream       Subtype = "progress_invalid_stream"
	VProgressInvalidTotal        Subtype = "progress_invalid_total"
)

// readProgress checks a PROGRESS.
func readProgress(r *reader) Message {
	m := &ProgressMessage{}
	m.Stream = r.stream("stream", VProgressInvalidStream, VProgressForUndeclaredStream, false)
	m.Message = r.text("message", VProgressInvalidMessage, r.p.Limits.TextBytes)
	m.Count = r.number("count", VProgressInvalidCount, notNegative)
	m.Total = r.number("total", VProgressInvalidTotal, notNegative)
	return m
}
