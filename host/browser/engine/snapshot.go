package engine

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A SnapshotReply is the reply of snapshot without screenshot, console and diagnostics, which the
// caller adds, or the reason why one is missing.
type SnapshotReply struct {
	Revision    int64         `json:"snapshot_revision"`
	CapturedAt  int64         `json:"captured_at_ms"`
	Fingerprint string        `json:"fingerprint"`
	URL         string        `json:"url"`
	Title       string        `json:"title"`
	Viewport    page.Viewport `json:"viewport"`
	Loading     *LoadingState `json:"loading_state,omitempty"`
	Elements    []Element     `json:"elements"`
	Truncated   bool          `json:"truncated"`
	Semantic    *Planning     `json:"semantic,omitempty"`

	Screenshot       any                `json:"screenshot,omitempty"`
	ScreenshotError  string             `json:"screenshot_error,omitempty"`
	Console          []page.ConsoleLine `json:"console"`
	ConsoleError     string             `json:"console_error,omitempty"`
	Diagnostics      any                `json:"diagnostics,omitempty"`
	DiagnosticsError string             `json:"diagnostics_error,omitempty"`
}

// LoadingState is either complete or absent.
type LoadingState struct {
	Active bool   `json:"active"`
	Signal string `json:"signal"`
	Source string `json:"source"`
}

// LoadingOf returns the loading state of a look, or nil if it is not loading.
func LoadingOf(o *page.Observation) *LoadingState {
	if o.Loading == nil {
		return nil
	}
	return &LoadingState{true, o.Loading.Signal, o.Loading.Source}
}

// WantSnapshot returns the query for a snapshot.
func WantSnapshot(id *Identity, a *SnapshotArgs) page.Query {
	targets := []*Target{a.Within}
	if a.Query != "" {
		targets = append(targets, &Target{Selector: queryOf(a)})
	}
	q := Want(id, targets, nil)
	q.All, q.Patient = true, true
	return q
}

func queryOf(a *SnapshotArgs) *Selector {
	return &Selector{Selector: page.Selector{Query: a.Query}, Exact: &a.Exact, Within: a.Within}
}

// Snapshot shows a look to a guest. Its ids replace those of the snapshot before. A miss is that of
// within.
func (l *Look) Snapshot(id *Identity, a *SnapshotArgs) (*SnapshotReply, *Miss) {
	nodes, miss := l.shown(id, a)
	if miss != nil {
		return nil, miss
	}
	limit := a.Limit
	if limit <= 0 {
		limit = defaultElements
	}
	nodes, short := l.first(nodes, limit)
	r := &SnapshotReply{
		Revision: l.Revision, CapturedAt: l.CapturedAt.UnixMilli(), Fingerprint: l.Fingerprint, URL: l.URL, Title: l.Title,
		Viewport: l.Viewport, Loading: LoadingOf(l.Observation), Truncated: short || l.Truncated,
		Elements: make([]Element, len(nodes)), Console: []page.ConsoleLine{},
	}
	for i, elementID := range id.renew(l, nodes) {
		r.Elements[i] = l.element(nodes[i], elementID)
	}
	r.Semantic = plan(l, r.Elements)
	return r, nil
}

const (
	defaultElements = 256
	maxReply        = 900 << 10 // of the reply of 1 MiB; the rest is for the other parts
)

// Shrink drops elements from the end until the reply has at most most bytes, or the general limit
// for 0, and marks it as truncated. It reports false if that is impossible.
func (r *SnapshotReply) Shrink(most int) bool {
	if most <= 0 {
		most = maxReply
	}
	for {
		raw, err := json.Marshal(r)
		if err != nil {
			return false
		}
		if len(raw) <= most {
			return true
		}
		if len(r.Elements) == 0 {
			return false
		}
		r.Elements = r.Elements[:len(r.Elements)*most/(len(raw)+1)]
		r.Truncated = true
	}
}

// shown returns the nodes of a snapshot in document order.
func (l *Look) shown(id *Identity, a *SnapshotArgs) ([]*page.Node, *Miss) {
	var out []*page.Node
	if a.Query != "" {
		m, miss := l.matches(id, queryOf(a), ResolveOptions{})
		if miss != nil {
			return nil, miss
		}
		for _, c := range append(m.found, m.passive...) {
			if !slices.Contains(out, c.Node) {
				out = append(out, c.Node)
			}
		}
		slices.SortStableFunc(out, func(x, y *page.Node) int { return cmp.Compare(x.Order, y.Order) })
		return out, nil
	}
	in, miss := l.area(id, &Selector{Within: a.Within})
	if miss != nil {
		return nil, miss
	}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if byDefault(n) && (in.within == nil || l.inside(n, in.within)) {
			out = append(out, n)
		}
	}
	return out, nil
}

