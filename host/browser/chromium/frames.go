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

// frameLimit bounds the frames of a page that are read.
const frameLimit = 64

// frames holds the frames of a tab. The tab's mu guards it.
type frames struct {
	tab    *Tab
	main   cdp.FrameID
	all    map[cdp.FrameID]*frame
	worlds map[string]*world // by key
	last   int               // the last key in worlds
	names  int               // the number of frames named
	// sessions to frames in processes of their own; nil while attaching.
	sessions map[target.ID]*frameSession
}

type frameSession struct {
	session *chromedp.Target
	close   context.CancelFunc
}

// A frame is a place for documents. The main frame has no parent.
type frame struct {
	id, parent cdp.FrameID
	name       string // frame_1, …, as guests see it
	url        string
	origin     string
	world      *world  // nil between documents
	script     *script // the page's own world; nil between documents
	owner      owner   // its frame element
	order      int
	away       bool // moved to a process of its own
}

// An owner is the frame element of a document, as seen by the surrounding world.
type owner struct {
	world  *world
	number int
	open   bool // the surrounding world can access the document
}

// A script is the context of the page's own scripts in one document. No functions are called in it.
type script struct {
	session *chromedp.Target
	id      runtime.ExecutionContextID
	unique  string
	// document is the document object, "" until it is requested. The tab's mu guards it.
	document runtime.RemoteObjectID
}

// A world is the isolated world of one document.
type world struct {
	key     string // prefix of refs
	session *chromedp.Target
	id      runtime.ExecutionContextID
	unique  string
	frame   *frame

	mu     sync.Mutex // guards the fields below
	marked map[cdp.BackendNodeID]bool
	// shadows holds its open shadow trees by number, as objects of the page's own world; "" for one
	// that could not be obtained.
	shadows map[int]runtime.RemoteObjectID
	told    time.Duration // how long the last query of its listeners took; 0: none yet
}

func (fr *frames) init() {
	fr.all, fr.worlds, fr.sessions = make(map[cdp.FrameID]*frame), make(map[string]*world),
		make(map[target.ID]*frameSession)
}

// of returns the frame with an id, creating it if it is new. It returns nil beyond the limit.
func (fr *frames) of(id, parent cdp.FrameID) *frame {
	f := fr.all[id]
	if f == nil {
		if len(fr.all) >= frameLimit && parent != "" {
			return nil
		}
		fr.names++
		f = &frame{id: id, parent: parent, name: "frame_" + strconv.Itoa(fr.names), order: fr.names}
		fr.all[id] = f
	}
	if parent != "" {
		f.parent = parent
	}
	return f
}

// drop forgets a frame and its content.
func (fr *frames) drop(id cdp.FrameID) {
	f := fr.all[id]
	if f == nil {
		return
	}
	delete(fr.all, id)
	fr.leave(f)
	for _, c := range fr.children(id) {
		fr.drop(c.id)
	}
}

// leave forgets a frame's document and whether the surrounding document can access it, since the
// next document may be of another site.
func (fr *frames) leave(f *frame) {
	f.owner = owner{}
	if f.world != nil {
		delete(fr.worlds, f.world.key)
		f.world = nil
	}
}

func (fr *frames) children(id cdp.FrameID) []*frame {
	var list []*frame
	for _, f := range fr.all {
		if f.parent == id && f.id != id {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *frame) int { return a.order - b.order })
	return list
}

// found records the frames that a session had when it was attached.
func (fr *frames) found(s *chromedp.Target, ft *cdpage.FrameTree) {
	fr.tab.mu.Lock()
	defer fr.tab.mu.Unlock()
	var walk func(*cdpage.FrameTree)
	walk = func(ft *cdpage.FrameTree) {
		fr.committed(s, ft.Frame, true)
		for _, c := range ft.ChildFrames {
			walk(c)
		}
	}
	walk(ft)
}

