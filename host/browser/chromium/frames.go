package chromium

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	cdpage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/sluicehost/sluice/host/browser/page"
)

// frameLimit is how many frames of a page are looked into.
const frameLimit = 64

// A tree is the frames of a tab, as the browser told of them. The tab's mu guards it.
type tree struct {
	main   cdp.FrameID
	all    map[cdp.FrameID]*frame
	worlds map[string]*world // by key
	last   int               // of the keys of worlds
	names  int               // of frames
	// sessions to frames in processes of their own; nil is one that is being attached.
	sessions map[target.ID]*frameSession
}

type frameSession struct {
	session *chromedp.Target
	close   context.CancelFunc
}

// A frame is a place for documents; the main one has no parent.
type frame struct {
	id, parent cdp.FrameID
	name       string // frame_1, …; as guests see it
	url        string
	origin     string
	world      *world  // nil between documents
	script     *script // the page's own world; nil between documents
	owner      owner   // the element that frames it
	order      int
	away       bool // it went to a process of its own
}

// An owner is the element that frames a document, as the world around it knows it.
type owner struct {
	world  *world
	number int
	open   bool // that world sees into it
}

// A script is the context of a page's own scripts in one document. Nothing is called
// in it.
type script struct {
	session *chromedp.Target
	id      runtime.ExecutionContextID
	unique  string
	// document is its object, "" until it was asked for. The tab's mu guards it.
	document runtime.RemoteObjectID
}

// A world is the isolated world of one document.
type world struct {
	key     string // of refs
	session *chromedp.Target
	id      runtime.ExecutionContextID
	unique  string
	frame   *frame

	mu     sync.Mutex // guards what follows
	marked map[cdp.BackendNodeID]bool
	// shadows are its open shadow trees by number, as objects of the page's own world;
	// "" is one that could not be had.
	shadows map[int]runtime.RemoteObjectID
	told    time.Duration // how long the browser took to tell of its listeners last; 0: never
}

func (t *tree) init() {
	t.all, t.worlds, t.sessions = make(map[cdp.FrameID]*frame), make(map[string]*world), make(map[target.ID]*frameSession)
}

// of is the frame of an id, which is made when it is new; nil for one too many.
func (t *tree) of(id, parent cdp.FrameID) *frame {
	f := t.all[id]
	if f == nil {
		if len(t.all) >= frameLimit && parent != "" {
			return nil
		}
		t.names++
		f = &frame{id: id, parent: parent, name: "frame_" + strconv.Itoa(t.names), order: t.names}
		t.all[id] = f
	}
	if parent != "" {
		f.parent = parent
	}
	return f
}

// drop forgets a frame and what is in it.
func (t *tree) drop(id cdp.FrameID) {
	f := t.all[id]
	if f == nil {
		return
	}
	delete(t.all, id)
	t.leave(f)
	for _, c := range t.children(id) {
		t.drop(c.id)
	}
}

// leave forgets a frame's document, and with it whether the one around sees into it:
// the next may be of another site.
func (t *tree) leave(f *frame) {
	f.owner = owner{}
	if f.world != nil {
		delete(t.worlds, f.world.key)
		f.world = nil
	}
}

func (t *tree) children(id cdp.FrameID) []*frame {
	var list []*frame
	for _, f := range t.all {
		if f.parent == id && f.id != id {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *frame) int { return a.order - b.order })
	return list
}

// found takes in the frames that a session had when it was attached to.
func (t *Tab) found(s *chromedp.Target, ft *cdpage.FrameTree) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var walk func(*cdpage.FrameTree)
	walk = func(ft *cdpage.FrameTree) {
		t.committed(s, ft.Frame, true)
		for _, c := range ft.ChildFrames {
			walk(c)
		}
	}
	walk(ft)
}

// committed notes the document that a frame shows. mu is held.
func (t *Tab) committed(s *chromedp.Target, cf *cdp.Frame, early bool) {
	f := t.frames.of(cf.ID, cf.ParentID)
	if f == nil {
		return
	}
	f.url, f.origin = cf.URL+cf.URLFragment, originOf(cf.SecurityOrigin)
	if cf.ParentID == "" && s == t.session {
		if t.frames.main != "" && t.frames.main != cf.ID {
			t.frames.drop(t.frames.main)
		}
		t.frames.main = cf.ID
		t.loaded(cf, early)
	} else {
		t.checkFrame(cf)
	}
	t.wake()
}

