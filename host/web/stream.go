package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/sluicehost/sluice/host"
)

// WriteDeadline bounds one flush of a stream.
const WriteDeadline = 30 * time.Second

// EventStream is the media type of server-sent events.
const EventStream = "text/event-stream; charset=utf-8"

// Context returns the context for what a handler calls, with the principal. It holds copies only,
// so it may outlive the handler, and ends after the App is shut down.
func Context(c *fiber.Ctx) context.Context { return host.As(requestOf(c).app.streams.base, Who(c)) }

// PollContext is Context for answers that wait for something: it ends when streams do.
func PollContext(c *fiber.Ctx) context.Context { return host.As(requestOf(c).app.streams.ctx, Who(c)) }

// Recheck returns a function for a stream to call at every heartbeat: the stream must end on an
// error that is not the store's. It holds copies only.
func Recheck(c *fiber.Ctx) func(context.Context) error {
	r := requestOf(c)
	a, p, scope := r.app, r.principal, r.route.Scope
	if p == nil {
		return func(context.Context) error { return nil }
	}
	return func(ctx context.Context) error { return a.o.Access.Check(ctx, p, scope) }
}

// Stream answers with what write writes, on its own goroutine, until write returns. ctx ends within
// a second after the client disconnects, or when the App ends its streams; write then has to
// return. write calls Flush after every frame and returns when that fails. It must not use c.
//
// A connection serves one stream and is closed afterwards.
func Stream(c *fiber.Ctx, contentType string, write func(ctx context.Context, w *bufio.Writer, conn net.Conn)) error {
	return answer(c, contentType, func(ctx context.Context, w *bufio.Writer, conn net.Conn) {
		ctx, stop := watch(ctx, conn)
		defer stop()
		write(ctx, w, conn)
	})
}

// Follow is Stream for a writer that watches its connection itself, as the streams of
// host/api/stream do, since a second watch would double the cost.
func Follow(c *fiber.Ctx, contentType string, write func(w *bufio.Writer, conn net.Conn)) error {
	return answer(c, contentType, func(_ context.Context, w *bufio.Writer, conn net.Conn) { write(w, conn) })
}

// answer takes the connection over from fasthttp, whose own body writers would keep the request's
// buffers and pass every flush to another goroutine while the stream is open: 50 KiB for each
// waiting client.
func answer(c *fiber.Ctx, contentType string, write func(ctx context.Context, w *bufio.Writer, conn net.Conn)) error {
	r := requestOf(c)
	a := r.app
	ctx, leave, ok := a.streams.begin()
	if !ok {
		return NewProblem(0, "unavailable", "The host is stopping.")
	}
	conn, res := c.Context().Conn(), &c.Context().Response
	if res.StatusCode() != fiber.StatusPartialContent {
		c.Status(fiber.StatusOK)
	}
	c.Set(fiber.HeaderContentType, contentType)
	c.Set(fiber.HeaderCacheControl, "no-cache, no-store, no-transform")
	c.Set("X-Accel-Buffering", "no")
	c.Context().SetConnectionClose()
	chunked := c.Request().Header.IsHTTP11()
	if chunked {
		res.Header.SetContentLength(-1)
	}
	r.streaming = true
	serve := func(header []byte) {
		defer leave()
		defer a.logRequest(r, fiber.StatusOK)
		defer func() { _ = conn.Close() }()
		body := &bodyWriter{conn: conn, header: header, chunked: chunked}
		w := bufio.NewWriter(body)
		a.recovered(r, func() { write(ctx, w, conn) })
		if Flush(w, conn) == nil {
			_ = body.end()
		}
	}
	a.streams.starting.Store(conn, serve)
	c.Context().HijackSetNoResponse(true)
	c.Context().Hijack(func(net.Conn) {
		// When this returns, fasthttp has the request back and its reader is free.
		a.streams.start(conn, res.Header.Header())
	})
	return nil
}

// recovered logs a panic, since the recover in enter is on another goroutine.
func (a *App) recovered(r *request, write func()) {
	defer func() {
		if v := recover(); v != nil {
			a.o.Log.Error("stream panicked", slog.String("request", r.id), slog.Any("panic", v),
				slog.String("stack", string(debug.Stack())))
		}
	}()
	write()
}

// A bodyWriter writes the header of a response, then its body. Each Write is one write to the
// connection and one chunk.
type bodyWriter struct {
	conn    net.Conn
	header  []byte // nil once written
	chunked bool
}

// buffers are used to assemble a bodyWriter's writes.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (b *bodyWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil // an empty chunk would end the body
	}
	if err := b.send(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end writes the last chunk.
func (b *bodyWriter) end() error { return b.send(nil) }

func (b *bodyWriter) send(p []byte) error {
	out := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(out)
	out.Reset()
	out.Write(b.header)
	b.header = nil
	if b.chunked {
		out.Write(strconv.AppendInt(out.AvailableBuffer(), int64(len(p)), 16))
		out.WriteString("\r\n")
	}
	out.Write(p)
	if b.chunked {
		out.WriteString("\r\n")
	}
	_, err := b.conn.Write(out.Bytes())
	return err
}

// Flush flushes with a write deadline, so that a client that stops reading occupies a goroutine for
// half a minute at most.
func Flush(w *bufio.Writer, conn net.Conn) error {
	if err := conn.SetWriteDeadline(time.Now().Add(WriteDeadline)); err != nil {
		return err
	}
	return w.Flush()
}

// watch ends ctx when the client disconnects. The client of a stream sends nothing, so a goroutine
// reads one byte and gets an error, or a byte that should not be there. stop waits for that
// goroutine.
func watch(ctx context.Context, conn net.Conn) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	_ = conn.SetReadDeadline(time.Time{}) // the request's own deadline would end it
	var stopping sync.Mutex               // held while stopped is set
	done, stopped := make(chan struct{}), false
	go func() {
		defer close(done)
		defer cancel()
		for {
			_, err := conn.Read(make([]byte, 1))
			stopping.Lock()
			again := !stopped && errors.Is(err, os.ErrDeadlineExceeded)
			if again {
				_ = conn.SetReadDeadline(time.Time{})
			}
			stopping.Unlock()
			if !again {
				return
			}
		}
	}()
	return ctx, func() {
		stopping.Lock()
		stopped = true
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		stopping.Unlock()
		<-done
		cancel()
	}
}

// streams holds the open streams.
type streams struct {
	// starting maps connections that are not taken over yet to a func(header []byte), which is
	// called with nil if the connection ends first.
	starting sync.Map

	base context.Context // ends last
	stop context.CancelFunc

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // guards closed, and Add of open
	closed bool
	open   sync.WaitGroup
}

func (s *streams) init() {
	s.base, s.stop = context.WithCancel(context.Background())
	s.ctx, s.cancel = context.WithCancel(s.base)
}

// start starts the stream of a connection, unless it was started already.
func (s *streams) start(conn net.Conn, header []byte) {
	if f, ok := s.starting.LoadAndDelete(conn); ok {
		go f.(func([]byte))(header)
	}
}

func (s *streams) end(timeout time.Duration) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	ended := make(chan struct{})
	go func() {
		s.open.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(timeout): // a stalled client runs into its write deadline
	}
}

func (s *streams) begin() (context.Context, func(), bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, false
	}
	s.open.Add(1)
	return s.ctx, s.open.Done, true
}
