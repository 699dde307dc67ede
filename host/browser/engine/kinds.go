package engine

import (
	"cmp"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A verbKind is what distinguishes the action verbs, which all run through the same steps.
type verbKind struct {
	hits    bool // the element has to receive events at the point that is hit
	input   bool // uses mouse or keys, whose trusted events are counted
	edits   bool // needs an element that takes text
	settles bool // a delta that holds already is enough
	leaves  bool // the control loses the focus afterwards, as when a person goes on
	// fits checks the element and keeps what later steps need.
	fits func(a *act, n *page.Node) *fault
	// send sends the action to the browser.
	send func(a *act) (page.Delivery, error)
	// tell fills in the details of the result.
	tell func(a *act)
}

// verbKinds maps the action verbs to their kinds.
var verbKinds map[Verb]verbKind

func init() {
	fill := verbKind{hits: true, edits: true, settles: true, leaves: true, fits: fillFits, send: fillSend, tell: fillTell}
	verbKinds = map[Verb]verbKind{
		Navigate: {send: navigateSend, tell: navigateTell},
		Click:    {hits: true, input: true, send: clickSend, tell: clickTell},
		Type:     fill,
		Fill:     fill,
		Clear:    fill,
		Press:    {hits: true, input: true, send: pressSend, tell: pressTell},
		Select:   {hits: true, settles: true, leaves: true, fits: selectFits, send: selectSend, tell: selectTell},
		Check:    {hits: true, input: true, settles: true, leaves: true, fits: checkFits, send: clickSend, tell: checkTell},
		Adjust:   {hits: true, settles: true, leaves: true, fits: adjustFits, send: adjustSend, tell: adjustTell},
		Scroll:   {settles: true, send: scrollSend, tell: scrollTell},
		Hover:    {hits: true, input: true, send: hoverSend, tell: hoverTell},
		Drag:     {hits: true, input: true, send: dragSend, tell: clickTell},
		Upload:   {fits: uploadFits, send: uploadSend, tell: uploadTell},
	}
}

// aim returns the point to hit, in fractions of the element's box.
func (a *act) aim() page.Point {
	if a.req.Verb == Click && a.req.Click.Position != (page.Point{}) {
		return a.req.Click.Position
	}
	return page.Point{X: 0.5, Y: 0.5}
}

// node returns the ref of the node whose state the action changes: the element itself, or the
// hidden control that it labels.
func (a *act) node() page.Ref {
	if a.found == nil {
		return ""
	}
	return a.found.State().Ref
}

func clickSend(a *act) (page.Delivery, error) {
	r := a.req.Click
	c := page.Click{
		At: a.point, Button: cmp.Or(r.Button, "left"), Count: max(r.Count, 1), Modifiers: r.Modifiers,
		Hold: r.Hold, Aimed: true,
	}
	return a.delivered(a.tab.Click(a.ctx, c))
}

func clickTell(a *act) { a.tellPointer() }

// tellPointer adds the point and the trusted events to the details.
func (a *act) tellPointer() {
	a.details["point"] = a.point
	if a.trusted >= 0 {
		a.details["trusted_events"] = a.trusted
	}
	if _, ok := a.details["unstable"]; !ok {
		a.details["unstable"] = false
	}
}

// delivered stores how many trusted events arrived.
func (a *act) delivered(d page.Delivery, err error) (page.Delivery, error) {
	a.trusted = d.Trusted
	return d, err
}

func hoverSend(a *act) (page.Delivery, error) { return a.delivered(a.tab.Hover(a.ctx, a.point)) }

func hoverTell(a *act) { a.details["point"] = a.point }

func pressSend(a *act) (page.Delivery, error) {
	all := page.Delivery{}
	for i, chord := range a.req.Press.Chords {
		node := a.node()
		if a.found == nil {
			node = a.resume
		}
		if i > 0 {
			node = "" // goes to what the first chord focused
		}
		d, err := a.tab.Press(a.ctx, node, chord, max(a.req.Press.Count, 1))
		all.Sent = all.Sent || d.Sent
		all.Trusted = sum(all.Trusted, d.Trusted)
		if err != nil {
			a.blocked = chord
			return all, err
		}
	}
	return a.delivered(all, nil)
}

// sum adds counts of events. If one is unknown, so is the sum.
func sum(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return a + b
}

func pressTell(a *act) {
	if n := focused(a.lastLook()); n != nil {
		a.details["focused"] = map[string]any{"role": n.Role}
	}
}

func checkFits(a *act, n *page.Node) *fault {
	if n.State.Checked == nil && !n.State.Mixed {
		return &fault{code: SemanticMismatch, detail: detailUnread, stage: StageResolve}
	}
	if a.work == nil && n.State.Checked != nil {
		a.work = *n.State.Checked
	}
	return nil
}

func checkTell(a *act) {
	if was, ok := a.work.(bool); ok {
		a.details["previous"] = was
	}
	if n := a.current(); n != nil && n.State.Checked != nil {
		a.details["checked"] = *n.State.Checked
	}
}

// leave takes the focus out of a control: many pages validate, format and save input only then, so
// the proof has to come later. A control that is gone needs no leaving; one that hangs shows in the
// proof.
func (a *act) leave() {
	if !a.kind.leaves || a.found == nil || a.asks("focused", a.delta) {
		return
	}
	a.worked[a.tab.ID()] = a.node()
	_ = a.tab.Leave(a.ctx, a.node())
}

// asks reports whether a predicate has a part of a kind.
func (a *act) asks(kind string, p *Predicate) bool {
	return p != nil && (p.Kind == kind || slices.ContainsFunc(p.Of, func(of Predicate) bool { return a.asks(kind, &of) }))
}

// resumed returns the control to which keys go when nothing has the focus: the one that was used
// last, if only this engine took the focus out of it.
func (a *act) resumed(l *Look) *page.Node {
	n := l.Node(a.worked[a.tab.ID()])
	if n == nil || !n.Visible {
		return nil
	}
	a.resume = n.Ref
	return n
}

func navigateSend(a *act) (page.Delivery, error) {
	r := a.req.Navigate
	if r.URL != "" && a.opt.AllowURL != nil {
		if err := a.opt.AllowURL(r.URL); err != nil {
			return page.Delivery{}, err
		}
	}
	until := cmp.Or(r.Until, "dom")
	if r.Auth != nil {
		release, err := a.tab.Login(a.ctx, origin(r.URL), a.login[0], a.login[1])
		if err != nil {
			return page.Delivery{}, err
		}
		defer release()
	}
	var n page.Navigation
	var err error
	if r.URL != "" {
		n, err = a.tab.Navigate(a.ctx, r.URL, until)
	} else {
		n, err = a.tab.History(a.ctx, r.History, until)
	}
	a.work = n
	return page.Delivery{Sent: err == nil || !unsent(err), Trusted: -1}, err
}

// identify resolves the credentials for an address before anything is done, if their values may go
// there.
func (a *act) identify() *Refusal {
	auth := a.req.Navigate.Auth
	if a.req.Verb != Navigate || auth == nil {
		return nil
	}
	var handles []string
	for i, v := range []Value{auth.Username, auth.Password} {
		if a.login[i] = v.Plain; v.Sealed != "" {
			handles = append(handles, v.Sealed)
		}
	}
	if len(handles) == 0 {
		return nil
	}
	if a.opt.Secrets == nil {
		return &Refusal{Code: "sealed_handle_unknown", Message: "the run holds no sealed values", Verb: a.req.Verb}
	}
	values, refused := a.opt.Secrets.Login(origin(a.req.Navigate.URL), handles...)
	if refused != nil {
		refused.Verb = a.req.Verb
		return refused
	}
	for i, v := range []Value{auth.Username, auth.Password} {
		if v.Sealed != "" {
			a.login[i], values = values[0], values[1:]
		}
	}
	return nil
}

func navigateTell(a *act) {
	n, _ := a.work.(page.Navigation)
	a.details["url_host"], a.details["status"] = n.Host, n.Status
	a.details["same_document"], a.details["redirects"] = n.SameDocument, n.Redirects
}
