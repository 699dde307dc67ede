package stream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

func bubble(t *testing.T, name string, m func() *memory, o stream.Options, f func(t *testing.T, m *memory, h *stream.Hub)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			log := m()
			h := stream.New(log, o)
			defer h.Close()
			f(t, log, h)
		})
	})
}

func whole() *memory   { return told(story...) }
func nothing() *memory { return told() }

func TestModes(t *testing.T) {
	want := map[string]string{
		"updates": "0 run.started, 5 interrupt.requested, 6 clarification.requested, 8 node.suspended, 9 interrupt.resolved, " +
			"10 clarification.resolved, 12 node.completed, 13 run.completed",
		"messages":       "3 ai.message.chunk",
		"debug":          debugHeads(whole()),
		"debug,messages": strings.Replace(debugHeads(whole()), "output.chunk", "ai.message.chunk", 1),
		"updates,messages": "0 run.started, 3 ai.message.chunk, 5 interrupt.requested, 6 clarification.requested, 8 node.suspended, 9 interrupt.resolved, " +
			"10 clarification.resolved, 12 node.completed, 13 run.completed",
		"values": "0 state.snapshot, 5 state.snapshot, 6 state.snapshot, 8 state.snapshot, 9 state.snapshot, " +
			"10 state.snapshot, 12 state.snapshot, 13 state.snapshot",
	}
	for mode, heads := range want {
		bubble(t, mode, whole, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
			c := subscribe(t, h, stream.Query{Modes: modes(t, mode)})
			if got := c.heads(); got != heads || !c.ended() {
				t.Errorf("backlog: %s, ended %v, want %s", got, c.ended(), heads)
			}
		})
		bubble(t, mode+" live", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
			c := subscribe(t, h, stream.Query{Modes: modes(t, mode)})
			if c.text() == "" || c.ended() {
				t.Fatalf("a stream of a pending run has ended, after %q", c.text())
			}
			for _, commit := range story {
				m.commit(run, commit...)
				synctest.Wait()
			}
			if got := c.heads(); got != heads || !c.ended() {
				t.Errorf("live: %s, ended %v, want %s", got, c.ended(), heads)
			}
		})
	}
}

func TestFirstBytesAndFrames(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Messages | timeline.Updates})
		if got := c.text(); got != "retry: 2000\n: sluice\n\n" {
			t.Fatalf("first bytes %q", got)
		}
		m.commit(run, story[0]...)
		m.commit(run, story[1]...)
		at := store.Time(time.Now())
		want := "retry: 2000\n: sluice\n\nid: 0\nevent: run.started\ndata: {\"eventId\":\"evt_0000000000000000\",\"runId\":\"run_1\",\"nodeId\":\"collect\"," +
			"\"type\":\"run.started\",\"payload\":{\"workflowId\":\"mailbox\"},\"timestamp\":\"" + at + "\",\"sequence\":0,\"schemaVersion\":1}\n\n" +
			"id: 3\nevent: ai.message.chunk\ndata: {\"nodeId\":\"collect\",\"runId\":\"run_1\",\"chunk\":\"hello\",\"isLast\":true}\n\n"
		if got := c.text(); got != want {
			t.Errorf("stream is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestVocabulary(t *testing.T) {
	bubble(t, "", whole, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Debug, OpenwopOnly: true})
		if got := c.heads(); strings.Contains(got, "batch_ingested") || strings.Contains(got, "interaction") || !strings.Contains(got, "lease.acquired") {
			t.Errorf("frames %s", got)
		}
	})
}

