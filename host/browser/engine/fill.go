package engine

import (
	"net/url"
	"slices"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

// typing is what a fill is to leave in its field.
type typing struct {
	text   string // never in a result or a trace (B40)
	handle string // of a sealed one
	picker bool   // a field that takes its value whole
	node   page.Ref
}

// pickers are inputs that are not typed into: their value is set.
var pickers = []string{"date", "datetime-local", "month", "week", "time", "color", "range"}

// fillFits settles the text that the field is to hold, once for a field: a second
// pass has to leave the same (B51), and another field is another decision (B38).
func fillFits(a *act, n *page.Node) *fault {
	picker := n.Tag == "input" && slices.Contains(pickers, n.Type)
	if n.ReadOnly || !n.Editable && !picker {
		return a.reject("readonly")
	}
	if t, ok := a.work.(typing); ok && t.node == n.Ref {
		return nil
	}
	t := typing{text: Typed(a.req, n), picker: picker, node: n.Ref}
	if h := a.req.Type.Sealed; h != "" {
		if picker { // what it makes of a text is seen
			a.refused = &Refusal{Code: "sealed_placement_denied", Message: "the field is none that a secret may be typed into", Verb: a.req.Verb}
			return nil
		}
		if a.opt.Secrets == nil {
			a.refused = &Refusal{Code: "sealed_handle_unknown", Message: "the run holds no sealed values", Verb: a.req.Verb}
			return nil
		}
		t.text, a.refused = a.opt.Secrets.Value(h, origin(a.before.URL), n.Origin, *n)
		if t.handle = h; a.refused != nil {
			return nil
		}
	}
	if a.req.Verb != Clear && !a.req.Type.Clear && n.State.TextValue != nil {
		t.text = *n.State.TextValue + t.text
	}
	a.work = t
	return nil
}

func fillSend(a *act) (page.Delivery, error) {
	t, _ := a.work.(typing)
	node := a.node()
	if t.handle != "" {
		a.remember(a.tab.ID(), node, sealed{handle: t.handle, value: t.text, document: a.before.Document})
		return a.tab.Enter(a.ctx, node, t.text)
	}
	if t.picker {
		return a.tab.Set(a.ctx, node, page.Setting{Text: &t.text})
	}
	if a.req.Type.Keys {
		return a.delivered(a.tab.Keys(a.ctx, node, t.text, true))
	}
	return a.tab.Fill(a.ctx, node, t.text)
}

func fillTell(a *act) {
	t, _ := a.work.(typing)
	if a.req.Verb == Clear {
		a.details["length"] = 0
		return
	}
	if a.details["sealed"] = t.handle != ""; t.handle == "" {
		a.details["length"] = utf8.RuneCountInString(t.text)
	}
}

// origin is the scheme, host and port of an address; "null" for one without.
func origin(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "null"
	}
	return u.Scheme + "://" + u.Host
}