// landmarks are roles that a snapshot shows beside actionable elements.
var landmarks = []string{"banner", "complementary", "contentinfo", "dialog", "alertdialog", "alert", "status", "form",
	"heading", "main", "navigation", "region", "search"}

// byDefault reports whether a snapshot shows n by default.
func byDefault(n *page.Node) bool {
	return n.Visible && (acts(n) || n.Cursor || n.OwnText || n.Editable || slices.Contains(landmarks, n.Role)) ||
		n.Tag == "input" && n.Type == "file"
}

// first returns at most limit nodes in document order, chosen from the viewport first, then near
// it, then the rest. It reports whether any were dropped.
func (l *Look) first(nodes []*page.Node, limit int) ([]*page.Node, bool) {
	if len(nodes) <= limit {
		return nodes, false
	}
	view := page.Box{W: float64(l.Viewport.Width), H: float64(l.Viewport.Height)}
	ranked := slices.Clone(nodes)
	slices.SortStableFunc(ranked, func(a, b *page.Node) int {
		return cmp.Compare(distance(view, a.Bounds), distance(view, b.Bounds))
	})
	ranked = ranked[:limit]
	slices.SortStableFunc(ranked, func(a, b *page.Node) int { return cmp.Compare(a.Order, b.Order) })
	return ranked, true
}

// Planning is the semantic block of a snapshot, derived from its elements alone. It is for planning
// only and never used to act or to prove. Where it contradicts the elements, they are right.
type Planning struct {
	Screen     string   `json:"screen"` // dialog, login, form, list, table, article or unknown
	Signals    []string `json:"signals"`
	Actions    []string `json:"actions_available"`
	Confidence string   `json:"confidence"`
	Warnings   []string `json:"warnings"`
}

// maxActions bounds the actions listed for a page.
const maxActions = 20

// plan returns nil for a page without elements.
func plan(l *Look, elements []Element) *Planning {
	if len(elements) == 0 {
		return nil
	}
	p := &Planning{Screen: "unknown", Signals: []string{}, Actions: []string{}, Confidence: "low", Warnings: []string{}}
	c := tally(l, elements)
	for _, s := range []struct {
		on           bool
		screen, sure string
		signal       string
	}{
		{c.dialogs > 0, "dialog", "high", "a dialog is shown"},
		{c.secrets > 0, "login", "high", "a password field is shown"},
		{c.fields > 1 && c.submits > 0, "form", "medium", "fields and a way to submit them"},
		{c.rows > 2, "table", "medium", "rows of a table"},
		{c.items > 2, "list", "medium", "items of a list"},
		{c.headings > 0 && c.texts > c.fields, "article", "low", "a heading with text"},
	} {
		if !s.on {
			continue
		}
		if p.Screen == "unknown" {
			p.Screen, p.Confidence = s.screen, s.sure
		}
		p.Signals = append(p.Signals, s.signal)
	}
	for _, e := range elements {
		if name := cutText(e.Label, 80); e.Actionable && name != "" && len(p.Actions) < maxActions &&
			!slices.Contains(p.Actions, e.Role+": "+name) {
			p.Actions = append(p.Actions, e.Role+": "+name)
		}
	}
	p.warn(l, c)
	return p
}

func (p *Planning) warn(l *Look, c counts) {
	for _, w := range []struct {
		on   bool
		text string
	}{
		{l.Loading != nil, "the page is still loading"},
		{l.Truncated, "the page has more than was read"},
		{c.frames > 0, "some elements are in frames"},
		{p.Screen == "unknown", "the kind of page is not clear"},
	} {
		if w.on {
			p.Warnings = append(p.Warnings, w.text)
		}
	}
}

// counts tallies what a snapshot shows.
type counts struct {
	dialogs, secrets, fields, submits, rows, items, headings, texts, frames int
}

