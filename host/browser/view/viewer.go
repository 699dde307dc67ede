package view

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Bounds of one connection.
const (
	maxTexts  = 64  // queued messages; a viewer with more is too slow
	perSecond = 200 // messages from the viewer
)

// An outgoing message is JSON text whose members are the host's and whose texts are cleaned.
type outgoing map[string]any

// A viewer is an accepted connection. One goroutine reads it, one writes it, one applies its
// messages.
type viewer struct {
	session *session
	run     *Run
	conn    Conn
	ctx     context.Context
	cancel  context.CancelFunc
	stills  bool          // only stills are wanted
	wake    chan struct{} // there is something to write
	inbox   inbox
	hands   controls

	mu      sync.Mutex // guards the fields below; taken after Run.mu and broadcast.mu
	hello   bool       // was sent; pictures follow it
	resume  string
	texts   []outgoing
	dirty   bool // the state has changed since it was sent
	sent    uint32
	unacked bool
	pace    pace
	looks   seen // the picture sent last
	bye     bool
	code    int
	reason  string
}

func newViewer(ctx context.Context, s *session, conn Conn, stills bool) *viewer {
	w := &viewer{session: s, run: s.run, conn: conn, stills: stills, wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(ctx)
	w.inbox.init()
	return w
}

// serve runs the connection until it ends.
func (w *viewer) serve(resume string) {
	w.mu.Lock()
	w.resume = resume
	w.mu.Unlock()
	var rest sync.WaitGroup
	if w.run.enter(w) {
		if w.session.mode == ModeControl {
			w.run.take(w.session)
		}
		rest.Go(w.write)
		rest.Go(w.apply)
		w.read()
	} else {
		w.close(CloseDone, ReasonLost)
	}
	w.cancel()
	w.run.leave(w)
	rest.Wait()
	w.hands.drop()
	w.mu.Lock()
	code, reason := w.code, w.reason
	w.mu.Unlock()
	w.conn.Close(cmp.Or(code, CloseDone), reason)
}

// close closes the connection. The first reason counts; queued messages are lost.
func (w *viewer) close(code int, reason string) {
	w.mu.Lock()
	if w.code == 0 {
		w.code, w.reason = code, reason
	} else {
		code, reason = w.code, w.reason
	}
	w.mu.Unlock()
	w.cancel()
	w.conn.Close(code, reason)
}

func (w *viewer) saidBye() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bye
}

// send queues a message; an equal error that is still queued is not repeated. A viewer whose queue
// is full is disconnected.
func (w *viewer) send(m outgoing) {
	w.mu.Lock()
	full := len(w.texts) >= maxTexts
	said := m["type"] == "error" &&
		slices.ContainsFunc(w.texts, func(o outgoing) bool { return o["type"] == "error" && o["code"] == m["code"] })
	if full = full && !said; !full && !said {
		w.texts = append(w.texts, m)
	}
	w.mu.Unlock()
	if full {
		// the caller holds Run.mu, and closing may take a moment
		w.run.views.work.Go(func() { w.close(CloseBusy, ReasonSlow) })
		return
	}
	signal(w.wake)
}

// stale makes the viewer receive the current state.
func (w *viewer) stale() {
	w.mu.Lock()
	w.dirty = true
	w.mu.Unlock()
	signal(w.wake)
}

// write sends queued messages, then the newest picture. At most one picture is unacknowledged.
func (w *viewer) write() {
	defer w.cancel()
	w.stale()
	for w.ctx.Err() == nil {
		for _, m := range w.due() {
			b, err := json.Marshal(m)
			if err != nil || w.conn.Write(false, b) != nil {
				return
			}
		}
		p, wait := w.picture()
		if p != nil {
			if b := w.bytes(p); b != nil && w.conn.Write(true, b) != nil {
				return
			}
			continue
		}
		t := time.NewTimer(wait)
		select {
		case <-w.ctx.Done():
		case <-w.wake:
		case <-t.C:
		}
		t.Stop()
	}
}

// due returns the queued messages, and the state if it has changed.
func (w *viewer) due() []outgoing {
	w.mu.Lock()
	texts, dirty, hello := w.texts, w.dirty, w.hello
	w.texts, w.dirty, w.hello = nil, false, true
	resume := w.resume
	w.resume = ""
	w.mu.Unlock()
	if !dirty {
		return texts
	}
	m := w.run.statusOf(w.session)
	if !hello {
		m["type"], m["view_id"], m["mode"], m["resume"] = "hello", w.session.id, w.session.mode, resume
	}
	return append([]outgoing{m}, texts...)
}

