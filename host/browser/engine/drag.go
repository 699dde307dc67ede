package engine

import (
	"github.com/sluicehost/sluice/host/browser/page"
)

// dragSteps are the moves of a drag. Pages that sort, and the browser's own drag and
// drop, want more than one to begin, and one more over the end.
const dragSteps = 8

// dragSend presses on the target, moves and releases.
func dragSend(a *act) (page.Delivery, error) {
	from, to, err := a.dragged()
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

// dragged is where a drag begins and where it ends, looked at just before it: both have
// to be in sight at once, and where the end is not, it is scrolled to.
func (a *act) dragged() (from, to page.Point, err error) {
	by := a.req.Drag.By
	for scrolled := false; ; scrolled = true {
		var end *page.Node
		if by == nil {
			if end, err = a.dropPlace(); err != nil || a.blocked != "" {
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

// dropPlace is the element that the target is dropped on; a.blocked says why there is
// none.
func (a *act) dropPlace() (*page.Node, error) {
	for from := a.now(); ; {
		l, err := a.look([]*Target{a.req.Target, a.req.Drag.To}, nil, a.node())
		if err != nil {
			return nil, err
		}
		if l != nil {
			found, miss := l.Resolve(a.opt.Identity, a.req.Drag.To, ResolveOptions{Verb: Hover})
			if miss == nil {
				return found.Node, nil
			}
			a.blocked = "no_drop_target"
			return nil, nil
		}
		if a.now()-from > maxOpening { // a page that does not answer
			a.blocked = "drop_unread"
			return nil, nil
		}
		if err := a.sleep(a.set.Interval); err != nil {
			return nil, err
		}
	}
}
