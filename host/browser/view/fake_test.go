package view_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/browser/page"
	"github.com/sluicehost/sluice/host/browser/view"
)

// A screen is a page that a test draws.
type screen struct {
	filming  sync.Mutex       // held while a picture is sent, which is one at a time
	mu       sync.Mutex       // guards what follows
	sent     func(page.Frame) // while it is cast
	cast     page.Cast
	casts    int
	stills   int
	facts    page.Facts
	viewport page.Viewport
	did      []string
	controls map[page.Point]page.Node
	secrets  []page.Box
	secretly error
	slow     time.Duration // of a machine on which stills and readings overlap; 0 is none
	elements []page.Node
	choosing bool
	block    chan struct{} // Input waits for it
	dialogs  page.DialogPolicy
	changed  chan struct{}
	color    color.Gray
}

func newScreen() *screen {
	return &screen{viewport: page.Viewport{Width: 800, Height: 600, Scale: 1}, changed: make(chan struct{}, 1),
		facts: page.Facts{Host: "bank.example", Document: "1"}, controls: map[page.Point]page.Node{},
		color: color.Gray{Y: 200}}
}

func (s *screen) Cast(ctx context.Context, c page.Cast, sent func(page.Frame)) error {
	s.filming.Lock()
	s.mu.Lock()
	s.sent, s.cast = sent, c
	s.casts++
	f := s.picture()
	s.mu.Unlock()
	sent(f) // a start brings the page as it is
	s.filming.Unlock()
	<-ctx.Done()
	s.filming.Lock()
	defer s.filming.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = nil
	return ctx.Err()
}

// frame shows a picture in one shade of grey.
func (s *screen) frame(shade uint8) {
	s.filming.Lock()
	defer s.filming.Unlock()
	s.mu.Lock()
	s.color.Y = shade
	sent, f := s.sent, s.picture()
	s.mu.Unlock()
	if sent != nil {
		sent(f)
	}
}

func (s *screen) picture() page.Frame {
	return page.Frame{At: time.Now(), Viewport: s.viewport, Scale: 0.5,
		Data: grey(s.viewport.Width/2, s.viewport.Height/2, s.color)}
}

var greys sync.Map // what was encoded

func grey(w, h int, c color.Color) []byte {
	name := fmt.Sprint(w, h, c)
	if b, ok := greys.Load(name); ok {
		return b.([]byte)
	}
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.Draw(m, m.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, &jpeg.Options{Quality: 90}); err != nil {
		panic(err)
	}
	greys.Store(name, b.Bytes())
	return b.Bytes()
}

func (s *screen) Still(context.Context, int) (page.Frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stills++
	f := s.picture()
	if s.slow > 0 { // begun before it was asked for, while another went out
		f.At = f.At.Add(-s.slow)
		s.mu.Unlock()
		time.Sleep(3 * s.slow)
		s.mu.Lock()
	}
	return f, nil
}

func (s *screen) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, fmt.Sprintf(format, args...))
}

func (s *screen) happened() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.did
	s.did = nil
	return out
}

func (s *screen) Facts() page.Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

func (s *screen) set(f func(*screen)) {
	s.mu.Lock()
	f(s)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func (s *screen) Title(context.Context) (string, error) { return "Sign in\u202e\x00", nil }

func (s *screen) Input(ctx context.Context, in page.Input) error {
	s.mu.Lock()
	block := s.block
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			s.note("hung %s", in.Kind)
			return page.ErrHung
		}
	}
	switch in.Kind {
	case "move", "down", "up", "click", "dblclick":
		s.note("%s %v,%v button %d modifiers %d", in.Kind, in.At.X, in.At.Y, in.Button, in.Modifiers)
	case "wheel":
		s.note("wheel %v,%v by %v,%v", in.At.X, in.At.Y, in.DX, in.DY)
	case "keydown", "keyup":
		s.note("%s %s %s %d", in.Kind, in.Key, in.Code, in.Modifiers)
	case "text":
		s.note("text %s", in.Text)
	case "compose":
		s.note("compose %s %d-%d %v", in.Text, in.Start, in.End, in.Commit)
	default:
		s.note("%s %d %v,%v", in.Kind, in.TouchID, in.At.X, in.At.Y)
	}
	return nil
}

