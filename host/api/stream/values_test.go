package stream_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

func TestValues(t *testing.T) {
	measured := ev{"run.progress_reported", `{"message":"m"}`}
	bubble(t, "coalesced", func() *memory { return told(story[0]) }, stream.Options{},
		func(t *testing.T, m *memory, h *stream.Hub) {
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
	bubble(t, "distance", func() *memory { return told(story[0]) }, stream.Options{},
		func(t *testing.T, m *memory, h *stream.Hub) {
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