// committed records the document that a frame shows. mu is held.
func (fr *frames) committed(s *chromedp.Target, cf *cdp.Frame, early bool) {
	f := fr.of(cf.ID, cf.ParentID)
	if f == nil {
		return
	}
	f.url, f.origin = cf.URL+cf.URLFragment, originOf(cf.SecurityOrigin)
	if cf.ParentID == "" && s == fr.tab.session {
		if fr.main != "" && fr.main != cf.ID {
			fr.drop(fr.main)
		}
		fr.main = cf.ID
		fr.tab.loaded(cf, early)
	} else {
		fr.tab.checkFrame(cf)
	}
	fr.tab.wake()
}

// enteredWorld records a new execution context.
func (fr *frames) enteredWorld(s *chromedp.Target, c *runtime.ExecutionContextDescription) {
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
	fr.tab.mu.Lock()
	defer fr.tab.mu.Unlock()
	f := fr.of(aux.FrameID, "")
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
	fr.leave(f)
	fr.last++
	f.world = &world{key: strconv.Itoa(fr.last), session: s, id: c.ID, unique: c.UniqueID, frame: f,
		marked: make(map[cdp.BackendNodeID]bool), shadows: make(map[int]runtime.RemoteObjectID)}
	fr.worlds[f.world.key] = f.world
	fr.tab.wake()
}

// leftWorlds records contexts that are gone: one by its unique id, or all of a session for "".
func (fr *frames) leftWorlds(s *chromedp.Target, unique string) {
	fr.tab.mu.Lock()
	defer fr.tab.mu.Unlock()
	for _, w := range fr.worlds {
		if w.session == s && (unique == "" || w.unique == unique) {
			fr.leave(w.frame)
		}
	}
	for _, f := range fr.all {
		if f.script != nil && f.script.session == s && (unique == "" || f.script.unique == unique) {
			f.script = nil
		}
	}
	fr.tab.wake()
}

// attachTime bounds one attempt to attach to a frame; the next look tries again.
const attachTime = time.Second

// attachFrame opens a session to a frame in a process of its own.
func (fr *frames) attachFrame(id target.ID) {
	fr.tab.mu.Lock()
	_, known := fr.sessions[id]
	full := len(fr.sessions) >= frameLimit
	if !known && !full {
		fr.sessions[id] = nil
	}
	fr.tab.mu.Unlock()
	if known || full {
		return
	}
	fr.tab.spawn(func(ctx context.Context) {
		ctx, stop := context.WithTimeout(ctx, attachTime)
		defer stop()
		if fr.attach(ctx, id) != nil { // gone again, or between two documents
			fr.detachFrame(id)
		}
	})
}

// attachAway attaches to frames that moved to a process of their own and have no session yet, which
// repeats attempts that met a frame between two documents.
func (fr *frames) attachAway() {
	fr.tab.mu.Lock()
	var away []target.ID
	for id, f := range fr.all {
		if _, known := fr.sessions[target.ID(id)]; f.away && f.world == nil && !known {
			away = append(away, target.ID(id))
		}
	}
	fr.tab.mu.Unlock()
	for _, id := range away {
		fr.attachFrame(id)
	}
}

// attach opens a session to a frame's process and installs the isolated world.
func (fr *frames) attach(limit context.Context, id target.ID) error {
	ctx, cancel := chromedp.NewContext(fr.tab.ctx, chromedp.WithTargetID(id), chromedp.WithDetachOnCancel())
	stop := context.AfterFunc(limit, cancel)
	err := chromedp.Do(ctx)
	if err == nil {
		err = fr.listenFrame(ctx, chromedp.FromContext(ctx).Target)
	}
	stop()
	fr.tab.mu.Lock()
	_, wanted := fr.sessions[id]
	if err == nil && wanted {
		fr.sessions[id] = &frameSession{session: chromedp.FromContext(ctx).Target, close: cancel}
	}
	fr.tab.mu.Unlock()
	if err != nil || !wanted {
		cancel()
	}
	return err
}

