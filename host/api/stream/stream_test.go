package stream_test

import (
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

func bubble(t *testing.T, name string, m func() *memory, o stream.Options,
	f func(t *testing.T, m *memory, h *stream.Hub)) {
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
			"\"type\":\"run.started\",\"payload\":{\"workflowId\":\"mailbox\"},\"timestamp\":\"" + at +
			"\",\"sequence\":0,\"schemaVersion\":1}\n\n" +
			"id: 3\nevent: ai.message.chunk\ndata: {\"nodeId\":\"collect\",\"runId\":\"run_1\",\"chunk\":\"hello\",\"isLast\":true}\n\n"
		if got := c.text(); got != want {
			t.Errorf("stream is\n%s\nwant\n%s", got, want)
		}
	})
}

func TestVocabulary(t *testing.T) {
	bubble(t, "", whole, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		c := subscribe(t, h, stream.Query{Modes: timeline.Debug, OpenwopOnly: true})
		if got := c.heads(); strings.Contains(got, "batch_ingested") || strings.Contains(got, "interaction") ||
			!strings.Contains(got, "lease.acquired") {
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
		bubble(t, fmt.Sprint("live ", after), func() *memory { return told(story[0]) }, stream.Options{},
			func(t *testing.T, m *memory, h *stream.Hub) {
				c := subscribe(t, h, stream.Query{Modes: timeline.Debug, After: &after})
				if got := c.heads(); got != want || c.ended() {
					t.Errorf("after %d: %q, ended %v, want %q", after, got, c.ended(), want)
				}
			})
	}
	for after, want := range map[uint64]string{11: "12 node.completed, 13 run.completed", 12: "13 run.completed", 13: "",
		99: "", stream.MaxSequence: ""} {
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
	bubble(t, "beyond the end", func() *memory { return told(story[0]) }, stream.Options{},
		func(t *testing.T, m *memory, h *stream.Hub) {
			c := subscribe(t, h, stream.Query{Modes: timeline.Debug, After: ptr(uint64(3))})
			m.commit(run, story[1]...)
			m.commit(run, story[2]...)
			if got := c.heads(); got != "4 run.batch_ingested" {
				t.Errorf("after 3: %q", got)
			}
		})
	for text, want := range map[string]string{"7": "7", "": "", "-1": "", "+1": "", "x": "", "1.5": "",
		"9007199254740991": "9007199254740991", "9007199254740992": "", "99999999999999999999": ""} {
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
		if _, err := h.Subscribe(ctx, stream.Client{}, stream.Query{Run: run}); !errors.As(err, &gone) ||
			gone.LastEventID != nil || gone.RetentionFloor != 14 {
			t.Errorf("subscribe: %v, floor %+v", err, gone)
		}
		if _, err := h.Poll(ctx, stream.Client{}, stream.PollQuery{Run: run, After: ptr(uint64(20))}); !errors.As(err,
			&gone) || *gone.LastEventID != 20 {
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
	bubble(t, "", func() *memory { return newMemory(run, "run_2") }, stream.Options{},
		func(t *testing.T, m *memory, h *stream.Hub) {
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

// After a host was started anew all its readers are back at once, a few events behind: what they miss
// is read once, and what comes then once a wake-up.
func TestManyResume(t *testing.T) {
	const readers = 1000
	o := stream.Options{PerRun: readers, PerKey: readers, Total: readers}
	bubble(t, "", func() *memory { return told(story[:3]...) }, o, func(t *testing.T, m *memory, h *stream.Hub) {
		last := uint64(len(m.events[run]) - 1)
		clients := make([]*client, readers)
		before := m.reads
		for i := range clients {
			clients[i] = subscribe(t, h, stream.Query{Modes: timeline.Debug, After: ptr(last - uint64(i%4))})
		}
		synctest.Wait()
		read := func() (n int) {
			m.mu.Lock()
			defer m.mu.Unlock()
			n, before = m.reads-before, m.reads
			return n
		}
		if n := read(); n > 3 { // where the log ends, what is before it, and whether there is more
			t.Errorf("%d reads for %d readers that come back", n, readers)
		}
		m.commit(run, story[3]...)
		synctest.Wait()
		if n := read(); n != 1 {
			t.Errorf("%d reads for one commit", n)
		}
		for i, c := range clients {
			if got, want := len(c.frames()), len(story[3])+i%4; got != want {
				t.Fatalf("reader %d got %d events, %d are new to it", i, got, want)
			}
		}
	})
}
