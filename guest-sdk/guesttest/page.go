//go:build !wasip1

package guesttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/abi"
	guest "github.com/sluicehost/sluice/guest-sdk"
)

// Pages simulate the browser of a test; set Options.Pages, or pass Pages.Call as
// Options.Browser. They model elements and how these react, without markup or time: an
// action is verified if its expectation is true after its element has reacted, and fails
// otherwise. To test anything beyond that, run the connector on a real page (sluice run).
type Pages struct {
	// Load returns the page at url, or nil for a URL that the owner has not approved.
	Load func(url string) *Page
	// Page is the current page; nil before the first Load.
	Page *Page
	// Log has one line per call, without values.
	Log []string

	open   bool
	action int
	last   *action // the last action, if it awaits an Expect
	tab    string  // opened by the last action

	handles    *handles         // nil denies downloads: Options.Pages is not set
	downloaded []guest.Download // by the last action
}

// A Page is a document.
type Page struct {
	URL, Title string
	Elements   []*Element
}

// An Element is an element of a page. The selectors of a connector compare the members that
// they name as the host does, ignoring case and white space.
type Element struct {
	Role, Name, Label, Text string
	Placeholder, TestID, ID string
	CSS                     []string // selectors that match it
	In                      *Element // enclosing element, for Within

	Value              string   // of an editable element or a list
	Options            []string // of a list
	Multiple           bool     // several options can be chosen
	Chosen             []string // of a multiple-choice list
	Number             *float64 // of a slider or stepper
	Min, Max           float64
	Checked, Expanded  *bool
	Hidden, Disabled   bool
	Attributes         map[string]string
	Table              *guest.Table
	Links              []guest.Link
	OnClick, OnChanged func(p *Pages)
	OnScroll           func(p *Pages) // called when it is scrolled to
	Opens              string         // tab that a click opens, such as tab_2
	Offers             *Offer         // file that a click offers
}

// An Offer is a file that a page offers for download.
type Offer struct {
	Name, MIME string
	Content    []byte
}

// Find returns an element by its test id, id, name, label or text, or nil. It is for the
// test, not the connector.
func (p *Page) Find(words string) *Element {
	for _, e := range p.Elements {
		if slices.ContainsFunc([]string{e.TestID, e.ID, e.Name, e.Label, e.Text},
			func(s string) bool { return s != "" && folded(s) == folded(words) }) {
			return e
		}
	}
	return nil
}

// Add adds elements to the page.
func (p *Page) Add(list ...*Element) { p.Elements = append(p.Elements, list...) }

// Remove removes elements from the page.
func (p *Page) Remove(list ...*Element) {
	p.Elements = slices.DeleteFunc(p.Elements, func(e *Element) bool { return slices.Contains(list, e) })
}

// Go loads the page at url and reports whether there is one.
func (p *Pages) Go(url string) bool {
	next := p.Load(url)
	if next == nil {
		return false
	}
	p.Page = next
	return true
}