func (fr *frames) listenFrame(ctx context.Context, s *chromedp.Target) error {
	if err := fr.tab.disableUnreadDomains(ctx, s); err != nil {
		return err
	}
	if err := chromedp.Listen(ctx, func(ev any) { fr.tab.onEvent(s, ev) }); err != nil {
		return err
	}
	found, err := cdp.Call(ctx, s, cdpage.GetFrameTree, cdp.Empty{})
	if err != nil {
		return err
	}
	fr.found(s, found.FrameTree)
	if err := fr.tab.settle(ctx, s); err != nil {
		return err
	}
	return fr.attachFrames(ctx)
}

// attachFrames attaches to all frames that now have a process of their own.
func (fr *frames) attachFrames(ctx context.Context) error {
	got, err := chromedp.CallBrowser(ctx, target.GetTargets, target.GetTargetsParams{})
	if err != nil {
		return err
	}
	for _, info := range got.TargetInfos {
		fr.tab.mu.Lock()
		ours := info.Type == "iframe" && fr.all[cdp.FrameID(info.ParentFrameID)] != nil
		fr.tab.mu.Unlock()
		if ours {
			fr.attachFrame(info.TargetID)
		}
	}
	return nil
}

// detachFrame forgets a session that is no longer needed.
func (fr *frames) detachFrame(id target.ID) {
	fr.tab.mu.Lock()
	fs := fr.sessions[id]
	delete(fr.sessions, id)
	if fs != nil {
		for _, w := range fr.worlds {
			if w.session == fs.session {
				fr.leave(w.frame)
			}
		}
		fr.tab.wake()
	}
	fr.tab.mu.Unlock()
	if fs != nil {
		fr.tab.work.run(fs.close)
	}
}

// own finds the frame elements of documents that are not accessible from around them, to place
// their content. It reports whether it found any.
func (fr *frames) own(ctx context.Context) (news bool, err error) {
	for _, f := range fr.unowned() {
		o, err := fr.ownerOf(ctx, f)
		if worldGone(err) || errors.Is(err, errWorld) {
			continue // between two documents
		}
		if err != nil {
			return news, err
		}
		fr.tab.mu.Lock()
		if g := fr.all[f.id]; g != nil {
			g.owner, news = o, true
		}
		fr.tab.mu.Unlock()
	}
	return news, nil
}

// unowned returns the frames whose owner is unknown, outermost first, each with the world around
// it.
func (fr *frames) unowned() []frame {
	fr.tab.mu.Lock()
	defer fr.tab.mu.Unlock()
	var list []frame
	var visit func(id cdp.FrameID, around *world)
	visit = func(id cdp.FrameID, around *world) {
		for _, f := range fr.children(id) {
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
	if main := fr.all[fr.main]; main != nil {
		visit(main.id, main.world)
	}
	return list
}

func (fr *frames) ownerOf(ctx context.Context, f frame) (owner, error) {
	w := f.owner.world
	at, err := cdp.Call(ctx, w.session, dom.GetFrameOwner, dom.GetFrameOwnerParams{FrameID: f.id})
	if err != nil {
		return owner{}, err
	}
	group, release := w.group()
	defer release(ctx)
	obj, err := cdp.Call(ctx, w.session, dom.ResolveNode,
		dom.ResolveNodeParams{BackendNodeID: at.BackendNodeID, ExecutionContextID: w.id, ObjectGroup: group})
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

// worldOf returns the document of a ref and the number of the node in it.
func (fr *frames) worldOf(r page.Ref) (*world, int, error) {
	key, number, ok := strings.Cut(string(r), ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n <= 0 {
		return nil, 0, fmt.Errorf("%w: no such reference", page.ErrGone)
	}
	fr.tab.mu.Lock()
	defer fr.tab.mu.Unlock()
	w := fr.worlds[key]
	if w == nil {
		return nil, 0, page.ErrGone
	}
	return w, n, nil
}

// mainWorld waits for the world of the main frame's document.
func (fr *frames) mainWorld(ctx context.Context) (*world, error) {
	var w *world
	err := fr.tab.until(ctx, func() bool {
		if f := fr.all[fr.main]; f != nil {
			w = f.world
		}
		return w != nil
	})
	return w, err
}
