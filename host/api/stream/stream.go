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

// Headers of an event stream.
const (
	ContentType  = "text/event-stream; charset=utf-8"
	CacheControl = "no-cache, no-store, no-transform"
)

// A Source writes at most a page of news to out and returns. It is called at once, after each
// wake-up, and when the returned duration has passed: 0 waits for a wake-up only, Soon means that
// there is more. io.EOF ends the stream in order; any other error ends it and is logged, unless the
// client is gone. Calls of a Source never overlap.
type Source func(ctx context.Context, out *Out) (again time.Duration, err error)

// Soon requests another call at once.
const Soon time.Duration = 1

// A Stream is a response that stays open until its Source ends it, its client is gone or loses its
// rights, or the host shuts down.
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
	hurried bool // the final write deadline is set
}

// Open opens a stream of any kind, such as the live parts of a page. It is woken by the commits of
// one run, or of all runs for run "". The error is ErrClosed or a *LimitError; run "" counts only
// against the key and the host.
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
	if closed { // closed in between
		s.Close()
		return nil, ErrClosed
	}
	return s, nil
}

// Close releases the stream's place. Serve does so itself; Close is for a stream that is not
// served.
func (s *Stream) Close() {
	s.leave.Do(func() {
		s.hub.unfollow(s.feed, s.wake)
		s.hub.mu.Lock()
		delete(s.hub.open, s)
		s.hub.mu.Unlock()
		s.hub.leave(s.run, s.client)
	})
}

// Serve writes the stream to w until it ends; it is the body of a fasthttp stream writer. conn is
// the connection under w, or nil: it gets a write deadline before each flush, and a goroutine reads
// from it to notice that the client is gone. The response must close the connection afterwards,
// since that read could consume a request's first byte. Panics are logged.
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

// bind sets the connection. It reports false if the hub was closed before.
func (s *Stream) bind(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.serving = conn, !s.hurried
	return s.serving
}

// errGone means that a write failed or the client lost its rights. The answer has begun, so nothing
// can be reported.
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

// stopping reports whether the stream has to end, without waiting.
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

// hello begins every stream, so that the client sees the headers before the first event.
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
