package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/store/badger"
)

// TestRealStore follows a run in the embedded store from its start to the
// deletion of its log.
func TestRealStore(t *testing.T) {
	st, err := badger.OpenMemory(badger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	ctx := context.Background()
	row := store.Run{ID: run, ConnectionID: "mailbox", Status: "active", Phase: "preparing", StartedAt: time.Now()}
	lease, err := st.Acquire(ctx, row, "host", "boot", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	h := stream.New(st, stream.Options{})
	defer h.Close()
	s, err := h.Subscribe(ctx, stream.Client{}, stream.Query{Run: run, Modes: timeline.Debug})
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := net.Pipe()
	go func() {
		s.Serve(bufio.NewWriter(theirs), theirs)
		theirs.Close()
	}()
	lines := bufio.NewScanner(ours)
	n := 0
	for _, commit := range story {
		c := &store.Commit{Lease: lease}
		for _, e := range commit {
			c.Events = append(c.Events,
				store.Event{ID: "evt_0000000000000001", Type: e.typ, OccurredAt: time.Now(), RunID: run, ConnectionID: "mailbox",
					Data: json.RawMessage(`{}`)})
			c.End = c.End || terminal(e.typ)
		}
		if c.End {
			now := time.Now()
			row.Status, row.FinishedAt = "succeeded", &now
			c.Run = &row
		}
		receipt, err := st.Submit(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := receipt.Result(); err != nil {
			t.Fatal(err)
		}
		for _, e := range commit { // each arrives because its commit woke the stream
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "event: ") {
			}
			if got := strings.TrimPrefix(lines.Text(), "event: "); got != e.typ {
				t.Fatalf("frame %d is %q, want %q", n, got, e.typ)
			}
			n++
		}
	}
	for lines.Scan() { // to the end of the stream
	}
	if s, err := h.Snapshot(ctx, run); err != nil || s.Status != timeline.Completed {
		t.Errorf("snapshot %+v, %v", s, err)
	}
	if p, err := h.List(ctx, stream.ListQuery{Run: run, Limit: 2}); err != nil ||
		sequences(p) != "12,13 complete=true completed" {
		t.Errorf("list %+v, %v", p, err)
	}
	if err := st.Prune(ctx, run); err != nil {
		t.Fatal(err)
	}
	var gone *stream.ExpiredError
	if _, err := h.Poll(ctx, stream.Client{}, stream.PollQuery{Run: run}); !errors.As(err, &gone) ||
		gone.RetentionFloor != uint64(n) {
		t.Errorf("poll of a deleted log: %v, %+v", err, gone)
	}
}
