package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
)

const run = "run_1"

// A client reads a stream over a pipe, in a bubble.
type client struct {
	conn net.Conn
	done chan struct{} // Serve has returned

	mu  sync.Mutex // guards raw
	raw strings.Builder
}

func subscribe(t *testing.T, h *stream.Hub, q stream.Query) *client {
	t.Helper()
	q.Run = run
	s, err := h.Subscribe(context.Background(), stream.Client{Key: "key"}, q)
	if err != nil {
		t.Fatal(err)
	}
	return serve(s, true)
}

// serve connects a client that reads, or that never does.
func serve(s *stream.Stream, reads bool) *client {
	ours, theirs := net.Pipe()
	c := &client{conn: ours, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer theirs.Close()
		s.Serve(bufio.NewWriter(theirs), theirs)
	}()
	if reads {
		go c.read()
	}
	return c
}

// hello reads what every stream begins with, and no more.
func (c *client) hello(t *testing.T) {
	t.Helper()
	if _, err := io.ReadFull(c.conn, make([]byte, len("retry: 2000\n: sluice\n\n"))); err != nil {
		t.Fatal(err)
	}
}

func (c *client) read() {
	buf := make([]byte, 4096)
	for {
		n, err := c.conn.Read(buf)
		c.mu.Lock()
		c.raw.Write(buf[:n])
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// text is everything received once nothing moves any more.
func (c *client) text() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// frames are the events received, as "id event data".
func (c *client) frames() []string {
	var out []string
	for f := range strings.SplitSeq(c.text(), "\n\n") {
		var id, event, data string
		for l := range strings.SplitSeq(f, "\n") {
			switch name, value, _ := strings.Cut(l, ": "); name {
			case "id":
				id = value
			case "event":
				event = value
			case "data":
				data += value
			}
		}
		if event != "" {
			out = append(out, strings.TrimSpace(id+" "+event+" "+data))
		}
	}
	return out
}

// heads are the frames without their data.
func (c *client) heads() string {
	var out []string
	for _, f := range c.frames() {
		id, rest, _ := strings.Cut(f, " ")
		event, _, _ := strings.Cut(rest, " ")
		out = append(out, id+" "+event)
	}
	return strings.Join(out, ", ")
}

// ended reports whether the stream is over.
func (c *client) ended() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func ptr[T any](v T) *T { return &v }

// story is a run from start to end, a commit at a time.
var story = [][]ev{
	{{"run.started", `{"workflowId":"mailbox"}`}, {"lease.acquired", ""}, {"node.started", ""}},
	{{"output.chunk", `{"nodeId":"collect","chunk":"hello","isLast":true}`}},
	{{"run.batch_ingested", `{"records_flushed":2}`}},
	{{"interrupt.requested", ""}, {"clarification.requested", ""}, {"run.interaction_required", ""},
		{"node.suspended", ""}},
	{{"interrupt.resolved", ""}, {"clarification.resolved", ""}, {"node.resumed", ""}},
	{{"node.completed", ""}, {"run.completed", ""}},
}

func told(commits ...[]ev) *memory {
	m := newMemory(run)
	for _, c := range commits {
		m.commit(run, c...)
	}
	return m
}

func debugHeads(m *memory) string {
	var out []string
	for _, e := range m.events[run] {
		out = append(out, fmt.Sprintf("%d %s", e.Sequence, e.Type))
	}
	return strings.Join(out, ", ")
}

func modes(t *testing.T, text string) timeline.Modes {
	t.Helper()
	m, err := timeline.ParseModes(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
