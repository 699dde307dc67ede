package stream_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

func TestCloseDoesNotWaitForReaders(t *testing.T) {
	bubble(t, "", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		s, err := h.Subscribe(context.Background(), stream.Client{},
			stream.Query{Run: run, Modes: timeline.Debug, Buffer: stream.MaxBuffer})
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

func TestClose(t *testing.T) {
	bubble(t, "", func() *memory { return told(story[0]) }, stream.Options{},
		func(t *testing.T, m *memory, h *stream.Hub) {
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
			if _, err := h.Subscribe(context.Background(), stream.Client{},
				stream.Query{Run: run}); !errors.Is(err, stream.ErrClosed) {
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
		{"a", "run_1", ""}, {"a", "run_1", ""}, {"b", "run_1", "route"}, {"a", "run_2", ""}, {"a", "run_3", "key"},
		{"b", "run_3", ""}, {"c", "run_4", "global"},
	} {
		if got := try(c.key, store.RunID(c.run)); got != c.want {
			t.Errorf("key %s, run %s: %q, want %q", c.key, c.run, got, c.want)
		}
	}
	var limit *stream.LimitError
	if _, err := h.Poll(context.Background(), stream.Client{Key: "c"},
		stream.PollQuery{Run: "run_4"}); !errors.As(err, &limit) {
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
