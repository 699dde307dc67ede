package engine

import (
	"cmp"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// dragSteps is the number of moves of a drag. Sortable lists and the browser's own drag and drop
// need more than one to begin, and one more over the end.
const dragSteps = 8

// dragSend presses on the target, moves and releases.
func dragSend(a *act) (page.Delivery, error) {
	from, to, err := dragEnds(a)
	if err != nil || a.blocked != "" {
		return page.Delivery{Trusted: -1}, err
	}
	path := []page.Point{from}
	for i := 1; i <= dragSteps; i++ {
		part := float64(i) / dragSteps
		path = append(path, page.Point{X: from.X + (to.X-from.X)*part, Y: from.Y + (to.Y-from.Y)*part})
	}
	a.point = from
	a.details["dropped_at"] = to
	return a.delivered(a.tab.Drag(a.ctx, append(path, to)))
}

// dragEnds returns where a drag begins and ends, read just before it. Both have to be in view at
// once; the end is scrolled to if it is not.
func dragEnds(a *act) (from, to page.Point, err error) {
	by := a.req.Drag.By
	for scrolled := false; ; scrolled = true {
		var end *page.Node
		if by == nil {
			if end, err = dropPlace(a); err != nil || a.blocked != "" {
				return from, to, err
			}
		}
		r, err := a.tab.Ready(a.ctx, a.found.Node.Ref, a.aim())
		if a.blocked = r.Fault; err != nil || r.Fault != "" {
			return from, to, err
		}
		switch {
		case by != nil:
			return r.Point, page.Point{X: r.Point.X + by.X, Y: r.Point.Y + by.Y}, nil
		case end.InView:
			return r.Point, end.Bounds.Center(), nil
		case scrolled:
			a.blocked = "drop_outside_viewport"
			return from, to, nil
		}
		if err := a.tab.ScrollTo(a.ctx, end.Ref, page.Middle, page.Center); err != nil {
			return from, to, err
		}
	}
}

// dropPlace returns the element to drop the target on. If there is none, a.blocked says why.
func dropPlace(a *act) (place *page.Node, err error) {
	read, err := a.watch(maxOpening, []*Target{a.req.Target, a.req.Drag.To}, func(l *Look) bool {
		found, miss := l.Resolve(a.opt.Identity, a.req.Drag.To, ResolveOptions{Verb: Hover})
		if miss == nil {
			place = found.Node
		} else {
			a.blocked = "no_drop_target"
		}
		return true
	})
	if err == nil && !read { // the page did not answer
		a.blocked = "drop_unread"
	}
	return place, err
}

// scrolling is the progress of a scroll.
type scrolling struct {
	steps     int
	unchanged bool // the last step moved nothing
}

// scrollSend brings the target into view, or scrolls one step.
func scrollSend(a *act) (page.Delivery, error) {
	w, _ := a.work.(scrolling)
	defer func() { a.work = w }()
	if a.req.Target == nil {
		dx, dy := direction(a.req.Scroll)
		moved, d, err := a.tab.Scroll(a.ctx, scrollBox(a), dx, dy)
		w.steps++
		w.unchanged = err == nil && moved == page.Point{}
		d.Trusted = -1
		return d, err
	}
	all := page.Delivery{Trusted: -1}
	for a.found == nil && w.steps < max(a.req.Scroll.Max, 1) {
		more, err := scrollOn(a, &w, &all)
		if err != nil || !more {
			return all, err
		}
	}
	if a.found == nil {
		return all, nil
	}
	err := a.tab.ScrollTo(a.ctx, a.node(), page.Middle, page.Center)
	w.steps++
	all.Sent = all.Sent || err == nil || !unsent(err)
	return all, err
}

// scrollOn scrolls what may contain the target and looks for it there, since rows may be created
// only when they come into view. It reports false at the end.
func scrollOn(a *act, w *scrolling, all *page.Delivery) (bool, error) {
	_, dy := direction(a.req.Scroll)
	dy = cmp.Or(dy, amount(a.req.Scroll))
	before := a.proof.digests()
	moved, d, err := a.tab.Scroll(a.ctx, scrollBox(a), 0, dy)
	w.steps++
	all.Sent = all.Sent || d.Sent
	if err != nil {
		return false, err
	}
	came := a.now()
	for tries := 0; tries < 3 || waitForGrowth(a, moved, came, before); tries++ { // a row may need a moment to be created
		l, err := a.look([]*Target{a.req.Target, a.req.Scroll.Within}, []*Predicate{a.delta})
		if err != nil {
			return false, err
		}
		if l != nil {
			a.proof.seen(l)
			if a.find(l) == nil {
				return true, nil
			}
		}
		if err := a.sleep(a.set.Interval); err != nil {
			return false, err
		}
	}
	w.unchanged = moved == page.Point{} && before == a.proof.digests()
	return !w.unchanged, nil
}

// maxGrowing is how long a list that is scrolled to its end is given to grow.
const maxGrowing = 3 * time.Second

// waitForGrowth reports whether a list that did not move may still grow, as one that asks its
// server once its end is visible.
func waitForGrowth(a *act, moved page.Point, came time.Duration, before page.Digests) bool {
	return moved == page.Point{} && before == a.proof.digests() && a.now()-came < maxGrowing
}

// scrollBox returns the element to scroll, or "" for the page.
func scrollBox(a *act) page.Ref {
	if a.req.Scroll.Within == nil || a.before == nil {
		return ""
	}
	if f, _ := a.before.Resolve(a.opt.Identity, a.req.Scroll.Within, ResolveOptions{}); f != nil {
		return f.Node.Ref
	}
	return ""
}

func amount(s ScrollArgs) float64 { return cmp.Or(s.Amount, 0.7) }

func direction(s ScrollArgs) (dx, dy float64) {
	switch s.Direction {
	case "up":
		return 0, -amount(s)
	case "down":
		return 0, amount(s)
	case "left":
		return -amount(s), 0
	case "right":
		return amount(s), 0
	}
	return 0, 0
}

func scrollTell(a *act) {
	w, _ := a.work.(scrolling)
	a.details["scrolls_performed"] = w.steps
	a.details["in_viewport"] = a.res.Success && a.req.Target != nil
	if n := a.current(); n != nil {
		a.details["in_viewport"] = n.InView
	}
}
