package chromium

import (
	"context"
	"errors"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
)

// aiming brings a node to where input reaches it, and says whether it would.
type aiming struct{ tab *Tab }

// A framePassage is what the function through returns: whether a point inside of a frame
// is reached from the document around it, and where the frame is.
type framePassage struct {
	Fault string     `json:"fault"`
	By    string     `json:"by"`
	Point page.Point `json:"point"`
	X     float64    `json:"x"`
	Y     float64    `json:"y"`
	S     float64    `json:"s"`
}

// Ready makes the checks before an input on one node, in one call in its document and one in
// each document around it that cannot see into it. It looks at the box in an
// animation frame after the first look, unless a read saw the same box at least a
// frame's time before: so it costs no frame that is not needed. Whether the node may
// be read-only is for the caller to say: Node.ReadOnly.
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

// located gives a node that a document describes its references and its frame.
func (a *aiming) located(w *world, n *page.Node) {
	w.refs(n)
	a.tab.mu.Lock()
	defer a.tab.mu.Unlock()
	n.Origin = w.frame.origin
	if w.frame.id != a.tab.frames.main {
		n.Frame = w.frame.name
	}
}

// through takes the point of a readiness out of its document into the tab's
// viewport, and sees that it is reached on the way.
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

// around is the owner of the frame of a world; main says that it has none.
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

// ScrollTo brings a node, and a point of it, into the viewport at once.
func (a *aiming) ScrollTo(ctx context.Context, node page.Ref, to page.Place, point page.Point) error {
	return a.at(ctx, node, func(ctx context.Context, w *world, n int) error {
		if err := w.said(ctx, "show", n, string(to), point.X, point.Y); err != nil || w.session == a.tab.session {
			return err
		}
		return pause(ctx, foreignLag)
	})
}

// foreignLag is how long the browser may need to learn where a frame of another
// process is after something scrolled: input before that goes to what was there.
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

// at does something to a node.
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

// watch notes the document whose events are counted, and watched is it.
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

// aimTime is how long a click that is aimed may be on its way.
const aimTime = 5 * time.Second

// aim has the next click turned away unless it hits the node that Ready looked at
// last.
func (w *world) aim(ctx context.Context) error {
	err := w.call(ctx, nil, "aimed", aimTime.Milliseconds())
	if errors.Is(err, errWorld) {
		return page.ErrGone
	}
	return err
}

// countLimit is how long a page may take to say what arrived: one that is being left
// says nothing before the next one is there.
const countLimit = 500 * time.Millisecond

// counted is how many trusted events arrived at the node that Ready looked at last,
// and whether a click was turned away; -1 is unknown, as it is when the
// document is gone.
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