// enteredWorld notes a context that came to be.
func (t *Tab) enteredWorld(s *chromedp.Target, c *runtime.ExecutionContextDescription) {
	if len(c.AuxData) == 0 {
		return
	}
	var aux struct {
		FrameID cdp.FrameID `json:"frameId"`
		Type    string      `json:"type"`
	}
	if json.Unmarshal(c.AuxData, &aux) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.frames.of(aux.FrameID, "")
	if f == nil {
		return
	}
	if aux.Type == "default" {
		f.script = &script{session: s, id: c.ID, unique: c.UniqueID}
		return
	}
	if aux.Type != "isolated" || c.Name != worldName {
		return
	}
	t.frames.leave(f)
	t.frames.last++
	f.world = &world{key: strconv.Itoa(t.frames.last), session: s, id: c.ID, unique: c.UniqueID, frame: f, marked: make(map[cdp.BackendNodeID]bool), shadows: make(map[int]runtime.RemoteObjectID)}
	t.frames.worlds[f.world.key] = f.world
	t.wake()
}

// leftWorlds notes contexts that are gone: the one of a unique id, or all of a
// session for "".
func (t *Tab) leftWorlds(s *chromedp.Target, unique string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.frames.worlds {
		if w.session == s && (unique == "" || w.unique == unique) {
			t.frames.leave(w.frame)
		}
	}
	for _, f := range t.frames.all {
		if f.script != nil && f.script.session == s && (unique == "" || f.script.unique == unique) {
			f.script = nil
		}
	}
	t.wake()
}

// attachTime is how long one attempt to attach to a frame may take; the next look
// makes another one.
const attachTime = time.Second

// attachFrame gives a frame that lives in a process of its own a session.
func (t *Tab) attachFrame(id target.ID) {
	t.mu.Lock()
	_, known := t.frames.sessions[id]
	full := len(t.frames.sessions) >= frameLimit
	if !known && !full {
		t.frames.sessions[id] = nil
	}
	t.mu.Unlock()
	if known || full {
		return
	}
	t.spawn(func(ctx context.Context) {
		ctx, stop := context.WithTimeout(ctx, attachTime)
		defer stop()
		if t.attach(ctx, id) != nil { // it is gone again, or between two documents
			t.detachFrame(id)
		}
	})
}

// attachAway attaches to the frames that went to a process of their own and have no
// session: an attempt that met a frame between two documents is made again.
func (t *Tab) attachAway() {
	t.mu.Lock()
	var away []target.ID
	for id, f := range t.frames.all {
		if _, known := t.frames.sessions[target.ID(id)]; f.away && f.world == nil && !known {
			away = append(away, target.ID(id))
		}
	}
	t.mu.Unlock()
	for _, id := range away {
		t.attachFrame(id)
	}
}

// attach opens a session to a frame's process and puts the isolated world into it.
func (t *Tab) attach(limit context.Context, id target.ID) error {
	ctx, cancel := chromedp.NewContext(t.ctx, chromedp.WithTargetID(id), chromedp.WithDetachOnCancel())
	stop := context.AfterFunc(limit, cancel)
	err := chromedp.Do(ctx)
	if err == nil {
		err = t.listenFrame(ctx, chromedp.FromContext(ctx).Target)
	}
	stop()
	t.mu.Lock()
	_, wanted := t.frames.sessions[id]
	if err == nil && wanted {
		t.frames.sessions[id] = &frameSession{session: chromedp.FromContext(ctx).Target, close: cancel}
	}
	t.mu.Unlock()
	if err != nil || !wanted {
		cancel()
	}
	return err
}

