package engine

import (
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// Kinds of change in a page (B113, B153).
const (
	HierarchyDiff = "hierarchy_diff"
	TextChange    = "text_change"
	StateChange   = "state_change"
)

// ChangeKinds are all kinds, the widest first.
var ChangeKinds = []string{HierarchyDiff, TextChange, StateChange}

// ByChange reports a predicate that any change of the page could make true.
func ByChange(p *Predicate) bool {
	return p != nil && (p.Kind == "any_change" || p.Kind == "fingerprint" && p.ChangedFrom != "" ||
		slices.ContainsFunc(p.Of, func(of Predicate) bool { return ByChange(&of) }))
}

// Changes are the kinds in which two reads differ, the widest first.
func Changes(before, now page.Digests) []string {
	var out []string
	if before.Hierarchy != now.Hierarchy {
		out = append(out, HierarchyDiff)
	}
	if before.Text != now.Text {
		out = append(out, TextChange)
	}
	if before.State != now.State {
		out = append(out, StateChange)
	}
	return out
}

// maxRevisions keep their digests (B113).
const maxRevisions = 16

// A History has the digests of the last revisions of a tab. The zero History is
// empty. It is not for use by several goroutines.
type History struct {
	seen []revision
}

type revision struct {
	number  int64
	digests page.Digests
}

// Add notes what a read saw; a revision that is there already keeps its first digests.
func (h *History) Add(o *page.Observation) {
	if n := len(h.seen); n > 0 && h.seen[n-1].number >= o.Revision {
		return
	}
	h.seen = append(h.seen, revision{o.Revision, o.Digests})
	if len(h.seen) > maxRevisions {
		h.seen = h.seen[1:]
	}
}

// At are the digests of a revision; false when they are forgotten.
func (h *History) At(number int64) (page.Digests, bool) {
	for _, r := range h.seen {
		if r.number == number {
			return r.digests, true
		}
	}
	return page.Digests{}, false
}

// A Settling waits for a change that stays: the digests differ from Baseline in the
// wanted way and have been equal for Stable (B153).
type Settling struct {
	Baseline page.Digests
	Kind     string // "": any
	Stable   time.Duration

	last  page.Digests
	since time.Time
}

// Take looks at one more read, made at a time. It returns the kind of change once
// one has settled.
func (s *Settling) Take(d page.Digests, at time.Time) (kind string, settled bool) {
	if s.since.IsZero() || d != s.last {
		s.last, s.since = d, at
	}
	for _, k := range Changes(s.Baseline, d) {
		if s.Kind == "" || s.Kind == k {
			return k, at.Sub(s.since) >= s.Stable
		}
	}
	return "", false
}

// A Turning waits for another page: its fingerprint differs from Previous in two
// reads that follow each other; reads without one are passed over (B148).
type Turning struct {
	Previous string

	Last  string // the last fingerprint that was read
	count int
}

// Take looks at one more read and reports whether the page has changed.
func (t *Turning) Take(fingerprint string) bool {
	switch fingerprint {
	case "":
		return false
	case t.Previous:
		t.count = 0
	default:
		t.count++
	}
	t.Last = fingerprint
	return t.count >= 2
}
