package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A site is a page that a test writes: nodes, and what happens when they are used.
// It is a page.Tab whose time is the test's. Faults are put in between by hook.
type site struct {
	page.Tab // what no test uses panics

	mu       sync.Mutex
	nodes    []*page.Node
	on       map[page.Ref]func() // called when a node is clicked, pressed, filled or set
	left     map[page.Ref]func() // called when a node loses the focus
	document string
	url      string
	title    string
	loading  *page.Loading
	revision int64
	digest   page.Digests
	happened page.Happened
	policy   page.DialogPolicy
	dialog   *page.Dialog
	scroll   page.Point
	requests []page.RequestSeen
	console  []page.ConsoleLine

	// hook is asked before each call that reaches the page, by name and count from 1;
	// its error is what the call gives.
	hook  func(name string, n int) error
	calls map[string]int
	sent  int           // dispatches that arrived
	stale time.Duration // by how much a read is too old
	slow  time.Duration // how long a read takes
	deaf  bool          // input arrives nowhere
	turns int           // clicks that are turned away
	ready func(ref page.Ref, r *page.Readiness)
	asked bool // requests or console were looked at

	lost chan struct{}
}

func newSite(nodes ...*page.Node) *site {
	s := &site{on: map[page.Ref]func(){}, left: map[page.Ref]func(){}, document: "d1", url: "https://shop.test/cart",
		revision: 1, calls: map[string]int{}, lost: make(chan struct{})}
	s.add(nodes...)
	return s
}

// add appends nodes, each below the other.
func (s *site) add(nodes ...*page.Node) {
	for _, n := range nodes {
		i := len(s.nodes)
		if n.Ref == "" {
			n.Ref = page.Ref(fmt.Sprintf("n%d", i))
		}
		if n.Bounds == (page.Box{}) {
			n.Bounds = page.Box{X: 10, Y: float64(20 + 40*i), W: 100, H: 20}
		}
		n.Visible, n.InView = true, true
		n.Order, n.Ordinal = i, i
		n.Origin = "https://shop.test"
		s.nodes = append(s.nodes, n)
	}
}

func button(name string) *page.Node {
	return &page.Node{Tag: "button", Role: "button", Name: name, Text: name, Native: true, OwnText: true}
}

func text(id, content string) *page.Node {
	return &page.Node{Tag: "p", TestID: id, Text: content, OwnText: true}
}

func field(label string) *page.Node {
	empty := ""
	return &page.Node{Tag: "input", Type: "text", Role: "textbox", Name: label, Label: label, Native: true, Editable: true,
		State: page.State{TextValue: &empty}}
}

// change does something to the page, and counts it if anything differs.
func (s *site) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// later does it after a time.
func (s *site) later(d time.Duration, f func()) { time.AfterFunc(d, func() { s.change(f) }) }

// Tabs.

func (s *site) Tabs() []page.Tab                       { return []page.Tab{s} }
func (s *site) Activate(context.Context, string) error { return nil }
func (s *site) Lost() <-chan struct{}                  { return s.lost }
func (s *site) ID() string                             { return "tab_1" }
func (s *site) Facts() page.Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return page.Facts{URL: s.url, Host: "shop.test", Document: s.document, Dialog: s.dialog}
}

// call is what every way into the page begins with.
func (s *site) call(ctx context.Context, name string) error {
	s.mu.Lock()
	s.calls[name]++
	n, hook := s.calls[name], s.hook
	s.mu.Unlock()
	select {
	case <-s.lost:
		return page.ErrLost
	default:
	}
	if hook == nil {
		return ctx.Err()
	}
	err := hook(name, n)
	if err == errHang {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", page.ErrHung, ctx.Err())
		case <-s.lost:
			return page.ErrLost
		}
	}
	return err
}

// errHang has a call wait for its context.
var errHang = fmt.Errorf("hang")

func (s *site) Read(ctx context.Context, q page.Query) (*page.Observation, error) {
	if err := s.call(ctx, "read"); err != nil {
		return nil, err
	}
	captured := time.Now()
	s.mu.Lock()
	o := s.observe()
	slow, stale := s.slow, s.stale
	s.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return nil, page.ErrHung
		}
	}
	o.CapturedAt, o.Arrived = captured.Add(-stale), time.Now()
	for i, sel := range q.Selectors {
		for j := range o.Nodes {
			if n := &o.Nodes[j]; sel.CSS == ":focus" && n.State.Focused != nil && *n.State.Focused ||
				sel.CSS != "" && sel.CSS == n.Tag {
				n.Matches = append(n.Matches, i)
			}
		}
	}
	return o, nil
}

