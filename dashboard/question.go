package dashboard

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/host/web"
	"github.com/sluicehost/sluice/store"
)

// answer submits what an owner typed, chose or cancelled. The fields follow from the request alone;
// their values go only to the broker, and the body is wiped.
func (u *runUI) answer(c *fiber.Ctx) error {
	defer web.Wipe(c)
	r, f, err := u.runAndForm(c)
	if err != nil {
		return err
	}
	id := f.raw("interactionId")
	item, found := timeline.Item{}, false
	err = u.streams.Fold(web.Context(c), r.ID, func(_ store.Run, x *timeline.Fold) {
		for _, i := range x.Assistance(false) {
			if i.InteractionID == id && id != "" {
				item, found = i, true
			}
		}
	})
	switch {
	case err != nil:
		return err
	case !found:
		return web.NotFound()
	case item.Status != timeline.ItemOpen:
		return tooLate()
	}
	a := host.Answer{RunID: r.ID, InteractionID: id, Status: abi.AnswerSuccess, Data: map[string]json.RawMessage{}}
	switch f.raw("status") {
	case abi.AnswerCancelled:
		a.Status, a.Data = abi.AnswerCancelled, nil
	case abi.AnswerSuccess:
		if err := f.answers(timeline.ViewOf(item), a.Data); err != nil {
			return err
		}
	default:
		return web.Invalid(web.Field{Path: "status", Rule: "success or cancelled"})
	}
	if err := u.questions.Answer(web.Context(c), a); err != nil {
		if p, known := web.ProblemOf(err); known && late[p.Code] {
			return tooLate()
		}
		return err
	}
	if a.Status == abi.AnswerCancelled {
		return done(c, "The question was cancelled.")
	}
	return done(c, "Your answer was handed over.")
}

// late lists the codes of answers that came too late.
var late = map[string]bool{"conflict": true, "no_pending_interaction": true, "interrupt_already_resolved": true,
	"interrupt_cancelled": true}

func tooLate() error {
	return web.NewProblem(409, "conflict",
		"This question is closed already: it was answered somewhere else, or its time was over. Nothing of what you entered was used.")
}

// answers reads the fields of the view.
func (f *form) answers(v timeline.View, out map[string]json.RawMessage) error {
	fields := v.Fields
	if v.Controls.Accept {
		decision := f.raw(fieldName(v.Decision))
		fields = []timeline.FormField{{Name: v.Decision, Label: "Decision", Type: "string", Required: true,
			Enum: v.Choices}}
		if v.Comment {
			fields = append(fields, timeline.FormField{Name: "comment", Label: "Comment", Type: "string",
				Required: decision == abi.DecisionRefine})
		}
		if v.Edited && decision == abi.DecisionEdit {
			fields = append(fields, timeline.FormField{Name: "edited", Label: "Your version", Type: "string",
				Required: true})
		}
	}
	for _, x := range fields {
		value, err := f.answerTo(x)
		if err != nil {
			f.fail(fieldName(x.Name), err.Error())
		} else if value != nil {
			out[x.Name] = value
		}
	}
	return f.err()
}

// fieldName returns the form field of a question's field, prefixed to keep it apart from the form's
// own.
func fieldName(name string) string { return "f." + name }

// A rule is an error whose text is shown in a form.
type rule string

func (r rule) Error() string { return string(r) }

// answerTo returns the value of one field, or nil if it was left empty.
func (f *form) answerTo(x timeline.FormField) (json.RawMessage, error) {
	text := f.raw(fieldName(x.Name))
	if x.Type == "boolean" && len(x.Enum) == 0 {
		return json.Marshal(f.on(fieldName(x.Name)))
	}
	if text == "" {
		if x.Required {
			return nil, rule("filled in")
		}
		return nil, nil
	}
	switch x.Type {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, rule("a whole number")
		}
		return json.Marshal(n)
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, rule("a number")
		}
		v, err := json.Marshal(n)
		if err != nil {
			return nil, rule("a number")
		}
		return v, nil
	}
	return json.Marshal(text)
}

// isCode reports whether a field takes a one-time code, which a phone can offer from a message. It
// is shown while it is typed, since it is worthless a moment later; a password is not.
func isCode(i timeline.Item, f timeline.FormField) bool {
	text := f.Type == "" || f.Type == "string" || f.Type == "integer"
	return i.Kind == abi.KindOTP && text && len(f.Enum) == 0 && f.Format != "password" &&
		!strings.Contains(strings.ToLower(f.Name), "pass") &&
		(f.Secret || f.Type == "integer")
}