func tally(l *Look, elements []Element) counts {
	var c counts
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if !n.Visible {
			continue
		}
		c.secrets += count(n.Secret)
		c.submits += count(n.Submits)
		c.fields += count(n.InForm && n.Editable)
	}
	for _, e := range elements {
		c.dialogs += count(e.Role == "dialog" || e.Role == "alertdialog")
		c.rows += count(e.Role == "row")
		c.items += count(e.Role == "listitem" || e.Role == "option")
		c.headings += count(e.Role == "heading")
		c.texts += count(e.Text != "")
		c.frames += count(e.Frame != "")
	}
	return c
}

// maxConsole bounds the console lines read for a hint; snapshots ask for their own number.
const maxConsole = 200

// snapshot shows the page. If a part cannot be captured, the reply says so and has the others.
func (v *verb) snapshot() (any, *Refusal) {
	args := &v.req.Snapshot
	q := WantSnapshot(v.opt.Identity, args)
	o, err := v.reads(q)
	if err != nil {
		return nil, v.unread(err)
	}
	reply, miss := NewLook(o, q).Snapshot(v.opt.Identity, args)
	if miss != nil {
		v.tracer.add(stageResolve, stepFailure, meta{"code": miss.Code})
		v.record(nil)
		return nil, &Refusal{Code: "invalid_request", Message: "within: no such element", Verb: v.req.Verb}
	}
	for _, part := range args.Include {
		switch part {
		case "screenshot":
			v.picture(reply)
		case "console":
			reply.Console = append(reply.Console, v.tab.Console(args.LogLines)...)
		case "diagnostics":
			v.diagnostics(reply)
		}
	}
	if !reply.Shrink(0) {
		return nil, v.unread(page.ErrTooLarge)
	}
	v.tracer.add(stageVerify, stepSuccess, meta{"revision": reply.Revision, "elements": len(reply.Elements)})
	v.succeeded = true
	v.record(nil)
	return reply, nil
}

func (v *verb) picture(reply *SnapshotReply) {
	got, refused := v.shoot(page.Shot{Format: "jpeg", Quality: 70})
	if refused != nil {
		reply.ScreenshotError = refused.Code
		return
	}
	reply.Screenshot = got
}

// diagnostics adds the diagnostics of the action that the request names.
func (v *verb) diagnostics(reply *SnapshotReply) {
	p := v.past(v.req.Snapshot.ActionID)
	switch {
	case p == nil || v.req.Snapshot.ActionID == "":
		reply.DiagnosticsError = "unknown_action"
	case p.act.res.ActionType == LocalState:
		reply.Diagnostics = withheld("local_state")
	case !p.act.res.Verification.Ambiguous:
		reply.Diagnostics = withheld("not_ambiguous")
	default:
		reply.Diagnostics = v.inspect(v.tab, p.mark, p.act.res.ActionType)
	}
}

// screenshot takes a picture of the page or of an element.
func (v *verb) screenshot() (any, *Refusal) {
	s := page.Shot{Format: v.req.Screenshot.Format, Quality: v.req.Screenshot.Quality, Full: v.req.Screenshot.Full}
	if v.req.Target != nil {
		q := v.want([]*Target{v.req.Target}, nil)
		o, err := v.reads(q)
		if err != nil {
			return nil, v.unread(err)
		}
		l := NewLook(o, q)
		found, miss := l.Resolve(v.opt.Identity, v.req.Target, ResolveOptions{})
		if miss != nil {
			v.tracer.add(stageResolve, stepFailure, meta{"code": miss.Code})
			v.record(nil)
			return nil, &Refusal{Code: "invalid_request", Message: "target: no such element", Verb: v.req.Verb}
		}
		s.Clip = &found.Node.Bounds
	}
	got, refused := v.shoot(s)
	if refused != nil {
		return nil, refused
	}
	v.tracer.add(stageVerify, stepSuccess, nil)
	v.succeeded = true
	v.record(nil)
	return got, nil
}

// shoot takes a picture with sealed values covered.
func (v *verb) shoot(s page.Shot) (any, *Refusal) {
	if v.opt.Keep == nil {
		return nil, &Refusal{Code: "capability_denied", Message: "pictures are not granted", Verb: v.req.Verb}
	}
	if err := v.gate(); err != nil {
		return nil, v.unread(err)
	}
	s.Cover = v.covered()
	s.Quality = cmp.Or(max(s.Quality, 0), 70)
	p, err := v.tab.Screenshot(v.ctx, s)
	if err != nil {
		return nil, v.unread(err)
	}
	return v.opt.Keep(p)
}
