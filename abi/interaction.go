package abi

import (
	"encoding/json"

	"github.com/sluicehost/sluice/abi/strictjson"
)

// InteractionMessage is an INTERACTION: a question that blocks.
type InteractionMessage struct {
	RequestID      string          `json:"request_id"`
	Kind           string          `json:"kind"`
	Message        string          `json:"message"`
	Stream         string          `json:"stream,omitempty"`
	Schema         json.RawMessage `json:"schema,omitempty"`
	TimeoutSeconds *float64        `json:"timeout_seconds,omitempty"`
}

// Type returns INTERACTION.
func (*InteractionMessage) Type() string { return interactionKind.name }
func (*InteractionMessage) message()     {}

var interactionKind = kind{
	name:  "INTERACTION",
	call:  CallInteract,
	step:  StepInteraction,
	read:  readInteraction,
	limit: func(l Limits) int { return l.InteractionsPerRun },
	faults: []fault{
		{VInteractionForUndeclaredStream, "named a stream that is not in scope"},
		{VInteractionInvalidKind, "has an unknown kind"},
		{VInteractionInvalidMessage, "needs a message text"},
		{VInteractionInvalidRequestId, "needs a request_id"},
		{VInteractionInvalidSchema, "has a schema that is not an object"},
		{VInteractionInvalidStream, "has a stream that is not a text"},
		{VInteractionInvalidTimeout, "has a timeout_seconds that is not a number above 0"},
		{VInteractionWithoutBinding, "was sent although START offered no interactive binding"},
	},
}

const (
	VInteractionForUndeclaredStream Subtype = "interaction_for_undeclared_stream"
	VInteractionInvalidKind         Subtype = "interaction_invalid_kind"
	VInteractionInvalidMessage      Subtype = "interaction_invalid_message"
	VInteractionInvalidRequestId    Subtype = "interaction_invalid_request_id"
	VInteractionInvalidSchema       Subtype = "interaction_invalid_schema"
	VInteractionInvalidStream       Subtype = "interaction_invalid_stream"
	VInteractionInvalidTimeout      Subtype = "interaction_invalid_timeout"
	VInteractionWithoutBinding      Subtype = "interaction_without_binding"
)

// The kinds of INTERACTION.
const (
	KindCredentials   = "credentials"
	KindOTP           = "otp"
	KindManualAction  = "manual_action"
	KindApproval      = "approval"
	KindClarification = "clarification"
)

// InteractionKinds is the closed list of kinds.
var InteractionKinds = []string{KindCredentials, KindOTP, KindManualAction, KindApproval, KindClarification}

// What an owner can decide about an approval. The first two are always
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

// readInteraction checks an INTERACTION.
func readInteraction(r *reader) Message {
	m := &InteractionMessage{}
	if !r.p.Interactive {
		r.fail(VInteractionWithoutBinding, "")
	}
	m.RequestID = r.text("request_id", VInteractionInvalidRequestId, MaxIDBytes)
	m.Kind = r.enum("kind", VInteractionInvalidKind, InteractionKinds...)
	m.Stream = r.stream("stream", VInteractionInvalidStream, VInteractionForUndeclaredStream, false)
	m.Message = r.text("message", VInteractionInvalidMessage, r.p.Limits.TextBytes)
	m.Schema = r.schema("schema", VInteractionInvalidSchema)
	m.TimeoutSeconds = r.number("timeout_seconds", VInteractionInvalidTimeout, positive)
	return m
}
