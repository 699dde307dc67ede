package abi

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// A Message is one message of a guest. The union is sealed: the types of this
// file are all there are, and a switch over them handles the protocol.
type Message interface {
	// Type is the wire name, such as "PROGRESS".
	Type() string
	message()
}

// RecordMessage is a RECORD. In the ABI it is one record of a frame. Key, Data
// and the members alias the bytes they came from.
type RecordMessage struct {
	Stream    int // index in START.scope.streams
	Delete    bool
	Compound  bool
	Key       []byte // canonical (R46)
	Data      []byte // one JSON object; empty only for a delete
	EmittedAt int64  // µs since 1970 UTC; 0 is now, by the host
	Members   []strictjson.Member
	// Rejected is RejectedText for a record that holds a text which is none, and
	// RejectedAt the member that does, "" where it is the key. It counts as
	// emitted and is never stored.
	Rejected   string
	RejectedAt string
}

// RejectedText is the code of a record with an escape that spells NUL or half a
// surrogate pair. It concerns that record alone.
const RejectedText = "invalid_record_text"

// StateMessage is a STATE: the stream's cursor so far (R52, R53).
type StateMessage struct {
	Stream string          `json:"stream"`
	Cursor json.RawMessage `json:"cursor"` // object or null
}

// ProgressMessage is a PROGRESS: observability only (R55).
type ProgressMessage struct {
	Stream  string   `json:"stream,omitempty"`
	Message string   `json:"message"`
	Count   *float64 `json:"count,omitempty"`
	Total   *float64 `json:"total,omitempty"`
}

// SkipMessage is a SKIP_RESULT (§9.4).
type SkipMessage struct {
	Stream       string          `json:"stream,omitempty"`
	Reason       string          `json:"reason,omitempty"`
	Message      string          `json:"message,omitempty"`
	RecoveryHint *RecoveryHint   `json:"recovery_hint,omitempty"`
	Continuation *Continuation   `json:"continuation,omitempty"`
	ResourceIDs  []string        `json:"resource_ids,omitempty"`
	TimeRange    *TimeRange      `json:"time_range,omitempty"`
	Diagnostics  json.RawMessage `json:"diagnostics,omitempty"`
}

// A RecoveryHint is the connector's word on what helps (R61, R62).
type RecoveryHint struct {
	Action    string `json:"action"`
	Retryable *bool  `json:"retryable,omitempty"`
}

// The actions of R61.
const (
	RetryByRuntime          = "retry_by_runtime"
	RetryOnConnectorUpgrade = "retry_on_connector_upgrade"
	RefreshCredentials      = "refresh_credentials"
	ManualActionRequired    = "manual_action_required"
	UpdateSelector          = "update_selector"
	UpstreamUnblock         = "upstream_unblock"
	NotRetriable            = "not_retriable"
	UnknownAction           = "unknown"
)

// RecoveryActions is the closed list of R61.
var RecoveryActions = []string{
	RetryByRuntime, RetryOnConnectorUpgrade, RefreshCredentials, ManualActionRequired,
	UpdateSelector, UpstreamUnblock, NotRetriable, UnknownAction,
}

// WillRetry is Retryable with its default (R62).
func (h RecoveryHint) WillRetry() bool {
	if h.Retryable != nil {
		return *h.Retryable
	}
	return h.Action == RetryByRuntime
}

// A Continuation proves one bounded slice; the host owns the next (R60).
type Continuation struct {
	Boundary   string `json:"boundary"`
	SliceStart int64  `json:"slice_start"`
	SliceEnd   int64  `json:"slice_end"`
	Considered int64  `json:"considered"`
	Covered    int64  `json:"covered"`
	Remaining  bool   `json:"remaining"` // always true
	Owner      string `json:"owner"`     // always "runtime"
}

// GapMessage is a DETAIL_GAP (§9.8).
type GapMessage struct {
	Stream        string          `json:"stream"`
	ParentStream  string          `json:"parent_stream,omitempty"`
	RecordKey     string          `json:"record_key,omitempty"` // text form (R64)
	Reason        string          `json:"reason,omitempty"`
	Retryable     *bool           `json:"retryable,omitempty"`
	DetailLocator json.RawMessage `json:"detail_locator,omitempty"`
	ListCursor    json.RawMessage `json:"list_cursor,omitempty"`
	LastError     json.RawMessage `json:"last_error,omitempty"`
	GapID         string          `json:"gap_id,omitempty"`
}

