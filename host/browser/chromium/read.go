package chromium

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	// nodesLimit bounds an observation, also if the query names no limit.
	nodesLimit = 2000
	// lookBudget bounds the walk and the detailed look in each document, in ms; patientBudget
	// applies to looks by which nothing is decided.
	lookBudget    = 200
	patientBudget = 1000
)

// looks is the state shared by the reads of a tab. The tab's mu guards it.
type looks struct {
	tab      *Tab
	revision int64
	document string
	digests  page.Digests
	watched  *world // the world whose events are counted
}

// A documentRead is what the function read returns for one document.
type documentRead struct {
	At       float64        `json:"at"` // ms since 1970, by the page's clock
	Error    string         `json:"error"`
	Digests  page.Digests   `json:"digests"`
	Title    string         `json:"title"`
	Loading  *page.Loading  `json:"loading"`
	Viewport page.Viewport  `json:"viewport"`
	Scroll   page.Point     `json:"scroll"`
	Count    int            `json:"count"`
	Ordinals int            `json:"ordinals"`
	Frames   []frameElement `json:"frames"`
	Nodes    []page.Node    `json:"nodes"`
	Cut      bool           `json:"truncated"`
	Fresh    bool           `json:"fresh"`   // an element was added since listeners were last queried
	Shadows  []int          `json:"shadows"` // open shadow trees, if listeners are queried

	world *world
}

// A frameElement is an element that frames a document. If it is not Open, the document is not
// accessible from there.
type frameElement struct {
	N       int      `json:"n"`
	Name    string   `json:"name"` // attributes of the element
	ID      string   `json:"id"`
	Open    bool     `json:"open"`
	Order   int      `json:"order"`
	Ordinal int      `json:"ordinal"`
	Visible bool     `json:"visible"`
	Box     page.Box `json:"box"`
	Clip    page.Box `json:"clip"`
	X       float64  `json:"x"` // the corner of the document
	Y       float64  `json:"y"`
	S       float64  `json:"s"` // its scale
}

type question struct {
	Selectors  []page.Selector `json:"selectors"`
	Refs       []int           `json:"refs"`
	All        bool            `json:"all"`
	Limit      int             `json:"limit"`
	Attributes []string        `json:"attributes"`
	Budget     int             `json:"budget"`
	Again      bool            `json:"again"` // watch what is read until the next look
	Asked      bool            `json:"asked"` // listeners are queried as well
}

// Read takes one look at the page, with one concurrent call for each document that is not
// accessible from another.
func (lk *looks) Read(ctx context.Context, q page.Query) (*page.Observation, error) {
	if q.Limit <= 0 || q.Limit > nodesLimit {
		q.Limit = nodesLimit
	}
	var o *page.Observation
	err := lk.tab.call(ctx, func(ctx context.Context) error {
		for {
			var err error
			if o, err = lk.read(ctx, q); !errors.Is(err, errWorld) {
				return err
			}
			if ctx.Err() != nil { // it keeps navigating
				return ctx.Err()
			}
		}
	})
	return o, err
}

