package engine

import (
	"github.com/sluicehost/sluice/host/browser/action"
	"github.com/sluicehost/sluice/host/browser/observe"
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

// dragged is where a drag begins and where it ends. Both have to be in sight at once:
// where the end is not, it is scrolled to, and the beginning looked at again.
func (a *act) dragged() (from, to page.Point, err error) {
	if by := a.req.Drag.By; by != nil {
		return a.point, page.Point{X: a.point.X + by.X, Y: a.point.Y + by.Y}, nil
	}
	end, err := a.dropPlace()
	if err != nil || end == nil {
		return from, to, err
	}
	if end.InView {
		return a.point, end.Bounds.Center(), nil
	}
	if err := a.tab.ScrollTo(a.ctx, end.Ref, page.Middle, page.Center); err != nil {
		return from, to, err
	}
	r, err := a.tab.Ready(a.ctx, a.found.Node.Ref, a.aim())
	if err != nil {
		return from, to, err
	}
	if a.blocked = r.Fault; r.Fault != "" {
		return from, to, nil
	}
	if end, err = a.dropPlace(); err != nil || end == nil {
		return from, to, err
	}
	if !end.InView {
		a.blocked = "drop_outside_viewport"
	}
	return r.Point, end.Bounds.Center(), nil
}

// dropPlace is the element that the target is dropped on; nil, and blocked, for none.
func (a *act) dropPlace() (*page.Node, error) {
	l, err := a.look([]*action.Target{a.req.Target, a.req.Drag.To}, nil, a.node())
	if err != nil || l == nil {
		return nil, err
	}
	found, miss := l.Resolve(a.opt.Identity, a.req.Drag.To, observe.Options{Verb: action.Hover})
	if miss != nil {
		a.blocked = "no_drop_target"
		return nil, nil
	}
	return found.Node, nil
}