// RecoveredMessage is a DETAIL_GAP_RECOVERED (§9.8).
type RecoveredMessage struct {
	GapID         string `json:"gap_id"`
	Stream        string `json:"stream"`
	ReferenceOnly bool   `json:"reference_only"` // always true
	RecordKey     string `json:"record_key,omitempty"`
}

// CoverageMessage is a DETAIL_COVERAGE (§9.9). Keys are in text form (R64).
type CoverageMessage struct {
	ReferenceOnly    bool     `json:"reference_only"` // always true
	StateStream      string   `json:"state_stream"`
	Stream           string   `json:"stream"`
	RequiredKeys     []string `json:"required_keys"`
	HydratedKeys     []string `json:"hydrated_keys"`
	GapKeys          []string `json:"gap_keys,omitempty"`
	OptionalSkipKeys []string `json:"optional_skip_keys,omitempty"`
	Considered       *int64   `json:"considered,omitempty"` // R65
	Covered          *int64   `json:"covered,omitempty"`
}

// InteractionMessage is an INTERACTION: a question that blocks (§9.6).
type InteractionMessage struct {
	RequestID      string          `json:"request_id"`
	Kind           string          `json:"kind"`
	Message        string          `json:"message"`
	Stream         string          `json:"stream,omitempty"`
	Schema         json.RawMessage `json:"schema,omitempty"`
	TimeoutSeconds *float64        `json:"timeout_seconds,omitempty"`
}

// The kinds of INTERACTION (§9.6, R221).
const (
	KindCredentials   = "credentials"
	KindOTP           = "otp"
	KindManualAction  = "manual_action"
	KindApproval      = "approval"
	KindClarification = "clarification"
)

// What an owner can decide about an approval (R221). The first two are always
// offered, the others where the connector offers them.
const (
	DecisionAccept = "accept"
	DecisionReject = "reject"
	DecisionRefine = "refine"      // ask again, with what the comment says
	DecisionEdit   = "edit-accept" // accept what the owner made of the text
)

// Decisions are those of an approval, in the order in which they are offered.
var Decisions = []string{DecisionAccept, DecisionReject, DecisionRefine, DecisionEdit}

// MaxDraft is how long a text may be that an approval's owner may edit, in bytes; a
// longer one is not offered for it.
const MaxDraft = 8000

// Draft is the text that an approval's owner may edit: the default of the field
// edited in its schema; "" for none.
func Draft(schema []byte) string {
	v, _ := strictjson.Parse(schema, strictjson.ParseOptions{})
	for _, name := range []string{"properties", "edited", "default"} {
		v, _ = v.Member(name)
	}
	text, _ := v.Text()
	return text
}

// InteractionKinds is the closed list of kinds.
var InteractionKinds = []string{KindCredentials, KindOTP, KindManualAction, KindApproval, KindClarification}

// AssistanceMessage is an ASSISTANCE: owner involvement that does not block
// (§9.7, §15.1).
type AssistanceMessage struct {
	ID                 string          `json:"assistance_request_id,omitempty"`
	ProgressPosture    string          `json:"progress_posture"`
	OwnerAction        string          `json:"owner_action"`
	ResponseObligation string          `json:"response_obligation"`
	Message            string          `json:"message"`
	Sensitivity        string          `json:"sensitivity,omitempty"`
	TimeoutSeconds     *float64        `json:"timeout_seconds,omitempty"`
	InputSchema        json.RawMessage `json:"input_schema,omitempty"`
	Attachments        []Attachment    `json:"attachments,omitempty"`
	Stream             string          `json:"stream,omitempty"`
}

// The axes of §15.1.
const (
	PostureRunning      = "running"
	PostureBlocked      = "blocked"
	PostureWaitingRetry = "waiting_retry"

	ActionNone              = "none"
	ActionActElsewhere      = "act_elsewhere"
	ActionProvideValue      = "provide_value"
	ActionOperateAttachment = "operate_attachment"

	ObligationNone             = "none"
	ObligationResponseRequired = "response_required"

	SensitivityNone      = "none"
	SensitivityNonSecret = "non_secret"
	SensitivitySecret    = "secret"
)

