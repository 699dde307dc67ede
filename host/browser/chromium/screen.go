package chromium

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// A Screen is the active tab as an owner works with it. It implements [page.Screen].
type Screen struct {
	browser *Browser
	changed chan struct{} // of capacity 1
}

var _ page.Screen = (*Screen)(nil)

func newScreen(b *Browser) *Screen { return &Screen{browser: b, changed: make(chan struct{}, 1)} }

// Screen returns the active tab as the owner sees and operates it.
func (b *Browser) Screen() page.Screen { return b.screen }

// display is what a tab shows and what the screen knows of it. The tab's mu guards it.
type display struct {
	tab      *Tab
	viewport page.Viewport
	sink     func(*chromedp.Target, *cdpage.EventScreencastFrame) // nil: nobody watches
	chooser  *chooser
	buttons  int64 // mouse buttons that the owner holds down
}

// A chooser is an open file chooser of a page.
type chooser struct {
	session *chromedp.Target
	node    cdp.BackendNodeID
}

// poke signals the screen that something about the tab changed.
func (dp *display) poke() { signal(dp.tab.browser.screen.changed) }

// tab returns the active tab, or page.ErrLost if there is none.
func (s *Screen) tab() (*Tab, error) {
	s.browser.mu.Lock()
	defer s.browser.mu.Unlock()
	if s.browser.active == nil {
		return nil, page.ErrLost
	}
	return s.browser.active, nil
}

// Changed receives a value when what Facts, Choosing or Viewport return has changed.
func (s *Screen) Changed() <-chan struct{} { return s.changed }

// Facts returns the facts of the active tab.
func (s *Screen) Facts() page.Facts {
	t, err := s.tab()
	if err != nil {
		return page.Facts{Crashed: true}
	}
	return t.Facts()
}

// Title returns the page's title, at most 512 bytes.
func (s *Screen) Title(ctx context.Context) (string, error) {
	var title string
	err := s.main(ctx, func(ctx context.Context, t *Tab, w *world) error { return w.call(ctx, &title, "title") })
	return title, err
}

// main runs do on the main document of the active tab.
func (s *Screen) main(ctx context.Context, do func(context.Context, *Tab, *world) error) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	return t.call(ctx, func(ctx context.Context) error {
		w, err := t.frames.mainWorld(ctx)
		if err != nil {
			return err
		}
		return do(ctx, t, w)
	})
}

// SetViewport changes the size of the active tab.
func (s *Screen) SetViewport(ctx context.Context, v page.Viewport) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	if err := t.call(ctx, func(ctx context.Context) error {
		return t.steady(ctx, func(ctx context.Context) error { return t.measure(ctx, v) })
	}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.display.viewport = v
	t.wake()
	t.poke()
	return nil
}

// Viewport returns the size of the active tab.
func (s *Screen) Viewport() page.Viewport {
	t, err := s.tab()
	if err != nil {
		return page.Viewport{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.display.viewport
}

// measure sets the size of a tab.
func (dp *display) measure(ctx context.Context, v page.Viewport) error {
	_, err := cdp.Call(ctx, dp.tab.session, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(v.Width), Height: int64(v.Height), DeviceScaleFactor: max(v.Scale, 1), Mobile: v.Mobile,
	})
	if err != nil {
		return err
	}
	_, err = cdp.Call(ctx, dp.tab.session, emulation.SetTouchEmulationEnabled,
		emulation.SetTouchEmulationEnabledParams{Enabled: v.Mobile})
	return err
}

// Answer accepts or dismisses the open dialog.
func (s *Screen) Answer(ctx context.Context, accept bool, text string) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	return t.Answer(ctx, accept, text)
}

// OnDialog sets what happens to the dialogs of all tabs.
func (s *Screen) OnDialog(p page.DialogPolicy) {
	s.browser.mu.Lock()
	tabs := append([]*Tab(nil), s.browser.tabs...)
	s.browser.mu.Unlock()
	for _, t := range tabs {
		t.OnDialog(p, nil)
	}
}

// Control returns the node at a point of the screen for which the browser would open a pop-up of
// its own.
func (s *Screen) Control(ctx context.Context, at page.Point) (page.Node, bool, error) {
	var n *page.Node
	err := s.main(ctx, func(ctx context.Context, t *Tab, w *world) error {
		l, err := t.screenScale(ctx)
		if err != nil {
			return err
		}
		w, local, err := t.worldAt(ctx, w, l.point(at))
		if err != nil {
			return err
		}
		if err := w.call(ctx, &n, "controlAt", local.X, local.Y); err != nil || n == nil {
			return err
		}
		t.located(w, n)
		p, err := t.place(ctx, w)
		n.Bounds = l.box(p.box(n.Bounds))
		return err
	})
	if n == nil || err != nil {
		return page.Node{}, false, err
	}
	return *n, true, nil
}

// worldAt returns the document at a point of the tab's viewport, and the point within it.
func (dp *display) worldAt(ctx context.Context, w *world, at page.Point) (*world, page.Point, error) {
	for range frameLimit {
		var h *frameElement
		if err := w.call(ctx, &h, "frameAt", at.X, at.Y); err != nil {
			return nil, at, err
		}
		if h == nil || h.S == 0 {
			break
		}
		var inner *world
		dp.tab.mu.Lock()
		for _, f := range dp.tab.frames.all {
			if f.owner.world == w && f.owner.number == h.N {
				inner = f.world
			}
		}
		dp.tab.mu.Unlock()
		if inner == nil {
			break
		}
		w, at = inner, page.Point{X: (at.X - h.X) / h.S, Y: (at.Y - h.Y) / h.S}
	}
	return w, at, nil
}