// picture returns the picture to send now, or how long to wait for it.
func (w *viewer) picture() (*picture, time.Duration) {
	w.run.mu.Lock()
	stage := w.run.broadcast
	every := watchRate
	if w.run.lease.state == leaseHeld && w.run.lease.holder == w.session {
		every = controlRate
	}
	w.run.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if stage == nil || w.unacked {
		return nil, time.Hour
	}
	p := stage.newest(w.sent, w.stills)
	if p == nil {
		return nil, time.Hour
	}
	now := time.Now()
	if wait := w.pace.wait(now); wait > 0 {
		return nil, wait
	}
	w.pace.sent(now, every)
	w.sent, w.unacked = p.sequence, true
	w.looks = seen{scale: p.frame.Scale, viewport: p.frame.Viewport}
	return p, 0
}

// bytes returns the bytes of a picture that this viewer may see.
func (w *viewer) bytes(p *picture) []byte {
	if w.session.mode == ModeControl {
		return p.message
	}
	w.run.mu.Lock()
	stage := w.run.broadcast
	w.run.mu.Unlock()
	var b []byte
	if stage != nil {
		b = stage.forWatchers(p)
	}
	if b == nil {
		w.mu.Lock()
		w.unacked = false // nothing was sent
		w.mu.Unlock()
	}
	return b
}

// ack records that a picture was shown.
func (w *viewer) ack(sequence uint32) {
	w.mu.Lock()
	if w.unacked && sequence == w.sent {
		w.unacked = false
	}
	w.mu.Unlock()
	signal(w.wake)
}

// statusOf returns the state for one session.
func (r *Run) statusOf(s *session) outgoing {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := "free"
	switch l := r.lease; {
	case l.state == leaseFree:
	case l.holder == s && l.state == leaseHeld:
		held = "yours"
	case l.holder == s && l.state == leaseTaking:
		held = "coming"
	default:
		held = "other"
	}
	m := outgoing{"type": "state", "lease": held}
	if held == "yours" {
		m["lease_until"] = r.lease.until.UnixMilli()
	}
	if r.broadcast == nil {
		return m
	}
	r.broadcast.mu.Lock()
	defer r.broadcast.mu.Unlock()
	f := r.broadcast.facts
	m["host"], m["title"], m["choosing"] = clean(f.Host, 255), f.title, f.choosing
	m["viewport"] = map[string]any{"width": f.viewport.Width, "height": f.viewport.Height, "mobile": f.viewport.Mobile}
	if d := f.Dialog; d != nil {
		m["dialog"] = map[string]any{"type": clean(d.Type, 32), "host": clean(d.Host, 255), "text": clean(d.Text, 1<<10)}
	}
	return m
}

// typePiece is the type of a binary message with a piece of a file.
const typePiece = 0x02

// read reads messages until the connection ends. A viewer that sends too many is read more slowly;
// none is lost.
func (w *viewer) read() {
	window, count := time.Now(), 0
	for w.ctx.Err() == nil {
		binary, raw, err := w.conn.Read()
		if err != nil {
			return
		}
		if len(raw) > MaxMessage {
			w.close(CloseTooBig, "")
			return
		}
		if now := time.Now(); now.Sub(window) >= time.Second {
			window, count = now, 0
		}
		if count++; count > perSecond {
			w.pause(time.Second - time.Since(window))
		}
		if !w.heard(binary, raw) {
			return
		}
	}
}

func (w *viewer) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.ctx.Done():
	case <-t.C:
	}
}

// heard handles one message. It reports false to end the connection.
func (w *viewer) heard(binary bool, raw []byte) bool {
	if binary {
		w.piece(raw)
		return true
	}
	m, ok := parse(raw)
	switch {
	case ok && m.kind == "ack":
		w.ack(m.seq)
	case ok && m.kind == "bye":
		w.mu.Lock()
		w.bye = true
		w.mu.Unlock()
		return false
	case w.session.mode != ModeControl:
		w.refuse("not_controlling")
	case !ok:
		w.refuse("invalid_input")
	case m.kind == "take":
		if !w.run.take(w.session) {
			w.refuse("not_controlling")
		}
	case !w.run.holds(w.session):
		w.refuse("not_controlling")
	case m.kind == "release":
		w.run.endLease(w.session)
	case m.kind == "file_choose":
		w.announce(m)
	case !w.inbox.put(m):
		w.refuse("page_busy")
	}
	return true
}

// refuse reports that a message was ignored.
func (w *viewer) refuse(code string) { w.send(outgoing{"type": "error", "code": code}) }
