package engine

import "strings"

// tidy trims text and makes one space of all white space.
func tidy(text string) string { return strings.Join(strings.Fields(text), " ") }

// fold is tidy without regard to case: how targets are matched (B16).
func fold(text string) string { return strings.ToLower(tidy(text)) }

// grade is how well one text of an element fits what was asked.
type grade int

const (
	unlike grade = iota
	partly
	wholly
)

// fit compares the texts of an element with a wanted one that is folded already.
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
