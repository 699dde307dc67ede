package guest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/guest-sdk/encode"
)

// A Field is one field of a form that the owner fills in.
type Field struct {
	Name     string
	Title    string   // label; "" uses Name
	Type     string   // string (the default), number, integer, boolean
	Format   string   // such as email, password or file (see Answer.File)
	Accept   string   // for a file: extensions and media types, such as .csv,text/csv
	Enum     []string // the permitted values; empty permits any
	Secret   bool     // masked while typed, and never shown again
	Optional bool
}

// A Login is what Credentials returns.
type Login struct {
	Username string
	Password string
	// Answer has all fields, including those of a Form.
	Answer Answer
}

// A Decision is the owner's answer to Approve.
type Decision struct {
	Accepted bool   // unchanged, or as Edited
	Refine   bool   // the owner wants a change, described in Comment (Refinable)
	Edited   string // the owner's version of the text (Editable); "" if unchanged
	Comment  string
}

// OTP asks for a one-time code and waits for it. Options: OnStream, Timeout, RequestID,
// Form with one field. A sealed code is returned as a handle.
//
// All questions return ErrCancelled if the owner declines, ErrTimeout if nobody answers in
// time, and ErrNotInteractive if nobody can be asked.
func (r *Run) OTP(ctx context.Context, message string, options ...Option) (string, error) {
	o := optionsOf(options)
	a, err := r.ask(ctx, abi.KindOTP, message, o)
	if err != nil {
		return "", err
	}
	if len(o.fields) > 0 {
		return a.Text(o.fields[0].Name), nil
	}
	return a.Text("code"), nil
}

// Credentials asks for a user name and a password. It takes the options of OTP; a Form may
// ask for more fields or for others.
func (r *Run) Credentials(ctx context.Context, message string, options ...Option) (Login, error) {
	a, err := r.ask(ctx, abi.KindCredentials, message, optionsOf(options))
	if err != nil {
		return Login{}, err
	}
	return Login{Username: a.Text("username"), Password: a.Text("password"), Answer: a}, nil
}

// ManualAction asks the owner to do something, in the run's browser or elsewhere, and waits
// until the owner reports that it is done. Options: OnStream, Timeout, RequestID.
func (r *Run) ManualAction(ctx context.Context, message string, options ...Option) error {
	_, err := r.ask(ctx, abi.KindManualAction, message, optionsOf(options))
	return err
}

// Approve asks for a decision. A rejection is a Decision, not an error. Options: OnStream,
// Timeout, RequestID, Refinable, Editable.
func (r *Run) Approve(ctx context.Context, message string, options ...Option) (Decision, error) {
	a, err := r.ask(ctx, abi.KindApproval, message, optionsOf(options))
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Comment: a.Text("comment")}
	switch a.Text("action") {
	case abi.DecisionAccept:
		d.Accepted = true
	case abi.DecisionEdit:
		d.Accepted, d.Edited = true, a.Text("edited")
	case abi.DecisionRefine:
		d.Refine = true
	}
	return d, nil
}

// Clarify asks a question with a Form, or with a single field called answer. Options: Form,
// OnStream, Timeout, RequestID.
func (r *Run) Clarify(ctx context.Context, message string, options ...Option) (Answer, error) {
	return r.ask(ctx, abi.KindClarification, message, optionsOf(options))
}

func (r *Run) ask(ctx context.Context, kind, message string, o options) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, err
	}
	if !r.Interactive() {
		return Answer{}, ErrNotInteractive
	}
	m := &abi.InteractionMessage{RequestID: o.id, Kind: kind, Message: message, Stream: o.stream}
	if kind == abi.KindApproval {
		m.Schema = o.decisions()
	} else if len(o.fields) > 0 {
		m.Schema = schemaOf(o.fields)
	}
	if deadline, ok := ctx.Deadline(); ok {
		if left := time.Until(deadline); o.timeout <= 0 || left < o.timeout {
			o.timeout = left
		}
	}
	if o.timeout > 0 {
		s := o.timeout.Seconds()
		m.TimeoutSeconds = &s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.questions++
	if m.RequestID == "" {
		m.RequestID = kind + "-" + strconv.Itoa(r.questions)
	}
	b, err := encode.Append(nil, m)
	if err != nil {
		return Answer{}, err
	}
	reply, err := r.callLocked(r.port.interact, b)
	if err != nil {
		return Answer{}, err
	}
	return readAnswer(reply)
}

// decisions returns the schema of an approval with more choices than accept and reject, or
// nil.
func (o options) decisions() json.RawMessage {
	if !o.refinable && o.draft == nil {
		return nil
	}
	b := []byte(`{"type":"object","properties":{"action":{"enum":["accept","reject"`)
	if o.refinable {
		b = append(b, `,"refine"`...)
	}
	if o.draft != nil {
		b = append(b, `,"edit-accept"]},"edited":{"type":"string","default":`...)
		return append(strictjson.AppendQuote(b, *o.draft), `}}}`...)
	}
	return append(b, `]}}}`...)
}

// schemaOf returns the schema of a form.
func schemaOf(fields []Field) json.RawMessage {
	b := []byte(`{"type":"object","properties":{`)
	var required []string
	for i, f := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendQuote(b, f.Name), ':')
		b = f.append(b)
		if !f.Optional {
			required = append(required, f.Name)
		}
	}
	b = append(b, `},"required":[`...)
	for i, name := range required {
		if i > 0 {
			b = append(b, ',')
		}
		b = strictjson.AppendQuote(b, name)
	}
	return append(b, ']', '}')
}

