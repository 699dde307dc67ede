package browser

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host/browser/engine"
)

// A mask is a spelling of a sealed value with the handle that replaces it. A whole mask matches
// entire strings only.
type mask struct {
	form   []byte
	handle string
	whole  bool
}

// Length from which a value is searched for within strings, and from which at all.
const (
	withinFrom = 8
	wholeFrom  = 4
)

// withMasks returns the list with the spellings of a value added.
func withMasks(list []mask, handle, value string, forms [][]byte) []mask {
	if len(value) < wholeFrom {
		return list
	}
	all := slices.Clone(list)
	whole := len(value) < withinFrom
	if whole {
		forms = [][]byte{[]byte(value)}
	}
	for _, form := range forms {
		if (whole || len(form) >= withinFrom) &&
			!slices.ContainsFunc(all, func(m mask) bool { return bytes.Equal(m.form, form) }) {
			all = append(all, mask{bytes.Clone(form), handle, whole})
		}
	}
	slices.SortStableFunc(all, func(a, b mask) int { return len(b.form) - len(a.form) })
	return all
}

// hide replaces sealed values in the strings and numbers of a JSON text by handles. The text stays
// valid JSON, whatever the values are.
func (s *seals) hide(text []byte) []byte {
	s.mu.Lock()
	masks := s.masks
	s.mu.Unlock()
	if len(masks.list) == 0 {
		return text
	}
	var out []byte
	from := 0 // start of the part that is not in out yet
	for at := 0; at < len(text); {
		end, meant := token(text, at)
		if end == at {
			at++
			continue
		}
		if hidden, found := masks.conceal(string(meant)); found {
			out = strictjson.AppendQuote(append(out, text[from:at]...), hidden)
			from = end
		}
		at = end
	}
	if from != 0 {
		text = append(out, text[from:]...)
	}
	return s.hidePieces(text)
}

// hidePieces is hide for values that a page spreads over several strings under the same name, and
// for values with white space between their characters.
func (s *seals) hidePieces(text []byte) []byte {
	type span struct{ from, to int }
	at, values := map[string][]span{}, map[string][]string{}
	put, ends := map[int]string{}, map[int]int{} // by the start of a string
	name := ""
	for i := 0; i < len(text); {
		end, meant := token(text, i)
		if end == i {
			i++
			continue
		}
		from := i
		i = end
		if text[from] != '"' {
			continue // numbers in a reply are the host's
		}
		if bytes.HasPrefix(bytes.TrimLeft(text[end:], " \t\r\n"), []byte(":")) {
			name = string(meant)
			continue
		}
		at[name], values[name] = append(at[name], span{from, end}), append(values[name], string(meant))
		if tight := engine.Squeezed(string(meant)); len(tight) != len(bytes.TrimSpace(meant)) {
			if hidden := s.Hide(tight); hidden != tight {
				put[from], ends[from] = hidden, end
			}
		}
	}
	for name, list := range values {
		for i, handle := range engine.Pieces(list, s.Hide) {
			put[at[name][i].from], ends[at[name][i].from] = handle, at[name][i].to
		}
	}
	if len(put) == 0 {
		return text
	}
	var out []byte
	from := 0
	for _, i := range slices.Sorted(maps.Keys(put)) {
		out = strictjson.AppendQuote(append(out, text[from:i]...), put[i])
		from = ends[i]
	}
	return append(out, text[from:]...)
}

// Hide replaces sealed values in a text that is not JSON by handles.
func (s *seals) Hide(text string) string {
	s.mu.Lock()
	masks := s.masks
	s.mu.Unlock()
	if len(masks.list) == 0 {
		return text
	}
	hidden, _ := masks.conceal(text)
	return hidden
}

// token returns the end of the string or number that begins at a position of a JSON text, and its
// value. end equals at if there is neither.
func token(text []byte, at int) (end int, meant []byte) {
	switch c := text[at]; {
	case c == '"':
		for end = at + 1; end < len(text) && text[end] != '"'; end++ {
			if text[end] == '\\' {
				end++
			}
		}
		end = min(end+1, len(text))
		return end, []byte(strictjson.String(text[at:end]))
	case c == '-' || c >= '0' && c <= '9':
		for end = at + 1; end < len(text) && bytes.IndexByte([]byte("0123456789.eE+-"), text[end]) >= 0; end++ {
		}
		return end, text[at:end]
	}
	return at, nil
}

// A masking replaces masks in texts. It is immutable.
type masking struct {
	list   []mask            // longest first
	whole  map[string]string // handles by value
	within *strings.Replacer // longest first; replacements are not searched again
}

func newMasking(list []mask) masking {
	m := masking{list: list, whole: map[string]string{}}
	var pairs []string
	for _, k := range list {
		if k.whole {
			m.whole[string(k.form)] = k.handle
		} else {
			pairs = append(pairs, string(k.form), k.handle)
		}
	}
	m.within = strings.NewReplacer(pairs...)
	return m
}

// conceal replaces the values in one string.
func (m *masking) conceal(text string) (hidden string, found bool) {
	if handle, ok := m.whole[text]; ok {
		return handle, true
	}
	hidden = m.within.Replace(text)
	return hidden, hidden != text
}
