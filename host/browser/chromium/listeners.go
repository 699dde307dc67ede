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

// markLimit is how many elements with listeners are made known to a world in one
// read; the others follow with the next ones.
const markLimit = 200

// listeners makes known to a world which of its elements hear the pointer or keys:
// only the browser can say, since a world does not see the listeners of another.
// Elements that are known stay known. A failure leaves it at that; listeners are one
// sign of several. Open shadow trees are asked for one by one: asked to go into
// them by itself, Chromium 148 crashes. It reports whether there was anything new.
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

// quick is how long the browser may take to tell of a document's listeners for a look
// to be taken meanwhile: the look grows older by it.
const quick = 50 * time.Millisecond

// quickToTell reports whether the browser told of this document's listeners before,
// and lost no time over it.
func (w *world) quickToTell() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told > 0 && w.told < quick
}

// wasAsked reports whether the browser told of this document's listeners before.
func (w *world) wasAsked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.told > 0
}

// scripted are the contexts of the page's own scripts in the documents that a world
// sees into, its own first.
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

// listensIn are the listeners of one document.
func (lk *looks) listensIn(ctx context.Context, s *script) []*domdebugger.EventListener {
	doc := lk.tab.frames.documentOf(ctx, s)
	if doc == "" {
		return nil
	}
	return listensBelow(ctx, s.session, doc)
}

// listensBelow are the listeners of a document or a shadow tree.
func listensBelow(ctx context.Context, s *chromedp.Target, root runtime.RemoteObjectID) []*domdebugger.EventListener {
	all, err := cdp.Call(ctx, s, domdebugger.GetEventListeners, domdebugger.GetEventListenersParams{ObjectID: root, Depth: new(int64(-1))})
	if err != nil {
		return nil
	}
	return all.Listeners
}

// shadowed are the shadow trees of a world that are known.
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

// shadowed makes known the shadow trees of a document that a look found. It reports
// whether there was a new one.
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

// shadow is a node of a world as an object of the page's own, where its listeners are;
// "" for none. It is kept as the document is.
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
	theirs, err := cdp.Call(ctx, w.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: at.Node.BackendNodeID, ExecutionContextID: s.id})
	if err != nil || theirs.Object == nil {
		return ""
	}
	return theirs.Object.ObjectID
}

// documentOf is the document of a context as an object of the protocol, "" for none.
// It is kept as long as the context, whose end lets go of it. Nothing of this is visible
// to the page's scripts: the expression is a name that they cannot change.
func (fr *frames) documentOf(ctx context.Context, s *script) runtime.RemoteObjectID {
	fr.tab.mu.Lock()
	doc := s.document
	fr.tab.mu.Unlock()
	if doc != "" {
		return doc
	}
	got, err := cdp.Call(ctx, s.session, runtime.Evaluate, runtime.EvaluateParams{Expression: "document", ContextID: s.id, Silent: new(true)})
	if err != nil || got.Result == nil {
		return ""
	}
	fr.tab.mu.Lock()
	defer fr.tab.mu.Unlock()
	s.document = got.Result.ObjectID
	return s.document
}

// unmarked are the elements that hear and are not known yet, of all that the browser
// took so long to tell of.
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
	case "click", "dblclick", "auxclick", "contextmenu", "mousedown", "mouseup", "pointerdown", "pointerup", "touchstart", "touchend", "keydown", "keyup", "keypress":
		return true
	}
	return false
}

// mark passes elements into a world. The commands are sent one after the other
// without waiting for the answers in between.
func (lk *looks) mark(ctx context.Context, w *world, nodes []cdp.BackendNodeID) {
	group, release := w.group()
	defer release(ctx)
	objects := make(chan runtime.RemoteObjectID, len(nodes))
	for _, n := range nodes {
		go func() {
			obj, err := cdp.Call(ctx, w.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: n, ExecutionContextID: w.id, ObjectGroup: group})
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
