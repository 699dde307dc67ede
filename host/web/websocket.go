package web

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// Bounds of sockets.
const (
	maxSockets   = 64               // open at the same time
	pingEvery    = 20 * time.Second // each with a check that the principal still may
	silentAfter  = 60 * time.Second // after three unanswered pings
	closeTimeout = time.Second      // wait for the other side's close frame
)

// CloseUnauthenticated is the close code when the session has ended.
const CloseUnauthenticated = 4401

// errClosed is returned by a Socket's methods after Close.
var errClosed = errors.New("the socket is closed")

// A Socket is an upgraded connection that carries whole messages. Read and Write are each called
// from one goroutine, Close from any.
type Socket struct {
	conn   *websocket.Conn
	closed atomic.Bool
	once   sync.Once
}

// Upgrade answers with a WebSocket and runs serve on its own goroutine until it returns. It is for
// Stream routes that require an owner session; the Origin header must name this server. ctx ends
// when the App ends its streams; the end of the session closes the socket. Messages are at most
// most bytes. serve must not use c.
func Upgrade(c *fiber.Ctx, most int64, serve func(ctx context.Context, s *Socket)) error {
	r := requestOf(c)
	a := r.app
	if r.principal == nil || !r.principal.Session() {
		return NewProblem(0, "forbidden", "Only a page with an owner session may do this.")
	}
	if len(c.Request().Header.Peek(fiber.HeaderOrigin)) == 0 { // identify has compared it
		return NewProblem(0, "origin_not_allowed", "This request was not made by a page of Sluice.")
	}
	if !websocket.FastHTTPIsWebSocketUpgrade(c.Context()) {
		return NewProblem(400, "validation_error", "This takes a WebSocket.")
	}
	ctx, leave, ok := a.streams.begin()
	if !ok {
		return NewProblem(0, "unavailable", "The host is stopping.")
	}
	if a.sockets.Add(1) > maxSockets {
		a.sockets.Add(-1)
		leave()
		return NewProblem(0, "rate_limited", "Too many live views are open.")
	}
	check, raw := Recheck(c), c.Context().Conn()
	free := func() {
		a.sockets.Add(-1)
		leave()
	}
	a.streams.starting.Store(raw, func([]byte) { free() }) // the connection broke before it was taken over
	upgrader := websocket.FastHTTPUpgrader{
		ReadBufferSize: 4 << 10, WriteBufferSize: 16 << 10,
		CheckOrigin: func(*fasthttp.RequestCtx) bool { return true }, // checked above, including the scheme
		Error:       func(*fasthttp.RequestCtx, int, error) {},
	}
	err := upgrader.Upgrade(c.Context(), func(conn *websocket.Conn) {
		a.streams.starting.Delete(raw)
		defer free()
		defer a.logRequest(r, fiber.StatusSwitchingProtocols)
		defer func() { _ = conn.Close() }()
		defer func() {
			if v := recover(); v != nil {
				a.o.Log.Error("socket panicked", slog.String("request", r.id), slog.Any("panic", v),
					slog.String("stack", string(debug.Stack())))
			}
		}()
		conn.SetReadLimit(most)
		s := &Socket{conn: conn}
		s.extendDeadline()
		conn.SetPongHandler(func(string) error { s.extendDeadline(); return nil })
		ctx, cancel := context.WithCancel(ctx)
		var rest sync.WaitGroup
		rest.Go(func() { s.watch(ctx, check) })
		serve(ctx, s)
		s.Close(websocket.CloseNormalClosure, "")
		cancel()
		rest.Wait()
		s.drain()
	})
	if err != nil {
		a.streams.starting.Delete(raw)
		free()
		return NewProblem(400, "validation_error", "This takes a WebSocket of version 13.")
	}
	r.streaming = true
	return nil
}

// watch pings the other side, and checks that the session is still valid.
func (s *Socket) watch(ctx context.Context, check func(context.Context) error) {
	t := time.NewTicker(pingEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := check(ctx); err != nil && ctx.Err() == nil {
			if p, known := ProblemOf(err); known && p.Status < 500 {
				s.Close(CloseUnauthenticated, "session_ended")
				return
			}
		}
		_ = s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(pingEvery))
	}
}

// extendDeadline extends the time until the other side must be heard again.
func (s *Socket) extendDeadline() {
	if !s.closed.Load() {
		_ = s.conn.SetReadDeadline(time.Now().Add(silentAfter))
	}
}

// Read returns the next message, which the caller owns.
func (s *Socket) Read() (binary bool, message []byte, err error) {
	if s.closed.Load() {
		return false, nil, errClosed
	}
	kind, message, err := s.conn.ReadMessage()
	if err != nil {
		return false, nil, err
	}
	if s.closed.Load() {
		return false, nil, errClosed
	}
	s.extendDeadline()
	return kind == websocket.BinaryMessage, message, nil
}

// Write sends a message within WriteDeadline.
func (s *Socket) Write(binary bool, message []byte) error {
	if s.closed.Load() {
		return errClosed
	}
	kind := websocket.TextMessage
	if binary {
		kind = websocket.BinaryMessage
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(WriteDeadline))
	return s.conn.WriteMessage(kind, message)
}

// Close sends a close frame, once, and ends Read and Write within about a second.
func (s *Socket) Close(code int, reason string) {
	s.once.Do(func() {
		s.closed.Store(true)
		end := time.Now().Add(closeTimeout)
		_ = s.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), end)
		_ = s.conn.NetConn().SetDeadline(end)
	})
}

// drain reads what the other side sent before it saw the close frame, since the system would drop
// that frame if bytes were left unread.
func (s *Socket) drain() {
	_ = s.conn.SetReadDeadline(time.Now().Add(closeTimeout))
	for range 1000 {
		if _, _, err := s.conn.NextReader(); err != nil {
			return
		}
	}
}