func (s *screen) SetViewport(_ context.Context, v page.Viewport) error {
	s.note("viewport %dx%d %v %v", v.Width, v.Height, v.Scale, v.Mobile)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewport = v
	return nil
}

func (s *screen) Viewport() page.Viewport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.viewport
}

func (s *screen) Answer(_ context.Context, accept bool, text string) error {
	s.note("answer %v %q", accept, text)
	return nil
}

func (s *screen) OnDialog(p page.DialogPolicy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialogs = p
}

func (s *screen) Control(_ context.Context, at page.Point) (page.Node, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.controls[at]
	return n, ok, nil
}

func (s *screen) Set(_ context.Context, node page.Ref, v page.Setting) error {
	switch {
	case v.Index != nil:
		s.note("set %s index %d", node, *v.Index)
	case v.Text != nil:
		s.note("set %s text %s", node, *v.Text)
	}
	return nil
}

func (s *screen) Secrets(_ context.Context, also []page.Ref) ([]page.Box, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slow > 0 {
		s.mu.Unlock()
		time.Sleep(s.slow / 2)
		s.mu.Lock()
	}
	if len(also) != 1 || also[0] != "sealed" {
		return nil, errors.New("the sealed fields were not named")
	}
	return s.secrets, s.secretly
}

func (s *screen) Elements(_ context.Context, limit int) ([]page.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elements, nil
}

func (s *screen) Click(_ context.Context, node page.Ref) error {
	s.note("click element %s", node)
	return nil
}

func (s *screen) FocusOn(_ context.Context, node page.Ref) error {
	s.note("focus %s", node)
	return nil
}

func (s *screen) Selection(context.Context) (string, error) { return "chosen words", nil }

func (s *screen) Choosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.choosing
}

func (s *screen) Choose(_ context.Context, paths []string) error {
	s.note("choose %v", paths)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.choosing = false
	return nil
}

func (s *screen) Navigate(_ context.Context, do string) error {
	s.note("nav %s", do)
	return nil
}

func (s *screen) Changed() <-chan struct{} { return s.changed }

var _ page.Screen = (*screen)(nil)

// A surface is what a run holds, and its guest.
type surface struct {
	mu       sync.Mutex
	taken    int
	released int
	busy     chan struct{} // a verb runs until it is closed
	uploads  bool
	files    []*file
}

