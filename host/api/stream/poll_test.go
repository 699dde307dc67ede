package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
)

// serveOver serves to a connection whose other end reads into nothing.
func serveOver(s *stream.Stream, conn net.Conn) *client {
	c := &client{conn: conn, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		s.Serve(bufio.NewWriter(io.Discard), conn)
	}()
	return c
}

func compact(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func sequences(p stream.Page) string {
	var out []string
	for _, e := range p.Events {
		out = append(out, fmt.Sprint(e.Sequence))
	}
	status := "-"
	if p.TerminalStatus != nil {
		status = string(*p.TerminalStatus)
	}
	return fmt.Sprintf("%s complete=%v %s", strings.Join(out, ","), p.IsComplete, status)
}

func TestPoll(t *testing.T) {
	poll := func(t *testing.T, h *stream.Hub, q stream.PollQuery) string {
		t.Helper()
		q.Run = run
		p, err := h.Poll(context.Background(), stream.Client{}, q)
		if err != nil {
			t.Fatal(err)
		}
		return sequences(p)
	}
	bubble(t, "over", whole, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		for after, want := range map[int]string{
			-1: "0,1,2,3,4,5,6,7,8,9,10,11,12,13 complete=true completed",
			11: "12,13 complete=true completed",
			13: " complete=true completed",
			99: " complete=true completed",
		} {
			q := stream.PollQuery{}
			if after >= 0 {
				q.After = ptr(uint64(after))
			}
			if got := poll(t, h, q); got != want {
				t.Errorf("after %d: %s, want %s", after, got, want)
			}
		}
		if got := poll(t, h, stream.PollQuery{OpenwopOnly: true}); got != "0,1,2,3,5,6,8,9,10,11,12,13 complete=true completed" {
			t.Errorf("openwop: %s", got)
		}
	})
	bubble(t, "live", func() *memory { return told(story[0]) }, stream.Options{},
		func(t *testing.T, m *memory, h *stream.Hub) {
			from := time.Now()
			if got := poll(t, h, stream.PollQuery{}); got != "0,1,2 complete=false -" || time.Since(from) != 0 {
				t.Errorf("at once: %s after %v", got, time.Since(from))
			}
			if got := poll(t, h, stream.PollQuery{After: ptr(uint64(2)),
				Timeout: 7 * time.Second}); got != " complete=false -" || time.Since(from) != 7*time.Second {
				t.Errorf("time-out: %s after %v", got, time.Since(from))
			}
			go func() {
				time.Sleep(3 * time.Second)
				m.commit(run, story[2]...) // filtered out: the poll waits on
				time.Sleep(3 * time.Second)
				m.commit(run, story[5]...)
			}()
			from = time.Now()
			got := poll(t, h, stream.PollQuery{After: ptr(uint64(2)), OpenwopOnly: true})
			if took := time.Since(from); got != "4,5 complete=true completed" || took != 6*time.Second {
				t.Errorf("on a commit: %s after %v", got, took)
			}
			if h.Clients() != 0 {
				t.Errorf("%d clients are left", h.Clients())
			}
		})
	bubble(t, "revoked", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		revoked := errors.New("revoked")
		_, err := h.Poll(context.Background(), stream.Client{Check: func(context.Context) error { return revoked }},
			stream.PollQuery{Run: run, Timeout: time.Minute})
		if !errors.Is(err, revoked) {
			t.Errorf("poll of a revoked key: %v", err)
		}
	})
	bubble(t, "caller gone", nothing, stream.Options{}, func(t *testing.T, m *memory, h *stream.Hub) {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { synctest.Wait(); cancel() }()
		if _, err := h.Poll(ctx, stream.Client{}, stream.PollQuery{Run: run}); !errors.Is(err, context.Canceled) {
			t.Errorf("poll: %v", err)
		}
	})
}

func TestPollPages(t *testing.T) {
	m := told(story[0])
	for range 12_000 {
		m.commit(run, ev{"log.appended", "{}"})
	}
	m.commit(run, story[5]...)
	for range 3 {
		m.commit("run_big", ev{"log.appended", `{"x":"` + strings.Repeat("y", 3<<20) + `"}`})
	}
	m.runs["run_big"] = m.runs[run]
	h := stream.New(m, stream.Options{})
	defer h.Close()
	p, err := h.Poll(context.Background(), stream.Client{}, stream.PollQuery{Run: run})
	if err != nil || len(p.Events) != 10_000 || p.IsComplete || *p.TerminalStatus != timeline.Completed {
		t.Fatalf("%d events, complete %v, status %v, %v", len(p.Events), p.IsComplete, p.TerminalStatus, err)
	}
	p, err = h.Poll(context.Background(), stream.Client{}, stream.PollQuery{Run: run, After: &p.Events[9_999].Sequence})
	if err != nil || len(p.Events) != 2005 || !p.IsComplete || p.Events[0].Sequence != 10_000 {
		t.Errorf("%d events, complete %v, %v", len(p.Events), p.IsComplete, err)
	}
	p, err = h.Poll(context.Background(), stream.Client{}, stream.PollQuery{Run: "run_big"})
	if err != nil || len(p.Events) != 2 || p.IsComplete {
		t.Errorf("%d large events, complete %v, %v", len(p.Events), p.IsComplete, err)
	}
}

func TestList(t *testing.T) {
	m := whole()
	h := stream.New(m, stream.Options{})
	defer h.Close()
	n := func(v uint64) *uint64 { return &v }
	runs, err := timeline.ParseTypes("run.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		q    stream.ListQuery
		want string
	}{
		{"all", stream.ListQuery{}, "0,1,2,3,4,5,6,7,8,9,10,11,12,13 complete=true completed"},
		{"newest", stream.ListQuery{Limit: 3}, "11,12,13 complete=true completed"},
		{"newest before", stream.ListQuery{Limit: 3, Before: n(5)}, "2,3,4 complete=false completed"},
		{"before", stream.ListQuery{Before: n(2)}, "0,1 complete=false completed"},
		{"before the first", stream.ListQuery{Before: n(0)}, " complete=false completed"},
		{"before beyond the end", stream.ListQuery{Before: n(900), Limit: 1}, "13 complete=true completed"},
		{"oldest after", stream.ListQuery{After: n(3), Limit: 2}, "4,5 complete=false completed"},
		{"between", stream.ListQuery{After: n(3), Before: n(6)}, "4,5 complete=false completed"},
		{"types", stream.ListQuery{Types: runs, Limit: 2}, "7,13 complete=true completed"},
		{"types after", stream.ListQuery{Types: runs, After: n(0)}, "4,7,13 complete=true completed"},
		{"openwop", stream.ListQuery{Types: timeline.Filter{OpenwopOnly: true}, After: n(5)},
			"6,8,9,10,11,12,13 complete=true completed"},
	} {
		c.q.Run = run
		p, err := h.List(context.Background(), c.q)
		if got := sequences(p); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
		}
	}
	for name, parse := range map[string]func(string) error{
		"limit":   func(s string) error { _, err := stream.ParseLimit(s); return err },
		"timeout": func(s string) error { _, err := stream.ParseTimeout(s); return err },
		"after":   func(s string) error { _, err := stream.ParseSequence("after", s); return err },
	} {
		for _, bad := range []string{"-1", "x", "1.5", "99999999999999999999"} {
			var p *timeline.ParameterError
			if err := parse(bad); !errors.As(err, &p) || p.Name != name || strings.Contains(err.Error(), bad) {
				t.Errorf("%s %q: %v", name, bad, err)
			}
		}
		if err := parse(""); err != nil {
			t.Errorf("no %s: %v", name, err)
		}
	}
}
