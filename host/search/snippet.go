package search

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/abi/strictjson"
	"github.com/sluicehost/sluice/host"
)

// How much a hit shows.
const (
	maxSnippets = 3
	around      = 60 // bytes before the first match
	maxSnippet  = 200
	maxPath     = 200
	maxDepth    = 64
	maxText     = 1 << 20 // bytes of a record that the index reads
)

// texts yields the texts of a record with their paths, until yield returns false.
func texts(data []byte, yield func(path, text string) bool) {
	walk("", strictjson.ValueOf(data), 0, yield)
}

func walk(path string, v strictjson.Value, depth int, yield func(path, text string) bool) bool {
	switch {
	case depth > maxDepth:
	case v.Is(strictjson.KindString):
		text, _ := v.Text()
		return yield(path, text)
	case v.Is(strictjson.KindObject):
		for name, inner := range v.Members() {
			if path != "" {
				name = path + "." + name
			}
			if !walk(name, inner, depth+1, yield) {
				return false
			}
		}
	case v.Is(strictjson.KindArray):
		i := 0
		for inner := range v.Items() {
			if !walk(path+"["+strconv.Itoa(i)+"]", inner, depth+1, yield) {
				return false
			}
			i++
		}
	}
	return true
}

// snippets are the parts of a record in which the terms are.
func (t terms) snippets(data []byte) []host.Snippet {
	out := []host.Snippet{}
	left := maxText
	texts(data, func(path, text string) bool {
		text = canonical(abi.Cut(text, left))
		left -= len(text)
		if parts := t.mark(text); parts != nil {
			out = append(out, host.Snippet{Field: abi.Cut(abi.Clean(path), maxPath), Parts: parts})
		}
		return left > 0 && len(out) < maxSnippets
	})
	return out
}

// A span is a match, in bytes.
type span struct{ start, end int }

// mark cuts a text around its first match; nil is without one.
func (t terms) mark(text string) (parts []host.SnippetPart) {
	spans := t.spans(text)
	if len(spans) == 0 {
		return nil
	}
	from := cutAt(text, max(0, spans[0].start-around))
	to := cutAt(text, min(len(text), max(from+maxSnippet, spans[0].end)))
	if to-from > 2*maxSnippet {
		to = cutAt(text, from+2*maxSnippet)
	}
	add := func(s string, match bool) {
		if s = abi.Clean(s); s != "" {
			parts = append(parts, host.SnippetPart{Text: s, Match: match})
		}
	}
	if from > 0 {
		add("…", false)
	}
	at := from
	for _, s := range spans {
		if s.start >= to {
			break
		}
		add(text[at:s.start], false)
		add(text[s.start:min(s.end, to)], true)
		at = min(s.end, to)
	}
	add(text[at:to], false)
	if to < len(text) {
		add("…", false)
	}
	return parts
}

// spans are the matches of a text, apart from each other and in order.
func (t terms) spans(text string) (out []span) {
	add := func(s span) {
		if last := len(out) - 1; last >= 0 && s.start <= out[last].end {
			out[last].end = max(out[last].end, s.end)
			return
		}
		out = append(out, s)
	}
	all := slices.Collect(words(text))
	for i, w := range all {
		if n := t.longest(all[i:]); n > 0 {
			add(span{w.start, all[i+n-1].end})
		}
		for _, p := range t.want {
			if p.single && w.dense {
				t.one(p.words[0], w, text, add)
			}
		}
		if len(out) > 0 && w.start-out[0].start > 2*maxSnippet {
			break
		}
	}
	return out
}

// one adds where a character stands in a word of two.
func (t terms) one(char string, w word, text string, add func(span)) {
	if strings.HasPrefix(w.text, char) {
		_, size := utf8.DecodeRuneInString(text[w.start:])
		add(span{w.start, w.start + size})
	}
	if w.last && strings.HasSuffix(w.text, char) {
		_, size := utf8.DecodeLastRuneInString(text[:w.end])
		add(span{w.end - size, w.end})
	}
}

// cutAt is the next place at or before n that is between two characters.
func cutAt(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// indexed appends the text of a record as the index has it. The last character of a run
// without spaces is there alone too, so that it is found as the others are.
func indexed(to *strings.Builder, data []byte) {
	left := maxText
	texts(data, func(_, text string) bool {
		text = canonical(abi.Cut(text, left))
		left -= len(text)
		for w := range words(text) {
			to.WriteString(w.text)
			to.WriteByte(' ')
			if w.last && utf8.RuneCountInString(w.text) > 1 {
				_, size := utf8.DecodeLastRuneInString(w.text)
				to.WriteString(w.text[len(w.text)-size:])
				to.WriteByte(' ')
			}
		}
		return left > 0
	})
}
