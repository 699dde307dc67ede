package engine

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehost/sluice/host/browser/page"
)

// maxObserved bounds an observed value in results, in bytes.
const maxObserved = 512

// A leafReading is the result of a predicate for one element or the page.
type leafReading struct {
	truth Truth
	value any // nil if there is nothing to show
	note  string
}

// unread is the reading of a property that is not exposed.
var unread = leafReading{note: "state_unavailable"}

func is(holds bool, value any) leafReading {
	if holds {
		return leafReading{truth: True, value: value}
	}
	return leafReading{truth: False, value: value}
}

func (s *Scene) evaluateLeaf(p *Predicate, v *Verdict) {
	v.leaf = &Observed{Kind: p.Kind, Source: SourceOf(p.Kind)}
	var r leafReading
	if of, ok := pageKinds[p.Kind]; ok {
		r = of(s, p)
		v.readable = r.truth != Unreadable
	} else {
		r = s.ofElements(p, v)
	}
	v.Truth, v.leaf.Holds, v.leaf.Detail = r.truth, r.truth == True, r.note
	v.leaf.Value = show(r.value)
}

// show returns a value as JSON that the guest may see.
func show(value any) json.RawMessage {
	if value == nil {
		return nil
	}
	if text, ok := value.(string); ok {
		value = cutText(text, maxObserved)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil // NaN, for example
	}
	return raw
}

// pageKinds are the predicates about the page as a whole.
var pageKinds = map[string]func(*Scene, *Predicate) leafReading{
	"url":         (*Scene).url,
	"title":       func(s *Scene, p *Predicate) leafReading { return text(p, s.Now.Title) },
	"navigation":  (*Scene).navigation,
	"fingerprint": (*Scene).fingerprint,
	"any_change":  (*Scene).anyChange,
	"download":    (*Scene).download,
	"tab":         (*Scene).tab,
}

// url compares the committed address, with its fragment only if the predicate has one.
func (s *Scene) url(p *Predicate) leafReading {
	url := s.Now.URL
	if !strings.Contains(p.Text, "#") {
		url, _, _ = strings.Cut(url, "#")
	}
	return is(p.Compare(url), url)
}

func (s *Scene) navigation(p *Predicate) leafReading {
	if p.SameDocument != nil && *p.SameDocument {
		return is(s.Happened.Moved, s.Happened.Moved)
	}
	return is(len(s.Happened.Loaders) > 0, len(s.Happened.Loaders))
}

func (s *Scene) fingerprint(p *Predicate) leafReading {
	now := s.Now.Fingerprint
	switch {
	case now == "":
		return unread
	case p.ChangedFrom != "":
		if slices.ContainsFunc(ChangeKinds, s.restless) {
			return is(false, now)
		}
		return is(now != p.ChangedFrom, now)
	case p.String == nil:
		return unread
	}
	return is(now == *p.String, now)
}

func (s *Scene) anyChange(p *Predicate) leafReading {
	if s.Before == nil {
		return is(false, nil)
	}
	if s.Now.Digests == (page.Digests{}) || s.Before.Digests == (page.Digests{}) {
		return unread
	}
	for _, c := range Changes(s.Before.Digests, s.Now.Digests) {
		if (len(p.Kinds) == 0 || slices.Contains(p.Kinds, c)) && !s.restless(c) {
			return is(true, c)
		}
	}
	return is(false, nil)
}

// restless reports whether the page changes in this way by itself. After a new document was loaded
// it does not count as restless.
func (s *Scene) restless(kind string) bool {
	return len(s.Happened.Loaders) == 0 && slices.Contains(s.Restless, kind)
}

func (s *Scene) download(p *Predicate) leafReading {
	for _, d := range s.Happened.Downloads {
		if d.Done && !d.Denied && d.Failed == "" && p.Named(d.Name) {
			return is(true, d.Name)
		}
	}
	return is(false, nil)
}