func TestResumption(t *testing.T) {
	for after, want := range map[uint64]string{
		0:  "1 lease.acquired, 2 node.started",
		2:  "",
		50: "",
	} {
		bubble(t, fmt.Sprint("live ", after), func() *memory { return told(story[0]) }, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
			c := subscribe(t, h, stream.Query{Modes: timeline.Debug, After: &after})
			if got := c.heads(); got != want || c.ended() {
				t.Errorf("after %d: %q, ended %v, want %q", after, got, c.ended(), want)
			}
		})
	}
	for after, want := range map[uint64]string{11: "12 node.completed, 13 run.completed", 12: "13 run.completed", 13: "", 99: "", stream.MaxSequence: ""} {
		bubble(t, fmt.Sprint("over ", after), whole, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
			c := subscribe(t, h, stream.Query{Modes: timeline.Debug, After: &after})
			if got := c.heads(); got != want || !c.ended() {
				t.Errorf("after %d: %q, ended %v, want %q", after, got, c.ended(), want)
			}
			v := subscribe(t, h, stream.Query{Modes: timeline.Values, After: &after})
			if got := v.heads(); got != "13 state.snapshot" || !v.ended() { // the baseline may bear the id
				t.Errorf("values after %d: %q, ended %v", after, got, v.ended())
			}
		})
	}
	bubble(t, "beyond the end", func() *memory { return told(story[0]) }, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Debug, After: ptr(uint64(3))})
		m.commit(run, story[1]...)
		m.commit(run, story[2]...)
		if got := c.heads(); got != "4 run.batch_ingested" {
			t.Errorf("after 3: %q", got)
		}
	})
	for text, want := range map[string]string{"7": "7", "": "", "-1": "", "+1": "", "x": "", "1.5": "", "9007199254740991": "9007199254740991", "9007199254740992": "", "99999999999999999999": ""} {
		got := ""
		if n := stream.ParseLastEventID(text); n != nil {
			got = fmt.Sprint(*n)
		}
		if got != want {
			t.Errorf("Last-Event-ID %q is %q, want %q", text, got, want)
		}
	}
}

func TestDeletedLog(t *testing.T) {
	bubble(t, "", whole, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		m.prune(run)
		ctx := context.Background()
		var gone *stream.ExpiredError
		if _, err := h.Subscribe(ctx, stream.Client{}, stream.Query{Run: run}); !errors.As(err, &gone) || gone.LastEventID != nil || gone.RetentionFloor != 14 {
			t.Errorf("subscribe: %v, floor %+v", err, gone)
		}
		if _, err := h.Poll(ctx, stream.Client{}, stream.PollQuery{Run: run, After: ptr(uint64(20))}); !errors.As(err, &gone) || *gone.LastEventID != 20 {
			t.Errorf("poll: %v", err)
		}
		if _, err := h.List(ctx, stream.ListQuery{Run: run}); !errors.As(err, &gone) {
			t.Errorf("list: %v", err)
		}
		s, err := h.Snapshot(ctx, run)
		if err != nil || s.Sluice.RetentionFloor != 14 || s.Status != timeline.Completed {
			t.Errorf("snapshot %+v, %v", s, err)
		}
		if _, err := h.Subscribe(ctx, stream.Client{}, stream.Query{Run: "run_none"}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("unknown run: %v", err)
		}
	})
}