func (s *surface) Taken(ctx context.Context) error {
	s.mu.Lock()
	busy := s.busy
	s.mu.Unlock()
	if busy != nil {
		select {
		case <-busy:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken++
	return nil
}

func (s *surface) Released() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released++
}

func (s *surface) leases() (taken, released int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, s.released
}

func (s *surface) Sealed() []page.Ref { return []page.Ref{"sealed"} }

func (s *surface) Upload(_ context.Context, name string, size int64) (view.Upload, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.uploads {
		return nil, view.ErrUploads
	}
	f := &file{name: name}
	s.files = append(s.files, f)
	return f, nil
}

type file struct {
	bytes.Buffer
	name         string
	done, erased bool
}

func (f *file) Path() string { return "/uploads/" + f.name }
func (f *file) Done() error  { f.done = true; return nil }
func (f *file) Erase()       { f.erased = true }

// A conn is a viewer's connection, both ends of it.
type conn struct {
	in     chan inbound
	texts  chan map[string]any
	frames chan []byte
	closed chan struct{}
	once   sync.Once
	code   int
	reason string
}

type inbound struct {
	binary bool
	b      []byte
}

func newConn() *conn {
	return &conn{in: make(chan inbound, 1024), texts: make(chan map[string]any, 1024), frames: make(chan []byte, 1024),
		closed: make(chan struct{})}
}

func (c *conn) Read() (bool, []byte, error) {
	select {
	case m := <-c.in:
		return m.binary, m.b, nil
	case <-c.closed:
		return false, nil, io.EOF
	}
}

func (c *conn) Write(binary bool, m []byte) error {
	select {
	case <-c.closed:
		return io.ErrClosedPipe
	default:
	}
	if binary {
		c.frames <- bytes.Clone(m)
		return nil
	}
	var v map[string]any
	if err := json.Unmarshal(m, &v); err != nil {
		panic(err)
	}
	c.texts <- v
	return nil
}

func (c *conn) Close(code int, reason string) {
	c.once.Do(func() {
		c.code, c.reason = code, reason
		close(c.closed)
	})
}

func (c *conn) say(m any) {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	c.in <- inbound{b: b}
}

// heard is the next message of a type; others before it are passed over.
func (c *conn) heard(t *testing.T, typ string) map[string]any {
	t.Helper()
	for {
		select {
		case m := <-c.texts:
			if m["type"] == typ {
				return m
			}
		case <-c.closed:
			t.Fatalf("closed with %d %s, while waiting for %s", c.code, c.reason, typ)
		case <-time.After(2 * time.Minute):
			t.Fatalf("no %s", typ)
		}
	}
}

// ended waits for the end of a connection.
func (c *conn) ended(t *testing.T, code int, reason string) {
	t.Helper()
	select {
	case <-c.closed:
	case <-time.After(2 * time.Minute):
		t.Fatal("not closed")
	}
	if c.code != code || c.reason != reason {
		t.Fatalf("closed with %d %s, want %d %s", c.code, c.reason, code, reason)
	}
}

func (c *conn) frame(t *testing.T) []byte {
	t.Helper()
	select {
	case f := <-c.frames:
		return f
	case <-c.closed:
		t.Fatalf("closed with %d %s", c.code, c.reason)
	case <-time.After(2 * time.Minute):
		t.Fatal("no picture")
	}
	return nil
}

// A room is views with a run whose page and surface a test has.
type room struct {
	t       *testing.T
	views   *view.Views
	run     *view.Run
	screen  *screen
	surface *surface

	mu     sync.Mutex
	events []string
	data   []map[string]any
}

func newRoom(t *testing.T) *room {
	r := &room{t: t, views: view.New(), screen: newScreen(), surface: &surface{uploads: true}}
	r.run = r.views.Begin("run_1", r.surface, r.event)
	r.run.Up(r.screen)
	r.run.Asked("i1", "manual_action")
	return r
}

func (r *room) event(typ, _ string, data map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, typ)
	r.data = append(r.data, data)
}

func (r *room) happened() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.events
	r.events = nil
	return out
}

func (r *room) mint(q view.Mint) view.Minted {
	r.t.Helper()
	m, err := r.views.Mint(fill(q))
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func fill(q view.Mint) view.Mint {
	if q.Run == "" {
		q.Run = "run_1"
	}
	if q.Owner == "" {
		q.Owner = "o1"
	}
	if q.Mode == "" {
		q.Mode = view.ModeControl
	}
	return q
}

func (r *room) dial(owner, run string, first any) *conn {
	c := newConn()
	c.say(first)
	go r.views.Connect(r.t.Context(), owner, run, c)
	return c
}

type object = map[string]any

// enter mints and connects.
func (r *room) enter(q view.Mint) (*conn, object) {
	r.t.Helper()
	q = fill(q)
	c := r.dial(q.Owner, q.Run, object{"type": "auth", "token": r.mint(q).Token})
	return c, c.heard(r.t, "hello")
}

// control enters and has the lease.
func (r *room) control(q view.Mint) *conn {
	r.t.Helper()
	c, hello := r.enter(q)
	for hello["lease"] != "yours" {
		hello = c.heard(r.t, "state")
	}
	return c
}
