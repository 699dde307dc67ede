package run

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
)

// Limits of the data of an answer, in bytes where not fields.
const (
	maxAnswer = abi.MaxResponseBytes // names and values together, without files
	maxFields = abi.MaxResponseFields
	maxValue  = abi.MaxResponseValue
	maxName   = abi.MaxIDBytes // of the id of an interaction
	// maxFiles bounds an answer with files, which are base64 text and so a third longer.
	maxFiles = maxAnswer + abi.MaxAnswerFile/3*4
)

func badAnswer(field, message string) error {
	return refuse("invalid_request", "%s", message).with("field", field)
}

// CheckAnswer makes the checks of an answer that need no question: its size and its status. The error is a
// *Refusal with code invalid_request and details.field, or invalid_status. It repeats nothing from the answer.
func CheckAnswer(a host.Answer, timeOuts bool) error {
	interactionID, status, data := a.InteractionID, a.Status, a.Data
	if strings.TrimSpace(interactionID) == "" || len(interactionID) > 2*maxName {
		return badAnswer("interactionId", "the id of a question is missing, or none")
	}
	if len(data) > maxFields {
		return badAnswer("data", "an answer has at most 32 fields")
	}
	total := 0
	for name, value := range data {
		total += len(name) + len(value)
	}
	if total > maxFiles {
		return badAnswer("data", "an answer has at most 64 KiB, and 512 KiB of files")
	}
	if status != abi.AnswerSuccess && status != abi.AnswerCancelled && (status != abi.AnswerTimeout || !timeOuts) {
		return &Refusal{Code: "invalid_status", Message: "status: want success or cancelled"}
	}
	return nil
}

// Check checks the data of a successful answer: every value belongs to a field, has its type and is one of its
// choices, and no required value is missing; null counts as missing. It returns the data by the connector's own
// names. The values are not copied.
func (q Question) Check(data map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	own := make(map[string]json.RawMessage, len(data))
	known, total := 0, 0
	for _, f := range q.Fields {
		raw, given := data[f.Shown]
		if given {
			known++
		}
		v, err := strictjson.Parse(raw, strictjson.ParseOptions{AnyKind: true})
		switch {
		case given && err != nil:
			return nil, badAnswer(f.Shown, "this field is no JSON value")
		case v.Absent() && f.Required:
			return nil, badAnswer(f.Shown, "this field is required")
		case v.Absent():
			continue
		case f.File && !isFile(v):
			return nil, badAnswer(f.Shown, abi.ErrAnswerFile.Error())
		case !f.File && len(raw) > maxValue && (q.Kind != abi.KindApproval || f.Shown != "edited"): // may be longer
			return nil, badAnswer(f.Shown, "a value of an answer has at most 8 KiB")
		case !v.HasType(f.Type):
			return nil, badAnswer(f.Shown, "this field has another type: want "+f.Type)
		}
		chosen, ok := choose(q, f, v)
		if !ok {
			return nil, badAnswer(f.Shown, "this field takes one of the choices that were offered")
		}
		if own[f.Name] = chosen; !f.File {
			total += len(f.Shown) + len(raw)
		}
	}
	if known != len(data) {
		return nil, badAnswer("data", "the question has no such field")
	}
	if total > maxAnswer {
		return nil, badAnswer("data", "an answer has at most 64 KiB, but for files")
	}
	if q.Kind == abi.KindApproval {
		return own, checkDecision(own)
	}
	return own, nil
}

func isFile(v strictjson.Value) bool {
	text, _ := v.Text()
	_, err := abi.ParseAnswerFile(text)
	return err == nil
}

// checkDecision checks that the data that a decision needs is present, and data of another decision is not.
func checkDecision(data map[string]json.RawMessage) error {
	blank := func(name string) bool { return strings.TrimSpace(strictjson.String(data[name])) == "" }
	action := strictjson.String(data["action"])
	_, edited := data["edited"]
	switch {
	case action == abi.DecisionRefine && blank("comment"):
		return badAnswer("comment", "to refine, say what should be different")
	case action == abi.DecisionEdit && blank("edited"):
		return badAnswer("edited", "to accept an edited text, give the text")
	case action != abi.DecisionEdit && edited:
		return badAnswer("edited", "an edited text goes with the decision edit-accept")
	}
	return nil
}

// choose returns the value that the connector gets for v. If the schema lists choices, v must be one of them and
// is returned as the connector spells it, since the owner may have seen a redacted text.
func choose(q Question, f Field, v strictjson.Value) (json.RawMessage, bool) {
	schema, _ := strictjson.Parse(q.RawSchema, strictjson.ParseOptions{})
	props, _ := schema.Member("properties")
	spec, _ := props.Member(f.Name)
	enum, listed := spec.Member("enum")
	if !listed || !enum.Is(strictjson.KindArray) || q.Kind == abi.KindApproval {
		return v.Raw, len(f.Enum) == 0 || slices.ContainsFunc(f.Enum, v.Equal)
	}
	n := 0 // counts the texts, which are what the owner sees
	for item := range enum.Items() {
		if same(item, v) {
			return v.Raw, true
		}
		if item.Is(strictjson.KindString) {
			if n < len(f.Enum) && v.Equal(f.Enum[n]) {
				return item.Raw, true
			}
			n++
		}
	}
	return nil, false
}

func same(a, b strictjson.Value) bool {
	if text, ok := a.Text(); ok { // a text of the connector, so no secret
		return b.Equal(text)
	}
	return bytes.Equal(strictjson.AppendCompact(nil, a.Raw), strictjson.AppendCompact(nil, b.Raw))
}
