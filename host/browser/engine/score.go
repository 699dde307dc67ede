package engine

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A mark is the score of a match with its reason; reason "" means no match. Scores are in
// thousandths, so that they compare exactly.
type mark struct {
	score  int
	reason string
	text   bool // a text matched, which all containers of the element have too
}

func (m mark) or(o mark) mark {
	if o.score > m.score {
		return o
	}
	return m
}

// The scores, from the surest match to the weakest.
var (
	exactText      = mark{1000, "exact_text_match", true}
	exactLabel     = mark{950, "exact_label_match", false}
	exactID        = mark{920, "exact_id_match", false}
	cssUnique      = mark{900, "css_unique", false}
	partialID      = mark{700, "partial_id_match", false}
	partialText    = mark{600, "partial_text_match", true}
	semanticAction = mark{600, "semantic_action_match", false}
	partialLabel   = mark{550, "partial_label_match", false}
	semanticRole   = mark{500, "semantic_role_match", false}
	semanticKind   = mark{450, "semantic_control_match", false}
	tagMatch       = mark{300, "tag_match", false}
)

const (
	bonusInteractable = 50
	bonusPromoted     = 20
	// tie is the largest difference at which two scores count as equal.
	tie = 50
)

// byText scores a structured member that matches as a whole or, unless exact, in part.
func byText(want string, exact bool, whole, part mark, texts ...string) (mark, bool) {
	switch fit(fold(want), texts...) {
	case wholly:
		return whole, true
	case partly:
		if !exact {
			return part, true
		}
	}
	return mark{}, false
}

// structured scores an element under the members of a selector other than query. All have to match;
// the best one counts.
func (l *Look) structured(n *page.Node, s *Selector, exact bool) (mark, bool) {
	best := mark{}
	for _, m := range []struct {
		want        string
		whole, part mark
		texts       []string
	}{
		{s.TestID, exactID, partialID, []string{n.TestID}},
		{s.ID, exactID, partialID, []string{n.ID}},
		{s.Name, mark{1000, exactText.reason, false}, mark{600, partialText.reason, false}, []string{n.Name}},
		{s.Label, exactLabel, partialLabel, []string{n.AriaLabel, n.Label}},
		{s.Text, exactText, partialText, []string{n.Text}},
		{s.Placeholder, exactLabel, partialLabel, []string{n.Placeholder}},
	} {
		if m.want == "" {
			continue
		}
		got, ok := byText(m.want, exact, m.whole, m.part, m.texts...)
		if !ok {
			return mark{}, false
		}
		best = best.or(got)
	}
	if s.Role != "" {
		if fold(s.Role) != fold(n.Role) {
			return mark{}, false
		}
		best = best.or(semanticRole)
	}
	if s.CSS != "" {
		if !l.css(n, s.CSS) {
			return mark{}, false
		}
		best = best.or(tagMatch) // css_unique once it is known to be
	}
	return best, best.reason != ""
}

// free scores an element under free text by the highest row that applies. Rows below 0.95 are tried
// only if none above matches.
func (l *Look) free(n *page.Node, q string, exact bool) mark {
	want := fold(q)
	labels := []string{n.AriaLabel, n.Label, n.Placeholder, n.Description}
	ids := []string{n.ID, n.TestID, n.NameAtt}
	name, label, id := fit(want, n.Name, n.Text), fit(want, labels...), fit(want, ids...)
	switch {
	case name == wholly:
		return exactText
	case label == wholly:
		return exactLabel
	case id == wholly:
		return exactID
	}
	best := mark{}
	if !exact {
		for _, m := range []struct {
			on bool
			is mark
		}{
			{id == partly, partialID}, {name == partly, partialText}, {label == partly, partialLabel},
			{want == n.Tag || slices.ContainsFunc(n.Classes, func(c string) bool { return fold(c) == want }), tagMatch},
		} {
			if m.on {
				best = best.or(m.is)
			}
		}
	}
	return best.or(l.meaning(n, want, exact, best.reason != ""))
}

// adjustWords are words for controls in general.
var adjustWords = []string{"slider", "stepper", "dropdown", "segment", "control", "adjust"}

// meaning scores an element for what it is rather than for what it says.
func (l *Look) meaning(n *page.Node, want string, exact, scored bool) mark {
	best := mark{}
	sem := l.Semantic(n)
	role := fold(n.Role)
	if role != "" && (role == want || !exact && slices.Contains(strings.Fields(want), role)) {
		best = semanticRole
	}
	if sem == nil || sem.Role == "" {
		return best
	}
	if sem.Role == strings.ReplaceAll(want, " ", "_") {
		best = best.or(semanticRole)
	}
	for _, a := range sem.Actions {
		if a == want || !exact && len(want) >= 3 && strings.Contains(a, want) {
			m := semanticAction
			if scored || best.reason != "" {
				m.score = 650
			}
			best = best.or(m)
		}
	}
	if !exact && sem.Adjustable != nil && *sem.Adjustable &&
		slices.ContainsFunc(adjustWords, func(w string) bool { return strings.Contains(want, w) }) {
		best = best.or(semanticKind)
	}
	return best
}

// tidy trims text and collapses white space.
func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }

// fold is tidy in lower case, the form in which targets are matched.
func fold(text string) string { return strings.ToLower(tidy(text)) }

// A grade is how well one text of an element matches.
type grade int

const (
	unlike grade = iota
	partly
	wholly
)

// fit compares the texts of an element with a wanted text that is folded already.
func fit(want string, texts ...string) grade {
	best := unlike
	for _, t := range texts {
		if t == "" || want == "" {
			continue
		}
		switch t = fold(t); {
		case t == want:
			return wholly
		case strings.Contains(t, want):
			best = partly
		}
	}
	return best
}

var (
	decimal = lazily(`^[+-]?[0-9][0-9,]*(\.[0-9]*)?$|^[+-]?\.[0-9]+$`)
	grouped = lazily(`^[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?$`)
)

// formatted reports whether have is typed as a field formats it: without surrounding space, as the
// same number, or with separators, as in a telephone number. A change of case is a different text.
// Nothing typed may be missing, and a number has to stay the same number.
func formatted(typed, have string) bool {
	typed, have = tidy(typed), tidy(have)
	if typed == "" || have == "" {
		return typed == have
	}
	if typed == have {
		return true
	}
	if decimal().MatchString(typed) && decimal().MatchString(have) {
		a, aok := numeric(typed)
		b, bok := numeric(have)
		return aok && bok && a == b
	}
	return spaced(typed, have)
}

func numeric(text string) (float64, bool) {
	if strings.Contains(text, ",") && !grouped().MatchString(text) {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	return f, err == nil
}

// spaced reports whether have is typed with separators inserted, none of which is a letter or a
// digit or makes a number negative.
func spaced(typed, have string) bool {
	rest := []rune(strings.ReplaceAll(typed, " ", ""))
	for i, r := range have {
		switch {
		case len(rest) > 0 && r == rest[0]:
			rest = rest[1:]
		case unicode.IsLetter(r), unicode.IsDigit(r), i == 0 && (r == '-' || r == '\u2212'):
			return false
		}
	}
	return len(rest) == 0
}
