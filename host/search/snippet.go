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

// Limits of what a hit shows.
const (
	maxSnippets = 3
	around      = 60 // bytes before the first match
	maxSnippet  = 200
	maxPath     = 200
	maxDepth    = 64
	maxText     = 1 << 20 // bytes of a record that the index reads
)

// texts calls yield with the texts of a record and their paths until yield returns false.
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

// snippets returns the parts of a record that contain the terms.
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

// A span is the position of a match, in bytes.
type span struct{ start, end int }

// mark returns the text around the first match, or nil if there is none.
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

// spans returns the matches in a text, in order and merged where they overlap.
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

// one adds the positions of a single character in a word of two.
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

// cutAt returns the last boundary between characters at or before n.
func cutAt(text string, n int) int {
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// indexed appends the words of a record as they are indexed. The last character of a run without spaces is also added
// alone, so that it can be found like the others.
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