// observe is the page as it is; the caller holds mu.
func (s *site) observe() *page.Observation {
	o := &page.Observation{Document: s.document, URL: s.url, Title: s.title,
		Viewport: page.Viewport{Width: 1280, Height: 720}, Scroll: s.scroll, Loading: s.loading}
	var hierarchy, texts, states []any
	for _, n := range s.nodes {
		c := *n
		o.Nodes = append(o.Nodes, c)
		state := c.State
		state.Focused = nil
		hierarchy, texts, states = append(hierarchy, c.Ref, c.Role), append(texts, c.Text), append(states, state)
	}
	o.Digests = page.Digests{Hierarchy: hash(hierarchy), Text: hash(texts), State: hash(states)}
	o.Fingerprint = "fp_" + hash([]any{hierarchy, texts, s.url})
	if o.Digests != s.digest {
		s.digest = o.Digests
		s.revision++
	}
	o.Revision = s.revision
	return o
}

func hash(v any) string {
	raw, _ := json.Marshal(v)
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:6])
}

func (s *site) find(ref page.Ref) *page.Node {
	for _, n := range s.nodes {
		if n.Ref == ref {
			return n
		}
	}
	return nil
}

func (s *site) Ready(ctx context.Context, ref page.Ref, at page.Point) (page.Readiness, error) {
	if err := s.call(ctx, "ready"); err != nil {
		return page.Readiness{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.find(ref)
	if n == nil {
		return page.Readiness{Fault: "detached"}, nil
	}
	b := n.Bounds
	r := page.Readiness{Point: page.Point{X: b.X + at.X*b.W, Y: b.Y + at.Y*b.H}, Node: *n, Owner: ref}
	switch {
	case !n.Visible:
		r.Fault = "not_visible"
	case n.Disabled:
		r.Fault = "disabled"
	case !n.InView:
		r.Fault = "outside_viewport"
	}
	if s.ready != nil {
		s.ready(ref, &r)
	}
	return r, nil
}

func (s *site) ScrollTo(ctx context.Context, ref page.Ref, _ page.Place, _ page.Point) error {
	if err := s.call(ctx, "scrollto"); err != nil {
		return err
	}
	s.change(func() {
		if n := s.find(ref); n != nil {
			n.InView = true
		}
	})
	return nil
}

// use is a dispatch that arrives: ref is what it arrives at.
func (s *site) use(ctx context.Context, name string, ref page.Ref, do func(n *page.Node)) (page.Delivery, error) {
	err := s.call(ctx, name)
	if err != nil && !isSent(err) {
		return page.Delivery{Trusted: -1}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.deaf {
		return page.Delivery{Sent: true}, nil
	}
	s.sent++
	if n := s.find(ref); n != nil && do != nil {
		do(n)
	}
	if f := s.on[ref]; f != nil {
		f()
	}
	return page.Delivery{Sent: true, Trusted: 3}, err
}

// A sentError is a fault after the page got what was sent.
type sentError struct{ error }

func (e sentError) Unwrap() error { return e.error }

func isSent(err error) bool { _, ok := err.(sentError); return ok }

func (s *site) under(at page.Point) page.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range slices.Backward(s.nodes) {
		b := n.Bounds
		if at.X >= b.X && at.X < b.X+b.W && at.Y >= b.Y && at.Y < b.Y+b.H {
			return n.Ref
		}
	}
	return ""
}

func (s *site) Click(ctx context.Context, c page.Click) (page.Delivery, error) {
	if s.turns > 0 && c.Aimed {
		s.turns--
		return page.Delivery{Sent: true, Turned: true}, s.call(ctx, "turned")
	}
	return s.use(ctx, "click", s.under(c.At), nil)
}

func (s *site) Hover(ctx context.Context, at page.Point) (page.Delivery, error) {
	return s.use(ctx, "hover", s.under(at), func(n *page.Node) { n.Hovered = true })
}

func (s *site) Drag(ctx context.Context, path []page.Point) (page.Delivery, error) {
	return s.use(ctx, "drag", s.under(path[0]), nil)
}

func (s *site) Fill(ctx context.Context, ref page.Ref, text string) (page.Delivery, error) {
	return s.use(ctx, "fill", ref, func(n *page.Node) { n.State.TextValue = &text })
}

func (s *site) Enter(ctx context.Context, ref page.Ref, text string) (page.Delivery, error) {
	return s.use(ctx, "enter", ref, func(n *page.Node) { n.State.TextValue = &text })
}

func (s *site) Keys(ctx context.Context, ref page.Ref, text string, _ bool) (page.Delivery, error) {
	return s.use(ctx, "keys", ref, func(n *page.Node) { n.State.TextValue = &text })
}

func (s *site) Press(ctx context.Context, ref page.Ref, chord string, count int) (page.Delivery, error) {
	if chord == "Nonsense" {
		return page.Delivery{}, page.ErrKey
	}
	return s.use(ctx, "press", ref, func(n *page.Node) { n.Description = fmt.Sprint(chord, "*", count) })
}

func (s *site) Set(ctx context.Context, ref page.Ref, set page.Setting) (page.Delivery, error) {
	return s.use(ctx, "set", ref, func(n *page.Node) {
		switch {
		case set.Index != nil:
			o := n.Options[*set.Index]
			n.State.Selected = &page.Option{ID: o.ID, Label: o.Label}
		case set.Number != nil:
			v := *set.Number
			n.State.Value = &v
		}
	})
}

func (s *site) Leave(ctx context.Context, ref page.Ref) error {
	if err := s.call(ctx, "leave"); err != nil {
		return err
	}
	if f := s.left[ref]; f != nil {
		s.change(f)
	}
	return nil
}

func (s *site) Scroll(ctx context.Context, ref page.Ref, dx, dy float64) (page.Point, page.Delivery, error) {
	before := s.scroll
	d, err := s.use(ctx, "scroll", ref, nil)
	if f := s.on["scroll"]; f != nil {
		s.change(f)
	}
	return page.Point{X: s.scroll.X - before.X, Y: s.scroll.Y - before.Y}, d, err
}

func (s *site) Files(ctx context.Context, ref page.Ref, paths []string) (page.Delivery, error) {
	return s.use(ctx, "files", ref, func(n *page.Node) { n.Files = []string{"a.pdf"} })
}

func (s *site) Choose(ctx context.Context, c page.Click, paths []string) (page.Delivery, error) {
	return s.use(ctx, "choose", "", nil)
}

func (s *site) Login(ctx context.Context, origin, username, password string) (func(), error) {
	s.call(ctx, "login "+origin+" "+username+" "+password)
	return func() { s.call(context.Background(), "logout") }, nil
}

func (s *site) Navigate(ctx context.Context, url, until string) (page.Navigation, error) {
	_, err := s.use(ctx, "navigate", "navigate", nil)
	if err == nil {
		s.change(func() {
			s.url, s.document = url, s.document+"+"
			s.happened.Loaders = append(s.happened.Loaders, s.document)
		})
	}
	return page.Navigation{Host: "shop.test", Status: 200}, err
}

func (s *site) Mark() page.Mark { return 1 }

func (s *site) Happened(page.Mark) page.Happened {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.happened
}

func (s *site) OnDialog(p page.DialogPolicy, _ *string) { s.policy = p }

func (s *site) Requests(page.Mark) []page.RequestSeen {
	s.asked = true
	return s.requests
}

func (s *site) Console(int) []page.ConsoleLine {
	s.asked = true
	return s.console
}

func (s *site) Screenshot(_ context.Context, shot page.Shot) (page.Picture, error) {
	if shot.Format == "png" {
		return page.Picture{}, page.ErrTooLarge
	}
	if shot.Full {
		return page.Picture{}, fmt.Errorf("%w: with 0 width", page.ErrUndrawn)
	}
	return page.Picture{MIME: "image/jpeg", Width: len(shot.Cover), Data: make([]byte, 1000)}, nil
}

func (s *site) Extract(_ context.Context, items []page.Item) (page.Extracted, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := page.Extracted{Items: map[string][]json.RawMessage{}, Observation: s.observe()}
	for _, i := range items {
		for _, ref := range i.Refs {
			if n := s.find(ref); n != nil {
				raw, _ := json.Marshal(n.Text)
				if n.State.TextValue != nil {
					raw, _ = json.Marshal(*n.State.TextValue)
				}
				out.Items[i.Name] = append(out.Items[i.Name], raw)
			}
		}
	}
	return out, nil
}