// Set sets a control to what the owner chose.
func (s *Screen) Set(ctx context.Context, node page.Ref, set page.Setting) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	_, err = t.Set(ctx, node, set)
	return err
}

// Secrets returns the boxes on the screen of password fields and of the nodes in also. It fails if
// the page moves meanwhile.
func (s *Screen) Secrets(ctx context.Context, also []page.Ref) ([]page.Box, error) {
	t, err := s.tab()
	if err != nil {
		return nil, err
	}
	var list []page.Box
	err = t.call(ctx, func(ctx context.Context) error {
		before, err := t.screenScale(ctx)
		if err != nil {
			return err
		}
		if list, err = t.boxes(ctx, also); err != nil {
			return err
		}
		if _, err := t.frames.own(ctx); err != nil {
			return err
		}
		for _, w := range t.lookedInto() {
			var got []page.Box
			if err := w.call(ctx, &got, "secrets"); err != nil {
				if worldGone(err) {
					continue
				}
				return err
			}
			if len(got) == 0 {
				continue
			}
			at, err := t.place(ctx, w)
			if err != nil {
				return err
			}
			for _, b := range got {
				list = append(list, at.box(b))
			}
		}
		after, err := t.screenScale(ctx)
		if err == nil && after != before {
			err = errMoved
		}
		if err != nil {
			return err
		}
		for i := range list {
			list[i] = before.box(list[i])
		}
		return nil
	})
	return list, err
}

// Elements returns the elements that the owner can choose from without seeing the picture.
func (s *Screen) Elements(ctx context.Context, limit int) ([]page.Node, error) {
	t, err := s.tab()
	if err != nil {
		return nil, err
	}
	o, err := t.Read(ctx, page.Query{All: true})
	if err != nil {
		return nil, err
	}
	var list []page.Node
	for _, n := range o.Nodes {
		if n.Visible && (n.Native || n.Tabbable || n.OwnHear || n.Role == "heading" || n.Labels != "") && len(list) < limit {
			list = append(list, n)
		}
	}
	return list, nil
}

// Click scrolls a node into view and clicks its middle.
func (s *Screen) Click(ctx context.Context, node page.Ref) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	if err := t.ScrollTo(ctx, node, page.Middle, page.Center); err != nil {
		return err
	}
	r, l, err := t.placed(ctx, node)
	if err != nil {
		return err
	}
	switch r.Fault {
	case "", "unstable", "obscured":
		_, err = t.Click(ctx, page.Click{At: l.sent(r.Point)})
		return err
	case "detached":
		return page.ErrGone
	}
	return page.ErrKind
}

// placed returns the position of a node together with the screen scale. It does not run while a
// picture is taken, for which the browser changes the scale.
func (t *Tab) placed(ctx context.Context, node page.Ref) (r page.Readiness, l screenScale, err error) {
	err = t.steady(ctx, func(ctx context.Context) error {
		for range 10 {
			if l, err = t.screenScale(ctx); err != nil {
				return err
			}
			if r, err = t.Ready(ctx, node, page.Point{X: 0.5, Y: 0.5}); err != nil {
				return err
			}
			after, err := t.screenScale(ctx)
			if err != nil || after == l {
				return err
			}
		}
		return nil // it keeps moving; the last position is as good as any
	})
	return r, l, err
}

// FocusOn gives a node the focus.
func (s *Screen) FocusOn(ctx context.Context, node page.Ref) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	return t.at(ctx, node, func(ctx context.Context, w *world, n int) error {
		return w.said(ctx, "focusNode", n, false, "-")
	})
}

// Selection returns the selected text, at most 64 KiB, and nothing from a password field.
func (s *Screen) Selection(ctx context.Context) (string, error) {
	var text string
	err := s.main(ctx, func(ctx context.Context, t *Tab, w *world) error {
		for _, w := range append([]*world{w}, t.lookedInto()...) {
			if err := w.call(ctx, &text, "selection"); err != nil || text != "" {
				return err
			}
		}
		return nil
	})
	return text, err
}

// chooserOpened records that the page waits for files. mu is held.
func (dp *display) chooserOpened(s *chromedp.Target, ev *cdpage.EventFileChooserOpened) {
	dp.chooser = &chooser{session: s, node: ev.BackendNodeID}
	dp.poke()
}

// Choosing reports whether the page waits for files.
func (s *Screen) Choosing() bool {
	t, err := s.tab()
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.display.chooser != nil
}

// Choose gives the waiting page files, or none. It returns page.ErrGone if no page is waiting.
func (s *Screen) Choose(ctx context.Context, paths []string) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	return t.chosen(ctx, paths)
}

// chosen is Screen.Choose on one tab.
func (dp *display) chosen(ctx context.Context, paths []string) error {
	dp.tab.mu.Lock()
	c := dp.chooser
	dp.chooser = nil
	dp.poke()
	dp.tab.mu.Unlock()
	if c == nil {
		return page.ErrGone
	}
	if len(paths) == 0 {
		return nil
	}
	if c.node == 0 {
		return page.ErrKind
	}
	return dp.tab.call(ctx, func(ctx context.Context) error {
		files := dom.SetFileInputFilesParams{Files: paths, BackendNodeID: c.node}
		return command(ctx, c.session, dom.SetFileInputFiles, files)
	})
}

// Navigate goes back, forward, reloads or stops.
func (s *Screen) Navigate(ctx context.Context, do string) error {
	t, err := s.tab()
	if err != nil {
		return err
	}
	if do == "stop" {
		return t.call(ctx, func(ctx context.Context) error {
			_, err := cdp.Call(ctx, t.session, cdpage.StopLoading, cdp.Empty{})
			if worldGone(err) { // between two documents there is nothing to stop
				return nil
			}
			return err
		})
	}
	_, err = t.History(ctx, do, "commit")
	return err
}