func TestBatches(t *testing.T) {
	query := stream.Query{Modes: timeline.Debug, Buffer: time.Second}
	bubble(t, "window", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, query)
		time.Sleep(5 * time.Second) // no window is open while nothing comes
		m.commit(run, story[0]...)
		time.Sleep(900 * time.Millisecond)
		m.commit(run, story[1]...)
		if got := c.heads(); got != "" {
			t.Fatalf("before the end of the window: %s", got)
		}
		time.Sleep(100 * time.Millisecond)
		if got := c.frames(); len(got) != 1 || !strings.HasPrefix(got[0], "3 batch [{") || strings.Count(got[0], `"eventId"`) != 4 || !strings.Contains(got[0], `"type":"output.chunk"`) {
			t.Fatalf("batch: %v", got)
		}
		m.commit(run, story[2]...)
		time.Sleep(time.Second)
		if got := c.heads(); got != "3 batch, 4 batch" { // one event is a batch too
			t.Errorf("frames %s", got)
		}
	})
	bubble(t, "forced", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, query)
		for _, commit := range story[:4] {
			m.commit(run, commit...)
		}
		if got := c.heads(); got != "8 batch" {
			t.Errorf("at node.suspended: %s", got)
		}
		m.commit(run, story[4]...)
		m.commit(run, story[5]...)
		if got := c.heads(); got != "8 batch, 13 batch" || !c.ended() {
			t.Errorf("at the end: %s, ended %v", got, c.ended())
		}
	})
	bubble(t, "full", func() *memory {
		m := told(story[0])
		for range 1500 {
			m.commit(run, ev{"lease.renewed", "{}"})
		}
		return m
	}, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, query)
		sizes := 0
		for _, f := range c.frames() {
			n := strings.Count(f, `"eventId"`)
			if sizes += n; n > 1000 || len(f) > 300<<10 {
				t.Errorf("a batch of %d events, %d bytes", n, len(f))
			}
		}
		if sizes == 0 || sizes == 1503 {
			t.Errorf("%d events were flushed before the window ended", sizes)
		}
		time.Sleep(time.Second)
		if got := strings.Count(c.text(), `"eventId"`); got != 1503 {
			t.Errorf("%d events in all", got)
		}
	})
	bubble(t, "before the server closes", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, query)
		m.commit(run, story[0]...)
		synctest.Wait()
		h.Close()
		if got := c.heads(); got != "2 batch" || !c.ended() {
			t.Errorf("at close: %s, ended %v", got, c.ended())
		}
	})
	for _, bad := range []string{"-1", "5001", "1.5", "x", "1e3", "+1"} {
		if _, err := stream.ParseBuffer(bad); err == nil {
			t.Errorf("bufferMs %q was taken", bad)
		}
	}
}

func TestValues(t *testing.T) {
	measured := ev{"run.progress_reported", `{"message":"m"}`}
	bubble(t, "coalesced", func() *memory { return told(story[0]) }, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Values, After: ptr(uint64(2))})
		if got := c.heads(); got != "2 state.snapshot" {
			t.Fatalf("baseline: %s", got)
		}
		for range 10 {
			m.commit(run, measured)
			time.Sleep(50 * time.Millisecond)
		}
		if got := c.heads(); got != "2 state.snapshot" {
			t.Errorf("half a second later: %s", got)
		}
		time.Sleep(500 * time.Millisecond)
		if got := c.heads(); got != "2 state.snapshot, 12 state.snapshot" {
			t.Errorf("a second later: %s", got)
		}
		m.commit(run, measured)
		m.commit(run, ev{"run.paused", ""}) // includes what was owed
		time.Sleep(3 * time.Second)
		if got := c.heads(); got != "2 state.snapshot, 12 state.snapshot, 14 state.snapshot" {
			t.Errorf("in the end: %s", got)
		}
		m.commit(run, ev{"lease.renewed", ""}) // no transition
		time.Sleep(3 * time.Second)
		m.commit(run, measured) // the last was long ago
		if got := c.heads(); !strings.HasSuffix(got, "14 state.snapshot, 16 state.snapshot") {
			t.Errorf("after a pause: %s", got)
		}
	})
	bubble(t, "distance", func() *memory { return told(story[0]) }, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Values, Buffer: 2 * time.Second})
		synctest.Wait()
		m.commit(run, story[3]...)
		time.Sleep(1900 * time.Millisecond)
		if got := c.heads(); got != "2 state.snapshot" {
			t.Errorf("before the distance: %s", got)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		m.commit(run, story[5]...) // the terminal one waits for nothing
		if got := c.heads(); got != "2 state.snapshot, 6 state.snapshot, 8 state.snapshot" || !c.ended() {
			t.Errorf("in the end: %s, ended %v", got, c.ended())
		}
	})
	bubble(t, "equals the run", func() *memory { return told(story[:4]...) }, stream.Options{
		About: func(context.Context, store.Run) timeline.About { return timeline.About{ConnectorName: "mailbox"} },
	}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Values, After: ptr(uint64(0))})
		s, err := h.Snapshot(context.Background(), run)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := c.frames()[0], "8 state.snapshot "+compact(t, s); got != want {
			t.Errorf("frame %s\nwant  %s", got, want)
		}
		if s.Status != timeline.WaitingInput || s.Sluice.ConnectorName != "mailbox" {
			t.Errorf("snapshot %+v", s)
		}
	})
}

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
		s, err := h.Subscribe(context.Background(), stream.Client{Check: func(context.Context) error { return io.EOF }}, stream.Query{Run: run, Modes: timeline.Debug})
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

