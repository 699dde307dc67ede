package engine

import (
	"slices"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

const (
	// calm is how long a page has to be as it is before an action, for any change of it to
	// be the action's: a clock with seconds changes within that time.
	calm = 1100 * time.Millisecond
	// restless is how long it is waited for.
	restless = 3 * time.Second
)

// A calmness is since when a document says the same, by the kinds of changes.
type calmness struct {
	document string
	digests  page.Digests
	since    map[string]time.Duration
}

// changes notes what is different from the look before.
func (v *verb) changes(now page.Digests) {
	c := v.calm[v.tab.ID()]
	changed := ChangeKinds
	if document := v.tab.Facts().Document; c == nil || c.document != document {
		c = &calmness{document: document, since: map[string]time.Duration{}}
		v.calm[v.tab.ID()] = c
	} else {
		changed = Changes(c.digests, now)
	}
	for _, kind := range changed {
		c.since[kind] = v.now()
	}
	c.digests = now
}

// uncalm are the kinds in which the page changed a short time ago.
func (v *verb) uncalm() (kinds []string) {
	c := v.calm[v.tab.ID()]
	for _, kind := range ChangeKinds {
		if c == nil || v.now()-c.since[kind] < calm {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// calmed waits until the page stays as it is, before an action that any change would
// prove; it is done once, and says whether it took time. In what goes on changing by itself
// a change proves nothing.
func (a *act) calmed() (waited bool, f *fault) {
	if a.calmly || a.dispatches > 0 || !ByChange(a.delta) {
		return false, nil
	}
	a.calmly = true
	until := min(a.now()+restless, a.latest(a.set))
	for len(a.uncalm()) > 0 && a.now() < until {
		waited = true
		if err := a.sleep(2 * a.set.Interval); err != nil {
			return true, rawFault(err, StageResolve)
		}
		l, err := a.lookFor(a.want([]*Target{a.req.Target}, []*Predicate{a.delta}, a.refs()...))
		if err != nil {
			return true, rawFault(err, StageResolve)
		}
		if l != nil {
			a.seen(l)
		}
	}
	if a.restless = a.uncalm(); len(a.restless) > 0 {
		a.details["changes_by_itself"] = slices.Clone(a.restless)
	}
	return waited, nil
}
