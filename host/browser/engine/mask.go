package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Mask replaces what hide knows in all that a page wrote, before anything is decided
// by it (B39). Whether a predicate holds, and which element a target means, would
// otherwise tell a guest a sealed value letter by letter once a page shows it. hide is
// for texts; the scheme and host of an address stay, since others judge by them.
func Mask(o *page.Observation, hide func(string) string) {
	h := masker(hide)
	h.texts(&o.Title)
	h.address(&o.URL)
	o.Frames = slices.Clone(o.Frames)
	for i := range o.Frames {
		h.texts(&o.Frames[i].Name, &o.Frames[i].ElementID)
	}
	for i := range o.Nodes {
		h.node(&o.Nodes[i])
	}
	h.pieces(o.Nodes)
}

type masker func(string) string

func (h masker) texts(texts ...*string) {
	for _, t := range texts {
		if *t != "" {
			*t = h(*t)
		}
	}
}

// address hides what follows the host.
func (h masker) address(url *string) {
	from := 0
	if _, rest, ok := strings.Cut(*url, "://"); ok {
		from = len(*url) - len(rest)
		if i := strings.IndexAny(rest, "/?#"); i >= 0 {
			from += i
		} else {
			return
		}
	}
	*url = (*url)[:from] + h((*url)[from:])
}

func (h masker) node(n *page.Node) {
	h.texts(&n.ID, &n.TestID, &n.NameAtt, &n.Role, &n.Name, &n.AriaLabel, &n.Label, &n.Placeholder, &n.Description, &n.Text)
	h.address(&n.URL)
	n.Classes, n.Files = h.list(n.Classes), h.list(n.Files)
	n.Options = slices.Clone(n.Options)
	for i := range n.Options {
		h.texts(&n.Options[i].ID, &n.Options[i].Label)
	}
	n.Attributes = maps.Clone(n.Attributes)
	for name, value := range n.Attributes {
		n.Attributes[name] = h(value)
	}
	n.State.RawValue, n.State.TextValue = h.value(n.State.RawValue), h.value(n.State.TextValue)
	if s := n.State.Selected; s != nil {
		o := *s
		h.texts(&o.ID, &o.Label)
		n.State.Selected = &o
	}
}

func (h masker) list(texts []string) []string {
	texts = slices.Clone(texts)
	for i := range texts {
		h.texts(&texts[i])
	}
	return texts
}

func (h masker) value(text *string) *string {
	if text == nil {
		return nil
	}
	v := *text
	h.texts(&v)
	return &v
}