// An Attachment is something the owner can use (R116). URL and Payload are
// live-only: the timeline never holds them (R119).
type Attachment struct {
	Kind    string `json:"kind"` // browser_surface, url, qr, file, fixture
	Role    string `json:"role,omitempty"`
	Label   string `json:"label,omitempty"`
	Ref     string `json:"ref,omitempty"`
	Status  string `json:"status,omitempty"`
	Reason  string `json:"reason,omitempty"`
	URL     string `json:"url,omitempty"`
	Payload string `json:"payload,omitempty"`
	Accept  string `json:"accept,omitempty"`
}

// A TextMessage is a MESSAGE line of the stdio profile: text that the connector
// streams on purpose. Others have a call of their own for it.
type TextMessage struct {
	Chunk string
	Last  bool
	Meta  strictjson.Value // of the line; absent if it is no object
}

// A RequestMessage is a REQUEST line of the stdio profile: one request to a server.
// Others have functions for it.
type RequestMessage struct {
	ID string
	// Frame is what the request function takes; its body has no limit yet.
	Frame []byte
}

// A ReadMessage is a READ line of the stdio profile: it wants the next piece of the
// body that the last REQUEST was answered with.
type ReadMessage struct{ ID string }

// AssistanceStatusMessage is an ASSISTANCE_STATUS.
type AssistanceStatusMessage struct {
	ID      string `json:"assistance_request_id"`
	Status  string `json:"status"` // resolved, cancelled, timed_out, escalated
	Message string `json:"message,omitempty"`
}

// DoneMessage is a DONE (§9.11). RecordsEmitted is nil when the member is
// missing or no count: that is checked only after the guest's exit.
type DoneMessage struct {
	Status         string     `json:"status"`
	RecordsEmitted *int64     `json:"records_emitted"`
	Error          *DoneError `json:"error,omitempty"`
	// ReportedRecords is the member as it was spelled, for the result.
	ReportedRecords string `json:"-"`
}

// The statuses of a DONE.
const (
	Succeeded = "succeeded"
	Failed    = "failed"
	Cancelled = "cancelled"
)

// A DoneError says why a run failed, in the connector's words.
type DoneError struct {
	Message      string        `json:"message"`
	Code         string        `json:"code,omitempty"`
	Retryable    *bool         `json:"retryable,omitempty"`
	RecoveryHint *RecoveryHint `json:"recovery_hint,omitempty"`
}

// CodeStreamFailed is the error code and skip reason of a certified
// stream-scoped failure (R59, R88).
const CodeStreamFailed = "stream_collection_failed"

func (*RecordMessage) Type() string           { return "RECORD" }
func (*StateMessage) Type() string            { return "STATE" }
func (*ProgressMessage) Type() string         { return "PROGRESS" }
func (*SkipMessage) Type() string             { return "SKIP_RESULT" }
func (*GapMessage) Type() string              { return "DETAIL_GAP" }
func (*RecoveredMessage) Type() string        { return "DETAIL_GAP_RECOVERED" }
func (*CoverageMessage) Type() string         { return "DETAIL_COVERAGE" }
func (*InteractionMessage) Type() string      { return "INTERACTION" }
func (*AssistanceMessage) Type() string       { return "ASSISTANCE" }
func (*AssistanceStatusMessage) Type() string { return "ASSISTANCE_STATUS" }
func (*DoneMessage) Type() string             { return "DONE" }
func (*TextMessage) Type() string             { return "MESSAGE" }
func (*RequestMessage) Type() string          { return "REQUEST" }
func (*ReadMessage) Type() string             { return "READ" }

func (*RecordMessage) message()           {}
func (*StateMessage) message()            {}
func (*ProgressMessage) message()         {}
func (*SkipMessage) message()             {}
func (*GapMessage) message()              {}
func (*RecoveredMessage) message()        {}
func (*CoverageMessage) message()         {}
func (*InteractionMessage) message()      {}
func (*AssistanceMessage) message()       {}
func (*AssistanceStatusMessage) message() {}
func (*DoneMessage) message()             {}
func (*TextMessage) message()             {}
func (*RequestMessage) message()          {}
func (*ReadMessage) message()             {}