func TestCloseDoesNotWaitForReaders(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run, Modes: timeline.Debug, Buffer: stream.MaxBuffer})
		if err != nil {
			t.Fatal(err)
		}
		c := serve(s, false)
		c.hello(t)
		m.commit(run, story[0]...)
		synctest.Wait()
		from := time.Now()
		h.Close() // the batch is flushed to a client that does not take it
		if took := time.Since(from); took > time.Second || !c.ended() {
			t.Errorf("closing took %v, ended %v", took, c.ended())
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

func TestSnapshotIsNoPartOfACommit(t *testing.T) {
	bubble(t, "", func() *memory { return told(story[0]) }, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		present := stream.Query{Modes: timeline.Values, After: ptr(uint64(0))}
		first := subscribe(t, h, present)
		if got := first.heads(); got != "2 state.snapshot" {
			t.Fatal(got)
		}
		m.silent = true // the feed does not know yet
		large := make([]ev, 40)
		for i := range large {
			large[i] = ev{"log.appended", "{}"}
		}
		m.commit(run, large...)
		m.broken = func(from uint64) error {
			if from > 3 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if _, err := h.Snapshot(context.Background(), run); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("a read that broke off: %v", err)
		}
		m.broken = nil
		if got := subscribe(t, h, present).heads(); got != "42 state.snapshot" {
			t.Errorf("after it: %s", got)
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

func TestClose(t *testing.T) {
	bubble(t, "", func() *memory { return told(story[0]) }, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Debug})
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run, Modes: timeline.Debug})
		if err != nil {
			t.Fatal(err)
		}
		stuck := serve(s, false)
		late, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		polled := make(chan stream.Page, 1)
		go func() {
			p, _ := h.Poll(context.Background(), stream.Client{}, stream.PollQuery{Run: run, After: ptr(uint64(2))})
			polled <- p
		}()
		synctest.Wait()
		from := time.Now()
		go late.Serve(bufio.NewWriter(io.Discard), nil) // begins when the hub is closed already, or ends with it
		h.Close()
		if took := time.Since(from); took > time.Second {
			t.Errorf("closing took %v", took)
		}
		if !c.ended() || !stuck.ended() || c.heads() != debugHeads(m) {
			t.Errorf("ended %v, %v: %s", c.ended(), stuck.ended(), c.heads())
		}
		if p := <-polled; len(p.Events) != 0 || p.IsComplete {
			t.Errorf("poll %+v", p)
		}
		if _, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run}); !errors.Is(err, stream.ErrClosed) {
			t.Errorf("subscribe to a closed hub: %v", err)
		}
	})
}

func TestCloseWithAStreamThatIsNotServed(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		h.Close()
		if c := serve(s, true); !c.ended() || c.text() != "" || h.Clients() != 0 {
			t.Errorf("served after the end: %q, %d clients", c.text(), h.Clients())
		}
	})
}

func TestLimits(t *testing.T) {
	m := newMemory("run_1", "run_2", "run_3", "run_4")
	h := stream.New(m, stream.Options{PerRun: 2, PerKey: 3, Total: 4})
	defer h.Close()
	var open []*stream.Stream
	try := func(key string, id store.RunID) string {
		s, err := h.Subscribe(context.Background(), stream.Client{Key: key}, stream.Query{Run: id})
		var limit *stream.LimitError
		switch {
		case errors.As(err, &limit):
			return limit.Scope
		case err != nil:
			t.Fatal(err)
		}
		open = append(open, s)
		return ""
	}
	for _, c := range []struct{ key, run, want string }{
		{"a", "run_1", ""}, {"a", "run_1", ""}, {"b", "run_1", "route"}, {"a", "run_2", ""}, {"a", "run_3", "key"}, {"b", "run_3", ""}, {"c", "run_4", "global"},
	} {
		if got := try(c.key, store.RunID(c.run)); got != c.want {
			t.Errorf("key %s, run %s: %q, want %q", c.key, c.run, got, c.want)
		}
	}
	var limit *stream.LimitError
	if _, err := h.Poll(context.Background(), stream.Client{Key: "c"}, stream.PollQuery{Run: "run_4"}); !errors.As(err, &limit) {
		t.Errorf("a poll beyond the limit: %v", err) // long polls count
	}
	open[0].Close()
	open[0].Close() // once is enough
	if got := try("b", "run_1"); got != "" || h.Clients() != 4 {
		t.Errorf("a place that was given back: %q, %d clients", got, h.Clients())
	}
	for _, s := range open {
		s.Close()
	}
	if h.Clients() != 0 {
		t.Errorf("%d clients are left", h.Clients())
	}
}