func (f Field) append(b []byte) []byte {
	kind := f.Type
	if kind == "" {
		kind = "string"
	}
	b = strictjson.AppendQuote(append(b, `{"type":`...), kind)
	if f.Title != "" {
		b = strictjson.AppendQuote(append(b, `,"title":`...), f.Title)
	}
	if f.Format != "" {
		b = strictjson.AppendQuote(append(b, `,"format":`...), f.Format)
	}
	if f.Accept != "" {
		b = strictjson.AppendQuote(append(b, `,"accept":`...), f.Accept)
	}
	if f.Secret {
		b = append(b, `,"secret":true`...)
	}
	for i, choice := range f.Enum {
		if i == 0 {
			b = append(b, `,"enum":[`...)
		} else {
			b = append(b, ',')
		}
		b = strictjson.AppendQuote(b, choice)
	}
	if len(f.Enum) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

// An Answer is the owner's answer to a question.
type Answer struct {
	data   strictjson.Value
	sealed []string
}

// Text returns a field as text: a string as it is, another value as JSON, and "" for a
// missing one.
func (a Answer) Text(name string) string {
	v, ok := a.data.Member(name)
	if !ok || v.Absent() {
		return ""
	}
	if s, ok := v.Text(); ok {
		return s
	}
	return string(v.Raw)
}

// File returns the file in a field with the format "file", of at most abi.MaxAnswerFile
// bytes. Its name and media type are claims of the owner's browser.
func (a Answer) File(name string) (abi.AnswerFile, error) { return abi.ParseAnswerFile(a.Text(name)) }

// Has reports whether the answer has a field.
func (a Answer) Has(name string) bool {
	v, ok := a.data.Member(name)
	return ok && !v.Absent()
}

// Sealed reports whether a field holds a handle in place of its value.
func (a Answer) Sealed(name string) bool { return slices.Contains(a.sealed, name) }

// Decode unmarshals all fields into v, a struct or a map.
func (a Answer) Decode(v any) error {
	if a.data.Absent() {
		return nil
	}
	return json.Unmarshal(a.data.Raw, v)
}

// readAnswer reads an INTERACTION_RESPONSE.
func readAnswer(reply []byte) (Answer, error) {
	v, err := parseObject(reply)
	if err != nil {
		return Answer{}, err
	}
	switch textMember(v, "status") {
	case abi.AnswerSuccess:
		data, _ := v.Member("data")
		sealed, _ := v.Member("sealed_fields")
		return Answer{data: data, sealed: list(sealed)}, nil
	case abi.AnswerCancelled:
		return Answer{}, ErrCancelled
	case abi.AnswerTimeout:
		return Answer{}, ErrTimeout
	default:
		return Answer{}, errors.New("guest: the host answered with an unknown status")
	}
}

// Assistance tells the owner what the connector waits for, without blocking. The
// combinations that make sense:
//
//	Posture             Action                   the owner
//	PostureRunning      ActionActElsewhere       approves in another app; the connector polls
//	PostureWaitingRetry ActionNone               has nothing to do: a back-off
//	PostureBlocked      ActionOperateAttachment  works in the browser; the connector notices
type Assistance struct {
	Posture     string
	Action      string
	Message     string
	ID          string // "" lets the host choose one
	Stream      string
	Sensitivity string        // "" for none
	Timeout     time.Duration // after which the host ends the run
	InputSchema json.RawMessage
	Attachments []abi.Attachment
}

// The values of Assistance.
const (
	PostureRunning      = abi.PostureRunning
	PostureBlocked      = abi.PostureBlocked
	PostureWaitingRetry = abi.PostureWaitingRetry

	ActionNone              = abi.ActionNone
	ActionActElsewhere      = abi.ActionActElsewhere
	ActionProvideValue      = abi.ActionProvideValue
	ActionOperateAttachment = abi.ActionOperateAttachment
)

// How an assistance ends, for AssistStatus.
const (
	Resolved  = "resolved"
	Cancelled = "cancelled"
	TimedOut  = "timed_out"
	Escalated = "escalated"
)

// Assist opens an assistance and returns its id for AssistStatus.
func (r *Run) Assist(a Assistance) (id string, err error) {
	m := &abi.AssistanceMessage{
		ID: a.ID, ProgressPosture: a.Posture, OwnerAction: a.Action, ResponseObligation: abi.ObligationNone,
		Message: a.Message, Sensitivity: a.Sensitivity, InputSchema: a.InputSchema,
		Attachments: a.Attachments, Stream: a.Stream,
	}
	if a.Timeout > 0 {
		s := a.Timeout.Seconds()
		m.TimeoutSeconds = &s
	}
	b, err := encode.Append(nil, m)
	if err != nil {
		return "", err
	}
	reply, err := r.call(r.port.assist, b)
	if err != nil {
		return "", err
	}
	v, err := parseObject(reply)
	if err != nil {
		return "", err
	}
	return textMember(v, "assistance_request_id"), nil
}

// AssistStatus ends an assistance as Resolved, Cancelled, TimedOut or Escalated, with an
// optional message.
func (r *Run) AssistStatus(id, status, message string) error {
	return r.send(r.port.assistStatus, &abi.AssistanceStatusMessage{ID: id, Status: status, Message: message})
}
