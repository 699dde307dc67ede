package search

import (
	"strings"
	"unicode"

	"github.com/sluicehost/sluice/host"
)

// Limits of a search query.
const (
	maxWords   = 1000 // bytes
	maxPhrases = 20
	maxPhrase  = 32 // words
	minPrefix  = 3  // letters; the index has prefixes of this length
)

// A phrase is a sequence of adjacent words. If prefix is true, the last one is only the beginning of a word.
type phrase struct {
	words  []string
	prefix bool
	single bool // a single character of a script without spaces
}

// terms is a parsed query.
type terms struct {
	want, without []phrase
}

// parse parses a user's query. Everything except letters and digits only separates words, so no text has a special
// meaning for SQLite.
func parse(text string) (terms, error) {
	var t terms
	if len(text) > maxWords {
		return t, host.Invalid("q", "length", "want at most %d bytes", maxWords)
	}
	text = canonical(text)
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		rest, not := strings.CutPrefix(text, "-")
		var atom string
		if quoted, ok := strings.CutPrefix(rest, `"`); ok {
			atom, text, _ = strings.Cut(quoted, `"`)
		} else if i := strings.IndexFunc(rest, func(r rune) bool { return r == '"' || unicode.IsSpace(r) }); i >= 0 {
			atom, text = rest[:i], rest[i:]
		} else {
			atom, text = rest, ""
		}
		begins := strings.HasSuffix(atom, "*")
		if star, ok := strings.CutPrefix(text, "*"); ok {
			begins, text = true, star
		}
		for _, p := range phrases(atom, begins) {
			if len(p.words) > maxPhrase {
				return t, host.Invalid("q", "length", "want phrases of at most %d words", maxPhrase)
			}
			if not {
				t.without = append(t.without, p)
			} else {
				t.want = append(t.want, p)
			}
		}
	}
	switch {
	case len(t.want)+len(t.without) > maxPhrases:
		return t, host.Invalid("q", "length", "want at most %d words and phrases", maxPhrases)
	case len(t.want) == 0:
		return t, host.Invalid("q", "required", "want a word to look for")
	}
	return t, nil
}

// phrases returns the phrases in a piece of a query. A run without spaces is a phrase of its own.
func phrases(atom string, begins bool) (out []phrase) {
	var p phrase
	end := func() {
		if len(p.words) > 0 {
			out = append(out, p)
		}
		p = phrase{}
	}
	sparse := false
	for w := range words(atom) {
		if w.dense == sparse && len(p.words) > 0 {
			end()
		}
		sparse = !w.dense
		p.words = append(p.words, w.text)
		if w.dense && w.last {
			p.single = len([]rune(w.text)) == 1
			p.prefix = p.single
			end()
		}
	}
	if begins && sparse && len(p.words) > 0 {
		p.prefix = len([]rune(p.words[len(p.words)-1])) >= minPrefix
	}
	end()
	return out
}

// String returns the phrase in the syntax of FTS5. Words contain only letters and digits.
func (p phrase) String() string {
	s := `"` + strings.Join(p.words, " ") + `"`
	if p.prefix {
		s += "*"
	}
	return s
}

// match returns the query for FTS5.
func (t terms) match() string {
	s := all(t.want)
	for _, p := range t.without {
		s = "(" + s + ") NOT " + p.String()
	}
	return s
}

func all(ps []phrase) string {
	var out []string
	for _, p := range ps {
		out = append(out, p.String())
	}
	return strings.Join(out, " AND ")
}

// at returns the length in words of the phrase if text begins with it, otherwise 0.
func (p phrase) at(text []word) int {
	if len(text) < len(p.words) || p.single {
		return 0
	}
	for i, w := range p.words {
		if text[i].text != w && (!p.prefix || i < len(p.words)-1 || !strings.HasPrefix(text[i].text, w)) {
			return 0
		}
	}
	return len(p.words)
}

// longest returns the length in words of the longest phrase with which text begins.
func (t terms) longest(text []word) (n int) {
	for _, p := range t.want {
		n = max(n, p.at(text))
	}
	return n
}