// ofElements evaluates a predicate about elements. Elements that fit the target equally well have
// to agree, since one of them alone proves nothing about the others.
func (s *Scene) ofElements(p *Predicate, v *Verdict) leafReading {
	if p.Kind == "scrolled" && p.Target == nil && s.Self == "" {
		v.readable = true
		return is(s.Before != nil && s.Before.Scroll != s.Now.Scroll, s.Now.Scroll)
	}
	nodes, note := s.meant(p)
	v.leaf.Matched, v.absent = len(nodes), len(nodes) == 0
	for _, n := range nodes {
		v.waves += n.Waves
		v.changed, v.working = v.changed || n.Changed, v.working || n.Working
	}
	if r, ok := presence(p, nodes); ok {
		v.readable = true
		return r
	}
	if len(nodes) == 0 {
		return leafReading{note: note}
	}
	out, ok := leafReading{}, true
	for i, n := range nodes {
		r := s.ofNode(p, n)
		v.readable = v.readable || r.truth != Unreadable
		if i == 0 {
			out = r
		} else if r.truth != out.truth {
			ok = false
		}
	}
	if !ok {
		return leafReading{note: "ambiguous_target"}
	}
	return out
}

// presence evaluates predicates about the matches themselves, for which absence is a readable
// answer. ok is false for other kinds.
func presence(p *Predicate, nodes []*page.Node) (r leafReading, ok bool) {
	wish := p.Bool == nil || *p.Bool
	switch p.Kind {
	case "exists":
		return is((len(nodes) > 0) == wish, len(nodes) > 0), true
	case "visible":
		seen := slices.ContainsFunc(nodes, seen)
		return is(seen == wish, seen), true
	case "count":
		c := cmp.Compare(len(nodes), p.Count)
		return is(p.Op == "eq" && c == 0 || p.Op == "gte" && c >= 0 || p.Op == "lte" && c <= 0, len(nodes)), true
	}
	return r, false
}

func seen(n *page.Node) bool { return n.Visible && !n.Bounds.Empty() }

// byOwner lists the kinds whose property belongs to the control and not to its label.
var byOwner = []string{"value", "text_value", "checked", "expanded", "enabled", "focused", "selected", "files"}

// meant returns the elements that a predicate is about: all matches for kinds that count, otherwise
// the best matches.
func (s *Scene) meant(p *Predicate) (nodes []*page.Node, note string) {
	t := p.Target
	if t == nil {
		if n := s.Now.Node(s.Self); n != nil {
			return []*page.Node{n}, ""
		}
		if t = s.Target; t == nil {
			return nil, "no_target"
		}
	}
	if t.Selector == nil {
		// As long as the node exists it is used even if its name or place changed, since that
		// change may be what is asserted. Actions require all of it to match.
		if r, ok := s.Identity.record(t.ElementID); ok && r.document == s.Now.Document {
			if n := s.Now.Node(r.ref); n != nil {
				return []*page.Node{n}, ""
			}
		}
		f, miss := s.Now.byID(s.Identity, t.ElementID, ResolveOptions{})
		if miss != nil {
			return nil, strings.ToLower(string(miss.Code))
		}
		return []*page.Node{f.Node}, ""
	}
	all := p.Kind == "exists" || p.Kind == "visible" || p.Kind == "count"
	m, miss := s.Now.matches(s.Identity, t.Selector, ResolveOptions{Owner: slices.Contains(byOwner, p.Kind), Hidden: all})
	if miss != nil || len(m.found) == 0 {
		return nil, "element_not_found"
	}
	if i := t.Selector.Index; i != nil {
		slices.SortStableFunc(m.found, inDocument)
		if *i < 0 || *i >= len(m.found) {
			return nil, "element_not_found"
		}
		return []*page.Node{m.found[*i].Node}, ""
	}
	for i, c := range m.found {
		if all || i == 0 || !m.separated && m.found[0].score-c.score <= tie {
			nodes = append(nodes, c.Node)
		}
	}
	return nodes, ""
}

// text evaluates a predicate about one text.
func text(p *Predicate, have string) leafReading { return is(p.Compare(have), tidy(have)) }

// ofNode evaluates a predicate on one element.
func (s *Scene) ofNode(p *Predicate, n *page.Node) leafReading {
	switch p.Kind {
	case "text":
		return text(p, n.Text)
	case "value":
		return valueLeaf(p, n)
	case "text_value":
		return textValue(p, n)
	case "checked":
		return flag(p, n.State.Checked)
	case "expanded":
		return flag(p, n.State.Expanded)
	case "enabled":
		return flag(p, n.State.Enabled)
	case "focused":
		return flag(p, n.State.Focused)
	case "selected":
		return selectedLeaf(p, n)
	case "in_viewport":
		return is(n.InView, n.InView)
	case "hovered":
		return is(n.Hovered, n.Hovered)
	case "scrolled":
		return s.scrolled(n)
	case "attribute":
		have, ok := n.Attributes[p.Attribute]
		return is(ok && p.Compare(have), have)
	case "files":
		return is(slices.Equal(p.Names, n.Files), n.Files)
	}
	return leafReading{note: "unknown_kind"}
}