func (t *Tab) listenFrame(ctx context.Context, s *chromedp.Target) error {
	if err := t.hush(ctx, s); err != nil {
		return err
	}
	if err := chromedp.Listen(ctx, func(ev any) { t.heard(s, ev) }); err != nil {
		return err
	}
	found, err := cdp.Call(ctx, s, cdpage.GetFrameTree, cdp.Empty{})
	if err != nil {
		return err
	}
	t.found(s, found.FrameTree)
	if err := t.settle(ctx, s); err != nil {
		return err
	}
	return t.attachFrames(ctx)
}

// attachFrames attaches to the frames that have a process of their own by now.
func (t *Tab) attachFrames(ctx context.Context) error {
	got, err := chromedp.CallBrowser(ctx, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return err
	}
	for _, info := range got.TargetInfos {
		t.mu.Lock()
		ours := info.Type == "iframe" && t.frames.all[cdp.FrameID(info.ParentFrameID)] != nil
		t.mu.Unlock()
		if ours {
			t.attachFrame(info.TargetID)
		}
	}
	return nil
}

// detachFrame forgets a session that is not needed any more.
func (t *Tab) detachFrame(id target.ID) {
	t.mu.Lock()
	fs := t.frames.sessions[id]
	delete(t.frames.sessions, id)
	if fs != nil {
		for _, w := range t.frames.worlds {
			if w.session == fs.session {
				t.frames.leave(w.frame)
			}
		}
		t.wake()
	}
	t.mu.Unlock()
	if fs != nil {
		t.work.run(fs.close)
	}
}

// own finds the elements that frame the documents which are not seen into yet, so
// that what is read in them can be put in its place. It says whether it found any.
func (t *Tab) own(ctx context.Context) (news bool, err error) {
	for _, f := range t.unowned() {
		o, err := t.ownerOf(ctx, f)
		if worldGone(err) || errors.Is(err, errWorld) {
			continue // it is between two documents
		}
		if err != nil {
			return news, err
		}
		t.mu.Lock()
		if g := t.frames.all[f.id]; g != nil {
			g.owner, news = o, true
		}
		t.mu.Unlock()
	}
	return news, nil
}

// unowned are the frames whose owner is not known, outermost first, each with the
// world that it has to be in.
func (t *Tab) unowned() []frame {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []frame
	var visit func(id cdp.FrameID, around *world)
	visit = func(id cdp.FrameID, around *world) {
		for _, f := range t.frames.children(id) {
			if around != nil && f.owner.world != around {
				c := *f
				c.owner = owner{world: around}
				list = append(list, c)
			}
			within := f.world
			if f.owner.open && f.owner.world == around {
				within = around
			}
			visit(f.id, within)
		}
	}
	if main := t.frames.all[t.frames.main]; main != nil {
		visit(main.id, main.world)
	}
	return list
}

func (t *Tab) ownerOf(ctx context.Context, f frame) (owner, error) {
	w := f.owner.world
	at, err := cdp.Call(ctx, w.session, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: f.id})
	if err != nil {
		return owner{}, err
	}
	group, release := w.group()
	defer release(ctx)
	obj, err := cdp.Call(ctx, w.session, dom.ResolveNode, dom.ResolveNodeParams{BackendNodeID: at.BackendNodeID, ExecutionContextID: w.id, ObjectGroup: group})
	if err != nil {
		return owner{}, err
	}
	var got struct {
		N    int  `json:"n"`
		Open bool `json:"open"`
	}
	err = w.callWith(ctx, []runtime.RemoteObjectID{obj.Object.ObjectID}, &got, "nameFrame")
	return owner{world: w, number: got.N, open: got.Open}, err
}

// worldOf is the document of a ref and the number of its node there.
func (t *Tab) worldOf(r page.Ref) (*world, int, error) {
	key, number, ok := strings.Cut(string(r), ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n <= 0 {
		return nil, 0, fmt.Errorf("%w: no such reference", page.ErrGone)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w := t.frames.worlds[key]
	if w == nil {
		return nil, 0, page.ErrGone
	}
	return w, n, nil
}

// mainWorld waits for the world of the main frame's document.
func (t *Tab) mainWorld(ctx context.Context) (*world, error) {
	var w *world
	err := t.until(ctx, func() bool {
		if f := t.frames.all[t.frames.main]; f != nil {
			w = f.world
		}
		return w != nil
	})
	return w, err
}
