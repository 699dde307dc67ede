package chromium

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/domdebugger"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// markLimit bounds the elements with listeners that one read marks; the next reads mark the others.
const markLimit = 200

// listeners marks the elements of a world that listen for pointer or key events. Only the browser
// knows them, since a world does not see the listeners of another; marks stay. Failures are
// ignored, as listeners are one sign of several. Open shadow trees are queried one by one, because
// Chromium 148 crashes when asked to descend into them. It reports whether anything was new.
func (lk *looks) listeners(ctx context.Context, w *world) bool {
	begun := time.Now()
	var all []*domdebugger.EventListener
	for _, s := range lk.scripted(w) {
		all = append(all, lk.listensIn(ctx, s)...)
	}
	for _, root := range w.shadowed() {
		all = append(all, listensBelow(ctx, w.session, root)...)
	}
	news := w.unmarked(all, time.Since(begun))
	if len(news) > 0 {
		lk.mark(ctx, w, news)
	}
	return len(news) > 0
}

// quick is how long a query of listeners may take for a look to run at the same time, since the
// look grows older by it.
const quick = 50 * time.Millisecond

// quickToTell reports whether the last query of this document's listeners was quick.
func (w *world) quickToTell() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told > 0 && w.told < quick
}

// wasAsked reports whether this document's listeners were queried before.
func (w *world) wasAsked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told > 0
}

// scripted returns the contexts of the page's own scripts in the documents that a world can access,
// its own first.
func (lk *looks) scripted(w *world) []*script {
	lk.tab.mu.Lock()
	defer lk.tab.mu.Unlock()
	var list []*script
	var visit func(*frame)
	visit = func(f *frame) {
		if f.script != nil && f.script.session == w.session {
			list = append(list, f.script)
		}
		for _, c := range lk.tab.frames.children(f.id) {
			if c.owner.world == w && c.owner.open {
				visit(c)
			}
		}
	}
	visit(w.frame)
	return list
}

// listensIn returns the listeners of one document.
func (lk *looks) listensIn(ctx context.Context, s *script) []*domdebugger.EventListener {
	doc := lk.tab.frames.documentOf(ctx, s)
	if doc == "" {
		return nil
	}
	return listensBelow(ctx, s.session, doc)
}

// listensBelow returns the listeners of a document or a shadow tree.
func listensBelow(ctx context.Context, s *chromedp.Target, root runtime.RemoteObjectID) []*domdebugger.EventListener {
	all, err := cdp.Call(ctx, s, domdebugger.GetEventListeners,
		domdebugger.GetEventListenersParams{ObjectID: root, Depth: new(int64(-1))})
	if err != nil {
		return nil
	}
	return all.Listeners
}

// shadowed returns the known shadow trees of a world.
func (w *world) shadowed() []runtime.RemoteObjectID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []runtime.RemoteObjectID
	for _, n := range slices.Sorted(maps.Keys(w.shadows)) {
		if w.shadows[n] != "" {
			list = append(list, w.shadows[n])
		}
	}
	return list
}

// shadowed records shadow trees that a look found in a document. It reports whether one was new.
func (lk *looks) shadowed(ctx context.Context, w *world, found []int) bool {
	lk.tab.mu.Lock()
	s := w.frame.script
	lk.tab.mu.Unlock()
	if s == nil || s.session != w.session {
		return false
	}
	news := false
	for _, n := range found {
		w.mu.Lock()
		_, known := w.shadows[n]
		w.mu.Unlock()
		if known {
			continue
		}
		root := lk.shadow(ctx, w, s, n)
		w.mu.Lock()
		w.shadows[n] = root
		w.mu.Unlock()
		news = news || root != ""
	}
	return news
}

// shadow returns a node of a world as an object of the page's own world, which has its listeners,
// or "" if there is none. It is kept like the document.
func (lk *looks) shadow(ctx context.Context, w *world, s *script, n int) runtime.RemoteObjectID {
	group, release := w.group()
	defer release(ctx)
	mine, err := w.object(ctx, group, n)
	if err != nil {
		return ""
	}
	at, err := cdp.Call(ctx, w.session, dom.DescribeNode, dom.DescribeNodeParams{ObjectID: mine})
	if err != nil || at.Node == nil {
		return ""
	}
	theirs, err := cdp.Call(ctx, w.session, dom.ResolveNode,
		dom.ResolveNodeParams{BackendNodeID: at.Node.BackendNodeID, ExecutionContextID: s.id})
	if err != nil || theirs.Object == nil {
		return ""
	}
	return theirs.Object.ObjectID
}

// documentOf returns the document of a context as a protocol object, or "" if there is none. It is
// kept until the context ends. The page's scripts cannot notice, since the expression is a name
// that they cannot change.
func (fr *frames) documentOf(ctx context.Context, s *script) runtime.RemoteObjectID {
	fr.tab.mu.Lock()
	doc := s.document
	fr.tab.mu.Unlock()
	if doc != "" {
		return doc
	}
	got, err := cdp.Call(ctx, s.session, runtime.Evaluate,
		runtime.EvaluateParams{Expression: "document", ContextID: s.id, Silent: new(true)})
	if err != nil || got.Result == nil {
		return ""
	}
	fr.tab.mu.Lock()
	defer fr.tab.mu.Unlock()
	s.document = got.Result.ObjectID
	return s.document
}

// unmarked returns the listening elements that are not marked yet. took is how long the query
// lasted.
func (w *world) unmarked(all []*domdebugger.EventListener, took time.Duration) []cdp.BackendNodeID {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = took
	var news []cdp.BackendNodeID
	for _, l := range all {
		if l.BackendNodeID == 0 || !hearsInput(l.Type) || w.marked[l.BackendNodeID] {
			continue
		}
		w.marked[l.BackendNodeID] = true
		if news = append(news, l.BackendNodeID); len(news) == markLimit {
			break
		}
	}
	return news
}

func hearsInput(kind string) bool {
	switch kind {
	case "click", "dblclick", "auxclick", "contextmenu", "mousedown", "mouseup", "pointerdown", "pointerup", "touchstart",
		"touchend", "keydown", "keyup", "keypress":
		return true
	}
	return false
}

// mark marks elements in a world. The commands are sent without waiting for each other.
func (lk *looks) mark(ctx context.Context, w *world, nodes []cdp.BackendNodeID) {
	group, release := w.group()
	defer release(ctx)
	objects := make(chan runtime.RemoteObjectID, len(nodes))
	for _, n := range nodes {
		go func() {
			obj, err := cdp.Call(ctx, w.session, dom.ResolveNode,
				dom.ResolveNodeParams{BackendNodeID: n, ExecutionContextID: w.id, ObjectGroup: group})
			if err != nil || obj.Object == nil {
				objects <- ""
				return
			}
			objects <- obj.Object.ObjectID
		}()
	}
	var list []runtime.RemoteObjectID
	for range nodes {
		if o := <-objects; o != "" {
			list = append(list, o)
		}
	}
	_ = w.callWith(ctx, list, nil, "mark")
}
