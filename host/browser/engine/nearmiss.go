package engine

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/sluicehost/sluice/host/browser/page"
)

// nearMiss is the reason of an alternate that was not asked for, and may have been meant.
const nearMiss = "near_miss"

// NearMisses are the elements of a look that a selector which found none may have meant:
// those whose texts differ in punctuation, are longer or shorter, or have a letter or two
// of another kind. They are for whoever reads the failure, and nothing acts on them.
func (l *Look) NearMisses(id *Identity, s *Selector) []Alternate {
	var near []Candidate
	for i := range l.Nodes {
		n := &l.Nodes[i]
		if score := likeness(s, n); n.Visible && score > 0 {
			near = append(near, candidate(n, mark{score, nearMiss, false}))
		}
	}
	slices.SortStableFunc(near, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(len(a.Node.Text), len(b.Node.Text)), a.Node.Order-b.Node.Order)
	})
	return l.resolution(id, 0, "", 0, near, maxAlternates).Alternates
}

// likeness is how much an element is like what a selector says, in thousandths; 0 is
// not at all.
func likeness(s *Selector, n *page.Node) int {
	best := 0
	for _, w := range []struct {
		want string
		have []string
	}{
		{s.Name, []string{n.Name, n.AriaLabel}}, {s.Label, []string{n.Label, n.AriaLabel, n.Name}}, {s.Text, []string{n.Text, n.Name}},
		{s.Placeholder, []string{n.Placeholder}}, {s.TestID, []string{n.TestID}}, {s.ID, []string{n.ID, n.NameAtt}},
		{s.Query, []string{n.Name, n.Text, n.Label, n.Placeholder}},
	} {
		for _, have := range w.have {
			best = max(best, alike(letters(w.want), letters(have)))
		}
	}
	if best > 0 && s.Role != "" && fold(s.Role) != fold(n.Role) {
		best -= 50
	}
	return best
}

// letters are those of a text, and its digits, in one form.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, cutText(text, 60))
}

// alike compares two texts of letters.
func alike(want, have string) int {
	switch {
	case len(want) < 2 || len(have) < 2:
		return 0
	case want == have:
		return 450
	case len(want) > 2 && len(have) < 4*len(want) && strings.Contains(have, want), len(have) > 2 && len(want) < 4*len(have) && strings.Contains(want, have):
		return 350
	case len(want) > 3 && edits([]rune(want), []rune(have)) <= 1+len(want)/6:
		return 300
	}
	return 0
}

// edits is how many letters have to be changed to make b of a.
func edits(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal, row[j+1] = row[j+1], min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