func folded(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// name returns the element's accessible name.
func (e *Element) name() string {
	for _, s := range []string{e.Name, e.Label, e.Text} {
		if s != "" {
			return s
		}
	}
	return ""
}

func (e *Element) editable() bool { return e.Role == "textbox" || e.Role == "searchbox" }

// A pageRequest has the members of a call that Pages uses.
type pageRequest struct {
	Verb     string
	URL      string
	History  string
	Tab      string
	Phase    string
	Target   *pageTarget
	Expect   *pageCondition
	Preexist bool `json:"allow_preexisting"`
	Value    json.RawMessage
	Option   pageOption
	Options  []pageOption
	Checked  *bool
	For      string
	Items    []pageItem
	Hosts    []string
	Files    []struct{ Path, Name string }
}

// A pageOption identifies one option of a list.
type pageOption struct {
	ID, Label *string
	Index     *int
}

// An action is the report of an action.
type action struct {
	ID      string `json:"action_id"`
	Verb    string `json:"action"`
	Type    string `json:"action_type"`
	State   string `json:"lifecycle_state"`
	Sent    bool   `json:"dispatched"`
	Success bool   `json:"success"`
	Code    string `json:"failure_code,omitempty"`
	Reason  string `json:"failure_reason,omitempty"`
	Detail  string `json:"detail,omitempty"`
	Details any    `json:"details"`
}

var localVerbs = []string{"type", "fill", "clear", "select", "check", "adjust", "scroll", "hover"}

// Call serves the call function of the browser binding; it can be used as Options.Browser.
func (p *Pages) Call(request []byte) ([]byte, error) {
	var q pageRequest
	if err := json.Unmarshal(request, &q); err != nil {
		return nil, guest.NewError(abi.EINVAL, "invalid_request", err.Error())
	}
	p.Log = append(p.Log, strings.TrimSpace(q.Verb+" "+q.Target.words()+q.URL+q.History+q.Phase))
	if !p.open && q.Verb != "open" {
		return nil, guest.NewError(abi.EINVAL, "surface_not_open", "open the browser first")
	}
	if q.Target != nil && q.Target.Selector == nil && q.Target.Element == "" {
		return nil, guest.NewError(abi.EINVAL, "INVALID_SELECTOR", "a target needs a selector or an element")
	}
	reply, err := p.answer(&q)
	if err != nil {
		return nil, err
	}
	return json.Marshal(reply)
}

func (p *Pages) answer(q *pageRequest) (any, error) {
	switch q.Verb {
	case "open":
		return p.opened(q)
	case "close":
		p.open = q.Tab != ""
		return map[string]any{"closed": "surface", "graceful": true}, nil
	case "mark":
		return map[string]any{"phase": q.Phase}, nil
	case "cookies":
		return map[string]any{"granted": []any{}, "refused": refusedAll(q.Hosts)}, nil
	case "expect":
		return p.expect(q), nil
	case "wait":
		return p.wait(q), nil
	case "extract":
		return p.extract(q), nil
	case "snapshot":
		return p.snapshot(), nil
	case "navigate", "click", "type", "fill", "clear", "press", "select", "check", "adjust", "scroll",
		"hover", "drag", "upload":
		return p.act(q), nil
	}
	return nil, guest.NewError(abi.ENOTSUP, "unknown_verb", fmt.Sprintf("the fake has no %q", q.Verb))
}

func refusedAll(hosts []string) []map[string]string {
	out := []map[string]string{}
	for _, h := range hosts {
		out = append(out, map[string]string{"host": h, "reason": "no_cookies"})
	}
	return out
}

func (p *Pages) opened(q *pageRequest) (any, error) {
	if p.open {
		return nil, guest.NewError(abi.EINVAL, "surface_already_open", "the browser is open")
	}
	p.open = true
	if q.URL != "" && !p.Go(q.URL) {
		return nil, guest.NewError(abi.EDENIED, "host_denied", q.URL)
	}
	return map[string]any{"surface_id": "sf_test", "profile": "test", "persistent": true, "tabs": []any{},
		"session": map[string]any{"state": "not_probed"}}, nil
}

// act carries out an action and verifies it.
func (p *Pages) act(q *pageRequest) *action {
	p.action++
	a := &action{ID: "act_" + strconv.Itoa(p.action), Verb: q.Verb, Type: "side_effect", State: "failed",
		Details: map[string]any{}}
	if slices.Contains(localVerbs, q.Verb) {
		a.Type = "local_state"
	}
	p.last = nil
	before := p.Page
	p.tab, p.downloaded = "", nil
	held := q.Expect != nil && p.Page != nil && p.holds(q.Expect)
	if !p.dispatch(q, a) {
		return a
	}
	a.Sent = true
	if p.tab != "" {
		a.Details = map[string]any{"popups": []map[string]string{{"tab_id": p.tab}}}
	}
	if p.downloaded != nil {
		a.Details = map[string]any{"downloads": p.downloaded}
	}
	switch {
	case q.Expect == nil && (q.Verb == "click" || q.Verb == "press"):
		a.State, p.last = "pending_verification", a
	case held && !q.Preexist && a.Type == "side_effect":
		a.Code, a.Reason, a.Detail = "VERIFICATION_FAILED", "no_state_change", "already_true_before"
	case q.Expect != nil && !p.holds(q.Expect), q.Verb == "navigate" && q.History == "" && p.Page == before:
		a.Code, a.Reason = "VERIFICATION_FAILED", "no_state_change"
	default:
		a.State, a.Success = "verified", true
	}
	return a
}

// dispatch carries out an action, and returns false if it fails before having an effect.
func (p *Pages) dispatch(q *pageRequest, a *action) bool {
	if q.Verb == "navigate" {
		if q.History == "" && !p.Go(q.URL) {
			a.Code, a.Detail = "ACTION_REJECTED", "host_denied"
			return false
		}
		return true
	}
	if q.Target == nil {
		return true // keys, or scrolling the page
	}
	found := p.find(q.Target)
	switch {
	case len(found) == 0:
		a.Code, a.Reason = "ELEMENT_NOT_FOUND", "target_resolution_failure"
	case len(found) > 1:
		a.Code, a.Reason = "AMBIGUOUS_TARGET", "target_resolution_failure"
	case found[0].Hidden:
		a.Code, a.Detail = "ACTION_REJECTED", "not_visible"
	case found[0].Disabled:
		a.Code, a.Detail = "ACTION_REJECTED", "disabled"
	default:
		return p.work(q, a, found[0])
	}
	return false
}

// work changes an element as the verb demands.
func (p *Pages) work(q *pageRequest, a *action, e *Element) bool {
	reject := func(code string) bool { a.Code = code; return false }
	switch q.Verb {
	case "click", "press", "hover", "scroll", "drag", "upload":
		react := map[string]func(*Pages){"click": e.OnClick, "scroll": e.OnScroll}[q.Verb]
		if react != nil {
			react(p)
		}
		if q.Verb == "click" {
			p.tab = e.Opens
			p.offered(e.Offers)
		}
		return true
	case "type", "fill", "clear":
		var v struct{ Plain, Sealed string }
		_ = json.Unmarshal(q.Value, &v) // clear has no value
		if !e.editable() {
			return reject("SEMANTIC_MISMATCH")
		}
		e.Value = v.Plain + v.Sealed
	case "select":
		if (q.Options != nil) != e.Multiple {
			return reject("SEMANTIC_MISMATCH")
		}
		if e.Multiple {
			chosen := []string{}
			for _, o := range q.Options {
				option, ok := e.option(o)
				if !ok {
					return reject("ELEMENT_NOT_FOUND")
				}
				chosen = append(chosen, option)
			}
			e.Chosen = chosen
			break
		}
		option, ok := e.option(q.Option)
		if !ok {
			return reject("SEMANTIC_MISMATCH")
		}
		e.Value = option
	case "check":
		if e.Checked == nil || q.Checked == nil {
			return reject("SEMANTIC_MISMATCH")
		}
		e.Checked = q.Checked
	case "adjust":
		var n float64
		if json.Unmarshal(q.Value, &n) != nil || e.Number == nil {
			return reject("SEMANTIC_MISMATCH")
		}
		if n < e.Min || n > e.Max {
			a.Detail = "out_of_range"
			return reject("ACTION_REJECTED")
		}
		e.Number = &n
	}
	if e.OnChanged != nil {
		e.OnChanged(p)
	}
	return true
}

// offered takes the file that a click offers.
func (p *Pages) offered(o *Offer) {
	if o == nil {
		return
	}
	d := guest.Download{Name: o.Name, MIME: o.MIME, Bytes: int64(len(o.Content)), Denied: p.handles == nil}
	if p.handles != nil {
		handle, err := p.handles.open(bytes.NewReader(o.Content))
		d.Handle, d.Denied = handle, err != nil
	}
	p.downloaded = []guest.Download{d}
}

func (e *Element) option(q pageOption) (string, bool) {
	for i, o := range e.Options {
		for _, wanted := range []*string{q.ID, q.Label} {
			if wanted != nil && folded(*wanted) == folded(o) {
				return o, true
			}
		}
		if q.Index != nil && *q.Index == i {
			return o, true
		}
	}
	return "", false
}
