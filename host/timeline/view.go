package timeline

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// A State is what an owner is shown of a request. It follows from the
// three axes, the reduced schema, the attachments and the item's status, and
// from nothing else: no message, no kind, no name of a connector.
type State uint8

const (
	StateNone       State = 0  // nothing is open
	StateA          State = 1  // an approval made elsewhere
	StateB          State = 2  // a value is needed
	StateBDecision  State = 3  // accept, reject, or what else is offered
	StateC          State = 4  // a step in the browser, which can be shown
	StateCNoSurface State = 5  // a step in a browser that cannot be shown
	StateD          State = 6  // retries on its own
	StateE          State = 7  // a step in the browser that the connector notices
	StateAbandoned  State = 8  // the run ended meanwhile
	StateOther      State = 9  // a passive message
	StateEnded      State = 10 // it has an end event
)

var stateNames = [...]string{"none", "A", "B", "B-decision", "C", "C-unavailable", "D", "E", "abandoned", "other", "ended"}

// String returns the name that docs/spec/runs.md uses.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return stateNames[StateOther]
}

// Controls are what an owner can do about a request. What is false is not on
// the page at all.
type Controls struct {
	Form         bool // fields of Fields, and submit
	Accept       bool // View.Choices, with an optional comment
	Cancel       bool
	OpenView     bool // the live view, with Surface
	Done         bool // "I am done", in the browser that is shown
	DoneOutside  bool // "I did this outside Sluice", apart from everything else
	Links        bool // targets of url and qr attachments
	SecretNotice bool // values are used for this run only
}

// A View is a request as a page shows it.
type View struct {
	State    State
	Item     Item // the zero Item in StateNone
	Controls Controls
	Fields   []FormField // for Controls.Form, by name
	Decision string      // for Controls.Accept: the field that takes the decision
	Choices  []string    // of Decision: accept, reject, and which of abi.Decisions are offered beside
	Comment  bool        // a field comment goes with the decision
	Edited   bool        // a field edited takes the owner's version of the text
	Surface  string      // ref of the surface that is available
	Reason   string      // why there is none
}

// Offers reports whether a decision is offered.
func (v View) Offers(decision string) bool { return slices.Contains(v.Choices, decision) }

// A FormField is one field of a form.
type FormField struct {
	Name     string
	Label    string
	Type     string // string, number, integer, boolean
	Format   string
	Enum     []string
	Secret   bool // masked, no autocompletion
	Sealed   bool // the connector gets a handle
	Required bool
	File     bool   // the value is an abi.AnswerFile
	Accept   string // of a file
}

// ViewOf derives what an owner is shown of one item.
func ViewOf(i Item) View {
	v := View{Item: i}
	switch i.Status {
	case ItemOpen:
	case ItemAbandoned:
		v.State = StateAbandoned
		return v
	default:
		v.State = StateEnded
		return v
	}
	v.surface()
	type axes struct{ posture, action, obligation string }
	switch (axes{i.ProgressPosture, i.OwnerAction, i.ResponseObligation}) {
	case axes{abi.PostureRunning, abi.ActionActElsewhere, abi.ObligationNone}:
		v.State, v.Controls.Links = StateA, true
	case axes{abi.PostureBlocked, abi.ActionProvideValue, abi.ObligationResponseRequired}:
		v.form()
	case axes{abi.PostureBlocked, abi.ActionOperateAttachment, abi.ObligationResponseRequired}:
		v.Controls.Cancel = true
		if v.Surface == "" {
			v.State, v.Controls.DoneOutside = StateCNoSurface, true
			break
		}
		v.State, v.Controls.OpenView, v.Controls.Done = StateC, true, true
	case axes{abi.PostureWaitingRetry, abi.ActionNone, abi.ObligationNone}:
		v.State = StateD
	case axes{abi.PostureBlocked, abi.ActionOperateAttachment, abi.ObligationNone}:
		v.State, v.Controls.OpenView = StateE, v.Surface != ""
	default:
		v.State = StateOther
	}
	return v
}

// surface finds the browser surface of an item, or why there is none.
func (v *View) surface() {
	for _, a := range v.Item.Attachments {
		if a.Kind != "browser_surface" {
			continue
		}
		if a.Status == "available" && a.Ref != "" {
			v.Surface, v.Reason = a.Ref, ""
			return
		}
		v.Reason = a.Reason
	}
}

// form is state B: one form, or a decision where its only required field is a
// choice of accept and reject.
func (v *View) form() {
	v.Controls.Cancel = true
	schema := membersOf(v.Item.InputSchema)
	required := schema.texts("required")
	v.Fields = fieldsOf(schema, required)
	if len(required) == 1 {
		i := slices.IndexFunc(v.Fields, func(f FormField) bool { return f.Name == required[0] })
		if i >= 0 && isDecision(v.Fields[i]) {
			v.State, v.Controls.Accept, v.Decision = StateBDecision, true, required[0]
			v.Choices = v.Fields[i].Enum
			v.Comment = slices.ContainsFunc(v.Fields, func(f FormField) bool { return f.Name == "comment" && !f.Secret })
			v.Edited = slices.Contains(v.Choices, abi.DecisionEdit) && slices.ContainsFunc(v.Fields, func(f FormField) bool { return f.Name == "edited" && !f.Secret })
			v.Fields = nil
			return
		}
	}
	v.State, v.Controls.Form = StateB, true
	v.Controls.SecretNotice = v.Item.Sensitivity == abi.SensitivitySecret ||
		slices.ContainsFunc(v.Fields, func(f FormField) bool { return f.Secret })
}

func isDecision(f FormField) bool {
	return !f.Secret && slices.Contains(f.Enum, abi.DecisionAccept) && slices.Contains(f.Enum, abi.DecisionReject) &&
		!slices.ContainsFunc(f.Enum, func(d string) bool { return !slices.Contains(abi.Decisions, d) })
}

// maxFields is how many fields a reduced schema may have.
const maxFields = 32

func fieldsOf(schema members, required []string) []FormField {
	properties := schema.object("properties")
	var out []FormField
	for _, name := range sortedNames(properties) {
		if len(out) == maxFields {
			break
		}
		p := properties.object(name)
		f := FormField{
			Name: name, Label: p.text("title"), Type: p.text("type"), Format: p.text("format"),
			Secret: p.yes("secret"), Sealed: p.text("delivery") == "sealed", Required: slices.Contains(required, name),
		}
		f.Label = cmp.Or(f.Label, name)
		if f.File = f.Format == abi.FormatFile && f.Type == "string"; f.File {
			f.Accept = p.text("accept")
		}
		var enum []json.RawMessage
		if json.Unmarshal(p["enum"], &enum) == nil {
			for _, e := range enum {
				var s string
				if json.Unmarshal(e, &s) == nil {
					f.Enum = append(f.Enum, s)
				}
			}
		}
		out = append(out, f)
	}
	return out
}
