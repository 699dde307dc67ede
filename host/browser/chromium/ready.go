package chromium

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// aiming makes nodes reachable for input and checks whether they are.
type aiming struct{ tab *Tab }

// A framePassage is what the function through returns: whether a point inside a frame can be
// reached from the surrounding document, and where the frame is.
type framePassage struct {
	Fault string     `json:"fault"`
	By    string     `json:"by"`
	Point page.Point `json:"point"`
	X     float64    `json:"x"`
	Y     float64    `json:"y"`
	S     float64    `json:"s"`
}

// Ready runs the checks before an input on a node, with one call in its document and one in each
// document around it that cannot access it. It reads the box again in an animation frame, unless an
// earlier read saw the same box at least a frame before, so it costs no needless frame. Whether the
// node may be read-only is for the caller to decide: Node.ReadOnly.
func (a *aiming) Ready(ctx context.Context, node page.Ref, at page.Point) (page.Readiness, error) {
	w, n, err := a.tab.frames.worldOf(node)
	if err != nil {
		return page.Readiness{Fault: "detached"}, nil
	}
	var r page.Readiness
	err = a.tab.call(ctx, func(ctx context.Context) error {
		if err := w.wait(ctx, &r, "ready", n, at.X, at.Y); err != nil {
			return err
		}
		a.watch(w)
		a.located(w, &r.Node)
		w.ref(&r.Owner)
		r.By = cutText(r.By, 64)
		if r.Fault != "" && r.Fault != "obscured" && r.Fault != "outside_viewport" && r.Fault != "unstable" {
			return nil
		}
		return a.through(ctx, w, &r)
	})
	return r, err
}

// located adds refs and frame to a node that a document describes.
func (a *aiming) located(w *world, n *page.Node) {
	w.refs(n)
	a.tab.mu.Lock()
	defer a.tab.mu.Unlock()
	n.Origin = w.frame.origin
	if w.frame.id != a.tab.frames.main {
		n.Frame = w.frame.name
	}
}

// through converts the point of a readiness from its document to the tab's viewport and checks that
// it can be reached on the way.
func (a *aiming) through(ctx context.Context, w *world, r *page.Readiness) error {
	for {
		o, main := a.around(w)
		if main {
			return nil
		}
		if o.world == nil {
			r.Fault = "detached"
			return nil
		}
		var p framePassage
		if err := o.world.call(ctx, &p, "through", o.number, r.Point.X, r.Point.Y); err != nil {
			return err
		}
		if r.Fault == "" && p.Fault != "" {
			r.Fault, r.By = p.Fault, cutText(p.By, 64)
		}
		if p.Fault == "detached" {
			return nil
		}
		r.Point = p.Point
		b := r.Node.Bounds
		r.Node.Bounds = page.Box{X: p.X + p.S*b.X, Y: p.Y + p.S*b.Y, W: p.S * b.W, H: p.S * b.H}
		w = o.world
	}
}

// around returns the owner of a world's frame. main reports that it is the main frame, which has
// none.
func (a *aiming) around(w *world) (o owner, main bool) {
	a.tab.mu.Lock()
	defer a.tab.mu.Unlock()
	if w.frame.id == a.tab.frames.main {
		return owner{}, true
	}
	o = w.frame.owner
	if o.world != nil && a.tab.frames.worlds[o.world.key] != o.world {
		return owner{}, false
	}
	return o, false
}

// ScrollTo scrolls a node, and a point of it, into the viewport at once.
func (a *aiming) ScrollTo(ctx context.Context, node page.Ref, to page.Place, point page.Point) error {
	return a.at(ctx, node, func(ctx context.Context, w *world, n int) error {
		if err := w.said(ctx, "show", n, string(to), point.X, point.Y); err != nil || w.session == a.tab.session {
			return err
		}
		return pause(ctx, foreignLag)
	})
}

// foreignLag is how long the browser may take to learn the position of a frame in another process
// after a scroll. Earlier input would go to the old position.
const foreignLag = 60 * time.Millisecond

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// at runs do on a node.
func (a *aiming) at(ctx context.Context, node page.Ref, do func(context.Context, *world, int) error) error {
	w, n, err := a.tab.frames.worldOf(node)
	if err != nil {
		return err
	}
	return a.tab.call(ctx, func(ctx context.Context) error { return do(ctx, w, n) })
}

// said calls a function that returns what is wrong, or "".
func (w *world) said(ctx context.Context, name string, args ...any) error {
	var wrong string
	if err := w.call(ctx, &wrong, name, args...); err != nil {
		return err
	}
	return errorOf(wrong)
}

func errorOf(wrong string) error {
	switch wrong {
	case "":
		return nil
	case "kind":
		return page.ErrKind
	}
	return page.ErrGone
}

// watch sets the document whose events are counted; watched returns it.
func (a *aiming) watch(w *world) {
	a.tab.mu.Lock()
	defer a.tab.mu.Unlock()
	a.tab.looks.watched = w
}

func (a *aiming) watched() *world {
	a.tab.mu.Lock()
	defer a.tab.mu.Unlock()
	return a.tab.looks.watched
}

// aimTime bounds how long an aimed click may be under way.
const aimTime = 5 * time.Second

// aim makes the page reject the next click unless it hits the node that Ready checked last.
func (w *world) aim(ctx context.Context) error {
	err := w.call(ctx, nil, "aimed", aimTime.Milliseconds())
	if errors.Is(err, errWorld) {
		return page.ErrGone
	}
	return err
}

// countLimit bounds how long a page may take to return its count. A page that is being left does
// not answer before the next one is there.
const countLimit = 500 * time.Millisecond

// counted returns how many trusted events arrived at the node that Ready checked last, and whether
// a click was rejected. -1 means unknown, for instance because the document is gone.
func (a *aiming) counted(ctx context.Context, w *world) (arrived int, turned bool) {
	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	var n struct {
		Arrived int  `json:"arrived"`
		Turned  bool `json:"turned"`
	}
	if w == nil || a.tab.call(ctx, func(ctx context.Context) error { return w.call(ctx, &n, "counted") }) != nil {
		return -1, false
	}
	return n.Arrived, n.Turned
}
