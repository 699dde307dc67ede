package engine

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Mask applies hide to everything that a page wrote, before anything is decided by it. Otherwise
// predicates and targets could reveal a sealed value letter by letter once a page shows it. The
// scheme and host of addresses stay, since others check them.
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
	h.texts(&n.ID, &n.TestID, &n.NameAtt, &n.Role, &n.Name, &n.AriaLabel, &n.Label, &n.Placeholder,
		&n.Description, &n.Text)
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

// mostPieces bounds how many values are searched for in one list of texts.
const mostPieces = 64

// shortRun is the length in bytes up to which values are searched for as a whole only, such as a
// code that is shown one character per box.
const shortRun = 16

// Pieces finds values that a page spreads over several texts, down to one character per element. It
// returns, by index, the replacement of each text that has a part of one. White space is ignored.
func Pieces(texts []string, hide func(string) string) map[int]string {
	found := map[int]string{}
	var all strings.Builder
	starts := make([]int, 0, len(texts)+1)
	squeezed := make([]string, len(texts))
	for i, t := range texts {
		squeezed[i] = Squeezed(t)
		starts = append(starts, all.Len())
		all.WriteString(squeezed[i])
	}
	starts = append(starts, all.Len())
	s := all.String()
	for range mostPieces {
		from, to, handle := spread(s, hide)
		if handle == "" {
			break
		}
		first := slices.IndexFunc(starts[1:], func(end int) bool { return end > from })
		// a value within one text is not spread
		for i := first; i < len(texts) && starts[i] < to && starts[first+1] < to; i++ {
			if starts[i+1] > from {
				found[i] = handle
			}
		}
		s = s[:from] + strings.Repeat("\x00", to-from) + s[to:]
	}
	shortPieces(squeezed, hide, found)
	return found
}

// spread returns the position of the first value in a text, and its handle, or "" if there is none.
func spread(s string, hide func(string) string) (from, to int, handle string) {
	has := func(part string) bool { return hide(part) != part }
	if !has(s) {
		return 0, 0, ""
	}
	low, high := 0, len(s) // the shortest prefix with a value
	for low < high {
		if mid := (low + high) / 2; has(s[:mid]) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	to = low
	low, high = 0, to-1 // and the shortest suffix of that
	for low < high {
		if mid := (low + high + 1) / 2; has(s[mid:to]) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low, to, hide(s[low:to])
}

// shortPieces finds short values in consecutive texts of one or two characters.
func shortPieces(texts []string, hide func(string) string, found map[int]string) {
	isShort := func(t string) bool { return utf8.RuneCountInString(t) <= 2 }
	for i, t := range texts {
		if t == "" || !isShort(t) {
			continue
		}
		run := ""
		for j := i; j < len(texts) && found[j] == "" && isShort(texts[j]) && len(run)+len(texts[j]) <= shortRun; j++ {
			run += texts[j]
			if handle := hide(run); j > i && handle != run {
				for k := i; k <= j; k++ {
					found[k] = handle
				}
				break
			}
		}
	}
}

// Squeezed returns a text without white space.
func Squeezed(text string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '\u200b' || c == '\u00ad' {
			return -1
		}
		return c
	}, text)
}

// pieces hides values that are spread over the nodes of an observation: over texts of leaf
// elements, over names, and over adjacent fields.
func (h masker) pieces(nodes []page.Node) {
	around := map[page.Ref]bool{}
	for i := range nodes {
		around[nodes[i].Up] = true
	}
	for _, of := range []func(*page.Node) *string{
		func(n *page.Node) *string {
			if around[n.Ref] {
				return nil
			}
			return &n.Text
		},
		func(n *page.Node) *string { return &n.Name },
		func(n *page.Node) *string { return n.State.RawValue },
		func(n *page.Node) *string { return n.State.TextValue },
	} {
		var texts []*string
		var values []string
		for i := range nodes {
			if t := of(&nodes[i]); t != nil && *t != "" {
				texts, values = append(texts, t), append(values, *t)
			}
		}
		for i, handle := range Pieces(values, h) {
			*texts[i] = handle
		}
	}
	for i := range nodes { // and the texts of the elements around them
		for _, t := range []*string{&nodes[i].Text, &nodes[i].Name} {
			if s := Squeezed(*t); s != *t && h(s) != s {
				*t = h(s)
			}
		}
	}
}
