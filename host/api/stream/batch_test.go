package stream_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
)

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
		if got := c.frames(); len(got) != 1 || !strings.HasPrefix(got[0], "3 batch [{") ||
			strings.Count(got[0], `"eventId"`) != 4 || !strings.Contains(got[0], `"type":"output.chunk"`) {
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

func TestSnapshotIsNoPartOfACommit(t *testing.T) {
	bubble(t, "", func() *memory { return told(story[0]) }, stream.Options{},
		func(t *testing.T, m *memory, h *stream.Hub) {
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
