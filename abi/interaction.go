package abi

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"path"
	"strings"

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

// The decisions about an approval. The first two are always offered, the others if the
// connector offers them.
const (
	DecisionAccept = "accept"
	DecisionReject = "reject"
	DecisionRefine = "refine"      // ask again, taking the comment into account
	DecisionEdit   = "edit-accept" // accept the text as the owner edited it
)

// Decisions lists the decisions in the order in which they are offered.
var Decisions = []string{DecisionAccept, DecisionReject, DecisionRefine, DecisionEdit}

// MaxDraft is the longest text that an owner may edit in an approval, in bytes.
const MaxDraft = 8000

// Draft returns the text that an owner may edit in an approval: the default of the schema's
// field "edited", or "".
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

// FormatFile is the format of a question's field that is answered with a file.
const FormatFile = "file"

// MaxAnswerFile is the largest file that can answer a question, in bytes.
const MaxAnswerFile = 512 * KiB

// An AnswerFile is a file with which an owner answers a question. On the wire it is a
// string, data:MEDIA;name=NAME;base64,DATA, with NAME percent-encoded.
type AnswerFile struct {
	Name  string // last element of the path, at most 255 bytes; "" if unknown
	Media string // media type that the owner's program claims; "" if unknown
	Data  []byte
}

// ErrAnswerFile is returned for a text that does not encode an AnswerFile.
var ErrAnswerFile = errors.New("no file: want data:MEDIA;name=NAME;base64,DATA of at most 512 KiB")

// String returns the wire form.
func (f AnswerFile) String() string {
	head := "data:" + f.Media
	if f.Name != "" {
		head += ";name=" + url.PathEscape(f.Name)
	}
	return head + ";base64," + base64.StdEncoding.EncodeToString(f.Data)
}

// ParseAnswerFile parses the wire form, or returns ErrAnswerFile.
func ParseAnswerFile(text string) (f AnswerFile, err error) {
	head, data, ok := strings.Cut(text, ",")
	head, encoded := strings.CutSuffix(head, ";base64")
	head, scheme := strings.CutPrefix(head, "data:")
	if !ok || !encoded || !scheme || len(head) > 1024 || base64.StdEncoding.DecodedLen(len(data)) > MaxAnswerFile+3 {
		return f, ErrAnswerFile
	}
	for i, part := range strings.Split(head, ";") {
		if name, named := strings.CutPrefix(part, "name="); named {
			if name, err = url.PathUnescape(name); err != nil {
				return f, ErrAnswerFile
			}
			f.Name = Cut(path.Base("/"+strings.ReplaceAll(Clean(name), `\`, "/")), 255)
			if f.Name == "/" || f.Name == "." || f.Name == ".." {
				f.Name = ""
			}
		} else if i == 0 {
			f.Media = Clean(part)
		}
	}
	if f.Data, err = base64.StdEncoding.DecodeString(data); err != nil || len(f.Data) > MaxAnswerFile {
		return AnswerFile{}, ErrAnswerFile
	}
	return f, nil
}
