package stream

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sluicehost/sluice/store"
)

// The headers of an event stream.
const (
	ContentType  = "text/event-stream; charset=utf-8"
	CacheControl = "no-cache, no-store, no-transform"
)

// A Source writes what is new to out, a page at most, and returns. It is called
// at once, then after each wake-up, and when the returned time has passed: 0
// waits for a wake-up alone, Soon means that there is more already. io.EOF ends
// the stream in order; any other error ends it and is logged, unless the client
// has gone. Calls of one Source never overlap.
type Source func(ctx context.Context, out *Out) (again time.Duration, err error)

// Soon asks to be called again at once.
const Soon time.Duration = 1

// A Stream is a response that stays open until its Source ends it, its client
// has gone or may no longer read, or the host shuts down.
type Stream struct {
	hub    *Hub
	client Client
	run    store.RunID
	source Source
	feed   *feed
	wake   chan struct{}
	leave  sync.Once

	mu      sync.Mutex // guards what is below
	conn    net.Conn
	serving bool
	hurried bool // its write deadline is the last one
}

// Open makes a stream of anything: a page that shows itself anew, say. It wakes
// with the commits of one run, or with run "" those of all runs. The error is
// ErrClosed or a *LimitError; run "" counts against key and host only.
func (h *Hub) Open(c Client, run store.RunID, src Source) (*Stream, error) {
	if err := h.take(run, c); err != nil {
		return nil, err
	}
	s := &Stream{hub: h, client: c, run: run, source: src, wake: make(chan struct{}, 1)}
	s.feed = h.follow(run, s.wake)
	h.mu.Lock()
	closed := h.closed
	h.open[s] = !closed
	h.mu.Unlock()
	if closed { // in between
		s.Close()
		return nil, ErrClosed
	}
	return s, nil
}

// Close gives the stream's place back. Serve does so itself; it is for a stream
// that is not served after all.
func (s *Stream) Close() {
	s.leave.Do(func() {
		s.hub.unfollow(s.feed, s.wake)
		s.hub.mu.Lock()
		delete(s.hub.open, s)
		s.hub.mu.Unlock()
		s.hub.leave(s.run, s.client)
	})
}

// Serve writes the stream to w until it ends; it is the body of a fasthttp
// stream writer. conn is the connection under w, captured in the handler: it
// gets a write deadline before each flush, and one goroutine reads from it to
// learn that the client has gone. The response must close the connection
// afterwards, since that read would take a request's first byte. Panics are
// logged. conn nil is for a writer without one.
func (s *Stream) Serve(w *bufio.Writer, conn net.Conn) {
	defer s.Close()
	defer func() {
		if p := recover(); p != nil {
			slog.Error("stream failed", "run", s.run, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !s.bind(conn) {
		return
	}
	if conn != nil {
		defer watch(conn, func() {
			cancel()
			s.hurry(0)
		})()
	}
	err := s.write(ctx, &Out{s: s, ctx: ctx, w: w})
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errGone) && ctx.Err() == nil {
		slog.Error("stream ended", "run", s.run, "error", err)
	}
}

// bind takes the connection; false when the hub was closed before.
func (s *Stream) bind(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.serving = conn, !s.hurried
	return s.serving
}

// errGone: a write failed, or the client may read no more. The answer was begun
// and cannot be changed, so there is nothing to report.
var errGone = errors.New("client has gone")

// write is the loop of every stream.
func (s *Stream) write(ctx context.Context, out *Out) error {
	o := s.hub.opts
	if err := s.hello(out); err != nil {
		return errGone
	}
	checked := time.Now()
	timer := time.NewTimer(o.Heartbeat)
	defer timer.Stop()
	for {
		again, err := s.source(ctx, out)
		if out.Flush() != nil {
			return errGone
		}
		if err != nil || out.closing {
			return err
		}
		now := time.Now()
		if now.Sub(checked) >= o.Heartbeat {
			checked = now
			if !s.allowed(ctx) {
				return errGone
			}
		}
		if now.Sub(out.last) >= o.Heartbeat {
			if out.Comment("keepalive") != nil || out.Flush() != nil {
				return errGone
			}
		}
		if again == Soon && !s.stopping(ctx) {
			continue
		}
		wait := min(out.last.Add(o.Heartbeat).Sub(now), checked.Add(o.Heartbeat).Sub(now))
		if again > 0 {
			wait = min(wait, again)
		}
		timer.Reset(max(wait, 0))
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
			return errGone
		case <-s.hub.done:
			out.closing = true
		}
	}
}

// stopping reports whether there is a reason to end, without waiting for one.
func (s *Stream) stopping(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-s.hub.done:
		return true
	default:
		return false
	}
}

// hello is what every stream begins with, so that the client sees the headers
// before the first event.
func (s *Stream) hello(out *Out) error {
	if err := out.begin(); err != nil {
		return err
	}
	out.dirty = true
	out.w.WriteString("retry: 2000\n: sluice\n\n")
	return out.Flush()
}

// checkTime bounds one check of a principal.
const checkTime = 10 * time.Second

func (s *Stream) allowed(ctx context.Context) bool {
	if s.client.Check == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	return s.client.Check(ctx) == nil
}