func flag(p *Predicate, have *bool) leafReading {
	if have == nil {
		return unread
	}
	return is(*have == (p.Bool == nil || *p.Bool), *have)
}

// valueLeaf compares the canonical value, as a number if it is one.
func valueLeaf(p *Predicate, n *page.Node) leafReading {
	if have := n.State.Value; have != nil {
		want, ok := 0.0, p.Number != nil
		if ok {
			want = *p.Number
		} else if p.String != nil {
			f, err := strconv.ParseFloat(strings.TrimSpace(*p.String), 64)
			want, ok = f, err == nil
		}
		return is(ok && math.Abs(*have-want) <= p.Tolerance, hidden(n, *have))
	}
	switch {
	case p.String == nil:
		return unread
	case n.State.Selected != nil:
		return is(n.State.Selected.ID == *p.String, n.State.Selected.ID)
	}
	return textValue(p, n)
}

func textValue(p *Predicate, n *page.Node) leafReading {
	have := n.State.TextValue
	if have == nil || p.String == nil {
		return unread
	}
	return is(lines(*have) == lines(*p.String) || loose(n) && editable(*have) == editable(*p.String) ||
		p.Formatted && formatted(*p.String, *have), hidden(n, *have))
}

// hidden returns a value as it may be shown; values of password fields are not.
func hidden(n *page.Node, value any) any {
	if n.Secret {
		return nil
	}
	return value
}

// lines normalises line breaks to \n, as form controls do internally.
func lines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// loose reports whether n is editable content, which a browser keeps as elements: it adds
// non-breaking spaces and a final line break of its own.
func loose(n *page.Node) bool { return n.Tag != "input" && n.Tag != "textarea" }

func editable(text string) string {
	return strings.TrimSuffix(strings.ReplaceAll(lines(text), "\u00a0", " "), "\n")
}

// selectedLeaf compares the id first, then the label.
func selectedLeaf(p *Predicate, n *page.Node) leafReading {
	if p.Bool != nil {
		return flag(p, n.State.Chosen)
	}
	if p.Names != nil {
		return allChosen(p.Names, n)
	}
	have := n.State.Selected
	if have == nil {
		return unread
	}
	shown := struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	}{cutText(have.ID, maxObserved), cutText(have.Label, maxObserved)}
	switch {
	case p.String != nil:
		return is(have.ID == *p.String || tidy(have.Label) == tidy(*p.String), shown)
	case p.Option == nil:
		return unread
	case p.Option.ID != "" || p.Option.Label == "":
		return is(have.ID == p.Option.ID, shown)
	}
	return is(tidy(have.Label) == tidy(p.Option.Label), shown)
}

// allChosen holds if exactly the options with these ids or labels are chosen.
func allChosen(want []string, n *page.Node) leafReading {
	if len(n.Options) == 0 {
		return unread
	}
	have, same, met := []string{}, true, map[string]bool{}
	for _, o := range n.Options {
		if !o.Selected {
			continue
		}
		have = append(have, cutText(o.Label, maxObserved))
		i := slices.IndexFunc(want, func(w string) bool { return w == o.ID || tidy(w) == tidy(o.Label) })
		if i < 0 {
			same = false
			continue
		}
		met[want[i]] = true
	}
	for _, w := range want {
		same = same && met[w]
	}
	return is(same, have)
}

// tab holds if the page has opened another tab that is still open.
func (s *Scene) tab(*Predicate) leafReading {
	for _, p := range s.Happened.Popups {
		if p.Tab != "" && p.Closed == "" {
			return is(true, p.Tab)
		}
	}
	return is(false, nil)
}

func (s *Scene) scrolled(n *page.Node) leafReading {
	if s.Before == nil {
		return is(false, n.Scroll)
	}
	before := s.Before.Node(n.Ref)
	if before == nil {
		return unread
	}
	return is(before.Scroll != n.Scroll, n.Scroll)
}
