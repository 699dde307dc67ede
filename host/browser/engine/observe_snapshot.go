package engine

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A SnapshotReply is the answer of snapshot (B105), without the parts that are not
// elements: the caller adds screenshot, console and diagnostics, or why they are
// missing (B110).
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

// LoadingState has all of its members or is not there (B115).
type LoadingState struct {
	Active bool   `json:"active"`
	Signal string `json:"signal"`
	Source string `json:"source"`
}

// LoadingOf is the loading state of a look, nil for none.
func LoadingOf(o *page.Observation) *LoadingState {
	if o.Loading == nil {
		return nil
	}
	return &LoadingState{true, o.Loading.Signal, o.Loading.Source}
}

// WantSnapshot is the query that a snapshot is made of.
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

// Snapshot shows a look to a guest. The ids that it gives out replace those of the
// snapshot before (B131). A miss is that of within.
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

// Shrink leaves out elements from the end until the reply is at most of so many
// bytes, and says so; 0 is the limit of section 1. false when that is impossible.
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

// shown are the nodes that a snapshot is about, in document order.
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

// landmarks are shown beside what can be acted on (B106).
var landmarks = []string{"banner", "complementary", "contentinfo", "dialog", "alertdialog", "alert", "status", "form", "heading", "main", "navigation", "region", "search"}

// byDefault reports whether a snapshot shows n (B106).
func byDefault(n *page.Node) bool {
	return n.Visible && (acts(n) || n.Cursor || n.OwnText || n.Editable || slices.Contains(landmarks, n.Role)) ||
		n.Tag == "input" && n.Type == "file"
}

// first are at most limit nodes, in document order: what is in the viewport before
// what is near it before the rest (B106).
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
