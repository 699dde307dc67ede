package abi

// RecoveredMessage is a DETAIL_GAP_RECOVERED.
type RecoveredMessage struct {
	GapID         string `json:"gap_id"`
	Stream        string `json:"stream"`
	ReferenceOnly bool   `json:"reference_only"` // always true
	RecordKey     string `json:"record_key,omitempty"`
}

// Type returns DETAIL_GAP_RECOVERED.
func (*RecoveredMessage) Type() string { return recoveredKind.name }
func (*RecoveredMessage) message()     {}

var recoveredKind = kind{
	name: "DETAIL_GAP_RECOVERED",
	step: StepMessage,
	call: CallRecovered,
	read: readRecovered,
	faults: []fault{
		{VDetailGapRecoveredInvalid, "has the wrong shape"},
	},
}

const (
	VDetailGapRecoveredInvalid Subtype = "detail_gap_recovered_invalid"
)

// readRecovered checks a DETAIL_GAP_RECOVERED.
func readRecovered(r *reader) Message {
	const bad = VDetailGapRecoveredInvalid
	m := &RecoveredMessage{ReferenceOnly: true}
	m.GapID = r.text("gap_id", bad, MaxIDBytes)
	m.Stream = r.stream("stream", bad, bad, true)
	if only, ok := r.member("reference_only").Bool(); !ok || !only {
		r.fail(bad, "reference_only")
	}
	m.RecordKey = r.optKey("record_key", bad)
	r.optText("lease_id", bad, MaxIDBytes)
	return m
}
