package timeline

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/abi"
)

// A State is the kind of view that an owner gets of a request. It depends only on the three axes,
// the reduced schema, the attachments and the item's status, and not on messages, kinds or names of
// connectors.
type State uint8

const (
	StateNone       State = 0  // nothing is open
	StateA          State = 1  // an approval given elsewhere
	StateB          State = 2  // a value is needed
	StateBDecision  State = 3  // accept, reject, or other offered decisions
	StateC          State = 4  // a step in the browser, which can be viewed
	StateCNoSurface State = 5  // a step in a browser that cannot be viewed
	StateD          State = 6  // retries by itself
	StateE          State = 7  // a step in the browser that the connector notices
	StateAbandoned  State = 8  // the run ended before
	StateOther      State = 9  // a passive message
	StateEnded      State = 10 // it was closed
)

var stateNames = [...]string{"none", "A", "B", "B-decision", "C", "C-unavailable", "D", "E",
	"abandoned", "other", "ended"}

// String returns the name used in docs/spec/runs.md.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return stateNames[StateOther]
}

// Controls say what an owner can do about a request. Controls that are false are not on the page.
type Controls struct {
	Form         bool // fields of View.Fields, and submit
	Accept       bool // View.Choices, with an optional comment
	Cancel       bool
	OpenView     bool // the live view of View.Surface
	Done         bool // "I am done", in the viewed browser
	DoneOutside  bool // "I did this outside Sluice"
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
	Choices  []string    // accept, reject, and the offered ones of abi.Decisions
	Comment  bool        // the field comment goes with the decision
	Edited   bool        // the field edited takes the owner's version of the text
	Surface  string      // ref of the available surface
	Reason   string      // why there is none
}

// Offers reports whether a decision is offered.
func (v View) Offers(decision string) bool { return slices.Contains(v.Choices, decision) }

// A FormField is one field of a form.
type FormField struct {
	Name     string
	Label    string
	Type     string // string, number, integer or boolean
	Format   string
	Enum     []string
	Secret   bool // masked, without autocompletion
	Sealed   bool // the connector receives a handle
	Required bool
	File     bool   // the value is an abi.AnswerFile
	Accept   string // of a file
}

// ViewOf derives the view of an item.
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

// surface sets the browser surface of an item, or why there is none.
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

// form handles state B: a form, or a decision if its only required field is a choice of accept and
// reject.
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
			v.Edited = slices.Contains(v.Choices, abi.DecisionEdit) &&
				slices.ContainsFunc(v.Fields, func(f FormField) bool { return f.Name == "edited" && !f.Secret })
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

// maxFields bounds the fields of a reduced schema.
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