func (lk *looks) read(ctx context.Context, q page.Query) (*page.Observation, error) {
	lk.tab.frames.attachAway()
	main, err := lk.tab.frames.mainWorld(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := lk.tab.frames.own(ctx); err != nil {
		return nil, err
	}
	glances, err := lk.glances(ctx, main, q)
	if err != nil {
		return nil, err
	}
	return lk.observation(main, glances, q)
}

// glances reads all documents that are not accessible from others. Documents that go away meanwhile
// are left out, except for the main one.
func (lk *looks) glances(ctx context.Context, main *world, q page.Query) (map[*world]*documentRead, error) {
	worlds := lk.lookedInto()
	found := make([]*documentRead, len(worlds))
	failed := make([]error, len(worlds))
	var all sync.WaitGroup
	for i, w := range worlds {
		all.Go(func() { found[i], failed[i] = lk.glance(ctx, w, q) })
	}
	all.Wait()
	glances := make(map[*world]*documentRead)
	for i, w := range worlds {
		switch {
		case failed[i] == nil:
			glances[w] = found[i]
		case w == main, errors.Is(failed[i], page.ErrSelector):
			return nil, failed[i]
		}
	}
	if glances[main] == nil {
		return nil, errWorld
	}
	return glances, nil
}

// lookedInto returns the worlds to read: that of the main document, and those of frames that are
// not accessible from the world around them.
func (lk *looks) lookedInto() []*world {
	lk.tab.mu.Lock()
	defer lk.tab.mu.Unlock()
	var list []*world
	for id, f := range lk.tab.frames.all {
		if f.world != nil && (id == lk.tab.frames.main || (!f.owner.open && f.owner.world != nil)) {
			list = append(list, f.world)
		}
	}
	return list
}

func (lk *looks) glance(ctx context.Context, w *world, q page.Query) (*documentRead, error) {
	ask := question{Selectors: q.Selectors, All: q.All, Limit: q.Limit, Attributes: q.Attributes,
		Budget: lookBudget, Again: q.Again}
	if q.Patient {
		ask.Budget = patientBudget
	}
	for _, r := range q.Refs {
		if of, n, err := lk.tab.frames.worldOf(r); err == nil && of == w {
			ask.Refs = append(ask.Refs, n)
		}
	}
	ask.Selectors = append([]page.Selector{}, ask.Selectors...) // [] and not null
	ask.Refs = append([]int{}, ask.Refs...)
	ask.Attributes = append([]string{}, ask.Attributes...)
	if q.Again && w.wasAsked() {
		if g, err := w.glance(ctx, ask); err != nil || !g.Fresh || !lk.listeners(ctx, w) {
			return g, err
		}
	}
	ask.Asked = true
	g, err := lk.glanceAsking(ctx, w, ask)
	if err == nil && lk.shadowed(ctx, w, g.Shadows) && lk.listeners(ctx, w) {
		return w.glance(ctx, ask)
	}
	return g, err
}

// glanceAsking reads a document and queries which of its elements listen.
func (lk *looks) glanceAsking(ctx context.Context, w *world, ask question) (*documentRead, error) {
	if !w.quickToTell() {
		lk.listeners(ctx, w)
		return w.glance(ctx, ask)
	}
	// There is rarely anything new, so the look does not wait for the query and is repeated if it
	// ran too early.
	news := make(chan bool, 1)
	go func() { news <- lk.listeners(ctx, w) }()
	g, err := w.glance(ctx, ask)
	if <-news && err == nil {
		return w.glance(ctx, ask)
	}
	return g, err
}

// glance reads the document once.
func (w *world) glance(ctx context.Context, ask question) (*documentRead, error) {
	g := &documentRead{world: w}
	if err := w.call(ctx, g, "read", ask); err != nil {
		return nil, err
	}
	if g.Error == "selector" {
		return nil, page.ErrSelector
	}
	return g, nil
}

// observation combines the documents: boxes in the viewport of the tab, nodes in overall order.
func (lk *looks) observation(main *world, glances map[*world]*documentRead, q page.Query) (*page.Observation, error) {
	lk.tab.mu.Lock()
	defer lk.tab.mu.Unlock()
	if lk.tab.frames.all[lk.tab.frames.main] == nil || lk.tab.frames.all[lk.tab.frames.main].world != main {
		return nil, errWorld
	}
	g := glances[main]
	o := &page.Observation{
		CapturedAt: millis(g.At), Arrived: time.Now(), Document: lk.tab.loads.document(),
		URL: lk.tab.loads.url, Title: g.Title, Viewport: g.Viewport, Scroll: g.Scroll,
	}
	m := merge{tab: lk.tab, glances: glances, o: o,
		view: page.Box{W: float64(g.Viewport.Width), H: float64(g.Viewport.Height)}}
	m.document(g, documentPlace{scale: 1, clip: m.view, visible: true})
	if len(m.nodes) > q.Limit {
		m.nodes, o.Truncated = m.nodes[:q.Limit], true
	}
	o.Nodes = m.nodes
	o.Digests = page.Digests{Hierarchy: strings.Join(m.hierarchy, "."), Text: strings.Join(m.text, "."),
		State: strings.Join(m.state, ".")}
	if o.Loading == nil && lk.tab.traffic.busy() {
		o.Loading = &page.Loading{Signal: "requests_in_flight", Source: "network"}
	}
	o.Revision = lk.revise(o.Document, o.Digests)
	o.Fingerprint = fingerprint(o.URL, o.Digests)
	return o, nil
}

// revise raises the revision if the page has changed. Reads compare digests, so nothing in the page
// has to watch for changes. mu is held.
func (lk *looks) revise(document string, d page.Digests) int64 {
	if lk.revision == 0 || lk.document != document || lk.digests != d {
		lk.revision++
		lk.document, lk.digests = document, d
	}
	return lk.revision
}

// fingerprint returns a digest of path, structure and text.
func fingerprint(address string, d page.Digests) string {
	path := address
	if u, err := url.Parse(address); err == nil {
		path = u.Path
	}
	return "fp_" + sum(path, d.Hierarchy, d.Text)
}

func millis(ms float64) time.Time {
	if math.IsNaN(ms) || math.Abs(ms) > 1e14 {
		return time.Time{}
	}
	return time.UnixMicro(int64(ms * 1000))
}

// A merge is an observation being assembled. The tab's mu is held.
type merge struct {
	tab     *Tab
	glances map[*world]*documentRead
	o       *page.Observation
	view    page.Box
	nodes   []page.Node
	order   int // counts of what came before: elements, and actionable ones
	ordinal int

	hierarchy, text, state []string
	depth                  int
}

// A documentPlace is the position of a document.
type documentPlace struct {
	x, y, scale float64
	clip        page.Box
	visible     bool
}

// document adds a document and those inside it, each in its frame's place.
func (m *merge) document(g *documentRead, at documentPlace) {
	if m.depth++; m.depth > frameLimit {
		return
	}
	defer func() { m.depth-- }()
	delete(m.glances, g.world)
	m.hierarchy, m.text, m.state = append(m.hierarchy, g.Digests.Hierarchy), append(m.text, g.Digests.Text),
		append(m.state, g.Digests.State)
	m.o.Truncated = m.o.Truncated || g.Cut
	if m.o.Loading == nil && g.Loading != nil &&
		(g.world.frame.id == m.tab.frames.main || g.Loading.Signal != "document_loading") {
		m.o.Loading = g.Loading
	}
	order, ordinal := m.order, m.ordinal // counts at this document's first element
	rest := g.Nodes
	for _, h := range g.Frames {
		f := m.framed(g.world, h.N)
		if f == nil {
			continue
		}
		m.o.Frames = append(m.o.Frames,
			page.Subframe{ID: f.name, Origin: f.origin, Name: cutText(h.Name, 255), ElementID: cutText(h.ID, 255)})
		inner := m.glances[f.world]
		if h.Open || f.world == nil || inner == nil {
			continue
		}
		n := slices.IndexFunc(rest, func(n page.Node) bool { return n.Order > h.Order })
		if n < 0 {
			n = len(rest)
		}
		m.take(g, rest[:n], at, order, ordinal)
		rest = rest[n:]
		m.order, m.ordinal = order+h.Order+1, ordinal+h.Ordinal
		m.document(inner, within(at, h))
		order, ordinal = m.order-h.Order-1, m.ordinal-h.Ordinal
	}
	m.take(g, rest, at, order, ordinal)
	m.order, m.ordinal = order+g.Count, ordinal+g.Ordinals
}

// within returns the place of a document inside a frame.
func within(at documentPlace, h frameElement) documentPlace {
	clip := page.Box{X: at.x + at.scale*h.Clip.X, Y: at.y + at.scale*h.Clip.Y, W: at.scale * h.Clip.W,
		H: at.scale * h.Clip.H}
	return documentPlace{
		x: at.x + at.scale*h.X, y: at.y + at.scale*h.Y, scale: at.scale * h.S,
		clip: meet(at.clip, clip), visible: at.visible && h.Visible && !h.Box.Empty(),
	}
}

// framed returns the frame of a frame element, or nil if it is unknown.
func (m *merge) framed(w *world, n int) *frame {
	for _, f := range m.tab.frames.all {
		if f.owner.world == w && f.owner.number == n {
			return f
		}
	}
	return nil
}

func (m *merge) take(g *documentRead, nodes []page.Node, at documentPlace, order, ordinal int) {
	for _, n := range nodes {
		f := g.world.frame
		if inner, err := strconv.Atoi(n.Frame); err == nil {
			if known := m.framed(g.world, inner); known != nil {
				f = known
			}
		}
		n.Frame, n.Origin = f.name, f.origin
		if f.id == m.tab.frames.main {
			n.Frame = ""
		}
		n.Order += order
		n.Ordinal += ordinal
		g.world.refs(&n)
		if g.world.frame.id != m.tab.frames.main {
			n.Bounds = page.Box{X: at.x + at.scale*n.Bounds.X, Y: at.y + at.scale*n.Bounds.Y, W: at.scale * n.Bounds.W,
				H: at.scale * n.Bounds.H}
			n.Visible = n.Visible && at.visible
			in := meet(n.Bounds, at.clip)
			n.InView = n.Visible && n.InView && !in.Empty() && 2*in.W*in.H >= n.Bounds.W*n.Bounds.H
		}
		m.nodes = append(m.nodes, n)
	}
}

// refs turns the numbers of a node into refs.
func (w *world) refs(n *page.Node) {
	for _, r := range []*page.Ref{&n.Ref, &n.Up, &n.Labels} {
		w.ref(r)
	}
	for i := range n.Options {
		w.ref(&n.Options[i].Ref)
	}
}

func (w *world) ref(r *page.Ref) {
	if *r != "" {
		*r = page.Ref(fmt.Sprintf("%s.%s", w.key, *r))
	}
}

func meet(a, b page.Box) page.Box {
	x, y := max(a.X, b.X), max(a.Y, b.Y)
	return page.Box{X: x, Y: y, W: min(a.X+a.W, b.X+b.W) - x, H: min(a.Y+a.H, b.Y+b.H) - y}
}
