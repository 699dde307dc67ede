package stream_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
)

func TestHeartbeat(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		var revoked atomic.Bool
		s, err := h.Subscribe(context.Background(), stream.Client{Check: func(context.Context) error {
			if revoked.Load() {
				return errors.New("revoked")
			}
			return nil
		}}, stream.Query{Run: run, Modes: timeline.Debug})
		if err != nil {
			t.Fatal(err)
		}
		c := serve(s, true)
		time.Sleep(14 * time.Second)
		if got := c.text(); strings.Contains(got, "keepalive") {
			t.Errorf("after 14 s: %q", got)
		}
		time.Sleep(time.Second)
		if got := c.text(); !strings.HasSuffix(got, "\n\n:keepalive\n\n") {
			t.Errorf("after 15 s: %q", got)
		}
		time.Sleep(7 * time.Second)
		m.commit(run, story[0]...)
		time.Sleep(14 * time.Second)
		if got := strings.Count(c.text(), ":keepalive"); got != 1 {
			t.Errorf("%d comments 14 s after a frame", got)
		}
		time.Sleep(time.Second)
		if got := strings.Count(c.text(), ":keepalive"); got != 2 {
			t.Errorf("%d comments 15 s after a frame", got)
		}
		revoked.Store(true)
		time.Sleep(16 * time.Second)
		if !c.ended() {
			t.Error("the stream outlives its key")
		}
	})
}

func TestCheckIsAskedWhileFramesFlow(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{Check: func(context.Context) error { return io.EOF }},
			stream.Query{Run: run, Modes: timeline.Debug})
		if err != nil {
			t.Fatal(err)
		}
		c := serve(s, true)
		for range 20 {
			m.commit(run, ev{"lease.renewed", ""})
			time.Sleep(time.Second)
		}
		if !c.ended() {
			t.Error("a busy stream outlives its key")
		}
	})
}

func TestGoneClient(t *testing.T) {
	bubble(t, "closed", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{})
		synctest.Wait()
		c.conn.Close()
		if !c.ended() || h.Clients() != 0 {
			t.Errorf("ended %v, %d clients", c.ended(), h.Clients())
		}
	})
	bubble(t, "talks", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{})
		synctest.Wait()
		if _, err := c.conn.Write([]byte("G")); err != nil {
			t.Fatal(err)
		}
		if !c.ended() {
			t.Error("a client that sends a request is still served")
		}
	})
	bubble(t, "gone in the middle of a write", whole, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		c := serve(s, false)
		if c.ended() {
			t.Fatal("nothing was read, yet it is over")
		}
		c.conn.Close()
		if !c.ended() || h.Clients() != 0 {
			t.Errorf("ended %v, %d clients", c.ended(), h.Clients())
		}
	})
}

// halfClosed is a connection whose client has closed its side and reads no
// more.
type halfClosed struct {
	net.Conn
	left chan struct{}
}

func (c *halfClosed) Read([]byte) (int, error) {
	<-c.left
	return 0, io.EOF
}

func TestGoneClientWhoseSocketIsFull(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		ours, theirs := net.Pipe()
		defer ours.Close()
		conn := &halfClosed{theirs, make(chan struct{})}
		done := make(chan struct{})
		go func() { defer close(done); s.Serve(bufio.NewWriter(conn), conn) }()
		synctest.Wait() // it writes, and nobody reads
		from := time.Now()
		close(conn.left)
		if <-done; time.Since(from) > time.Second {
			t.Errorf("a client that has gone was missed after %v", time.Since(from))
		}
	})
}

func TestSlowReadingIsNoFault(t *testing.T) { // The deadline is for a client that stops
	bubble(t, "", func() *memory {
		m := newMemory(run)
		for range 120 {
			m.commit(run, ev{"log.appended", `{"x":"` + strings.Repeat("y", 1500) + `"}`})
		}
		return m
	}, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		m.commit(run, ev{"run.completed", ""})
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run, Modes: timeline.Debug})
		if err != nil {
			t.Fatal(err)
		}
		c := serve(s, false)
		buf, got := make([]byte, 4096), 0
		for {
			n, err := c.conn.Read(buf)
			if got += n; err != nil {
				break
			}
			time.Sleep(5 * time.Second)
		}
		if got < 120*1500 {
			t.Errorf("a slow reader got %d bytes", got)
		}
	})
}

func TestSlowClient(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run, Modes: timeline.Debug})
		if err != nil {
			t.Fatal(err)
		}
		slow, quick := serve(s, false), subscribe(t, h, stream.Query{Modes: timeline.Debug})
		m.commit(run, story[0]...)
		if got := quick.heads(); got != debugHeads(m) {
			t.Errorf("the other client got %s", got)
		}
		time.Sleep(29 * time.Second)
		if slow.ended() {
			t.Error("a slow client was ended before its time")
		}
		time.Sleep(2 * time.Second)
		if !slow.ended() || h.Clients() != 1 {
			t.Errorf("after 31 s: ended %v, %d clients", slow.ended(), h.Clients())
		}
	})
}