func TestLostWakeups(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		m.silent = true
		clients := []*client{}
		for range 30 {
			clients = append(clients, subscribe(t, h, stream.Query{Modes: timeline.Debug}))
		}
		synctest.Wait()
		m.commit(run, story[0]...)
		time.Sleep(time.Second)
		for _, c := range clients {
			if got := c.heads(); got != debugHeads(m) {
				t.Fatalf("after a second: %s", got)
			}
		}
		m.mu.Lock()
		before := m.reads
		m.mu.Unlock()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		m.mu.Lock()
		defer m.mu.Unlock()
		if got := m.reads - before; got != 10 { // the look is shared
			t.Errorf("%d reads in 10 s for 30 idle clients", got)
		}
	})
}

func TestNothingIsDropped(t *testing.T) { // A reader far behind the shared lines
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Debug})
		big := `{"x":"` + strings.Repeat("y", 20_000) + `"}`
		for i := range 700 {
			data := "{}"
			if i%7 == 0 {
				data = big
			}
			m.commit(run, ev{"log.appended", data})
		}
		m.commit(run, ev{"run.completed", "{}"})
		if got := c.heads(); got != debugHeads(m) || !c.ended() {
			t.Errorf("%d frames of %d events", len(c.frames()), len(m.events[run]))
		}
		if m.largest > 128 {
			t.Errorf("%d events were read at once", m.largest)
		}
	})
}

func TestOpen(t *testing.T) { // any other response: the same manners
	bubble(t, "", func() *memory { return newMemory(run, "run_2") }, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		var n atomic.Int64
		s, err := h.Open(stream.Client{}, "", func(_ context.Context, out *stream.Out) (time.Duration, error) {
			calls := n.Add(1)
			if calls == 4 {
				return 0, io.EOF
			}
			return 10 * time.Second, out.Event("", "frag\nment", []byte("<p>\r\n"+fmt.Sprint(calls)+"\r</p>"))
		})
		if err != nil {
			t.Fatal(err)
		}
		c := serve(s, true)
		want := "retry: 2000\n: sluice\n\nevent: fragment\ndata: <p>\ndata: 1\ndata: </p>\n\n"
		if got := c.text(); !strings.HasPrefix(got, want) {
			t.Fatalf("stream is %q", got)
		}
		calls := n.Load()
		m.commit("run_2", story[0]...)
		synctest.Wait()
		if now := n.Load(); now != calls+1 {
			t.Errorf("%d calls after a commit, %d before", now, calls)
		}
		time.Sleep(30 * time.Second)
		if !c.ended() {
			t.Error("the stream outlives its source")
		}
	})
	bubble(t, "panic", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Open(stream.Client{}, run, func(context.Context, *stream.Out) (time.Duration, error) { panic("source") })
		if err != nil {
			t.Fatal(err)
		}
		if c := serve(s, true); !c.ended() || h.Clients() != 0 {
			t.Errorf("a source that panics leaves %d clients", h.Clients())
		}
	})
	bubble(t, "deadline of the server", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{}, stream.Query{Run: run})
		if err != nil {
			t.Fatal(err)
		}
		_, theirs := net.Pipe()
		theirs.SetReadDeadline(time.Now().Add(time.Second)) // as a server leaves it after the request
		c := serveOver(s, theirs)
		time.Sleep(5 * time.Second)
		if c.ended() {
			t.Error("the read deadline of the request ended the stream")
		}
	})
}
