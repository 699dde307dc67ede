package stream_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sluicehost/sluice/host/api/stream"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

func TestFoldReadsOnlyWhatIsNew(t *testing.T) {
	m := told(story[:4]...)
	h := stream.New(m, stream.Options{})
	defer h.Close()
	ctx := context.Background()
	interrupt := func() (q timeline.Interrupt) {
		t.Helper()
		if err := h.Fold(ctx, run, func(_ store.Run, f *timeline.Fold) { q, _ = f.InterruptOfNode("collect") }); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if q := interrupt(); q.Closed != timeline.Open {
		t.Errorf("interrupt %+v", q)
	}
	before := m.reads
	interrupt()
	if got := m.reads - before; got != 1 {
		t.Errorf("%d reads of a log that did not grow", got)
	}
	m.commit(run, story[4]...)
	m.commit(run, story[5]...)
	if s, err := h.Snapshot(ctx, run); err != nil || s.Status != timeline.Completed || s.NodeStates == nil {
		t.Errorf("snapshot %+v, %v", s, err)
	}
	before = m.reads
	s, err := h.Brief(ctx, m.runs[run])
	if err != nil || s.Status != timeline.Completed || s.NodeStates != nil || *s.Sluice.LastSequence != 13 ||
		m.reads-before != 1 {
		t.Errorf("brief %+v, %v, %d reads", s, err, m.reads-before)
	}
}

func TestFoldsAreBounded(t *testing.T) {
	m := newMemory()
	h := stream.New(m, stream.Options{})
	defer h.Close()
	for i := range 600 {
		id := store.RunID(fmt.Sprint("run_", i))
		m.runs[id] = store.Run{ID: id}
		m.commit(id, story[0]...)
		if s, err := h.Snapshot(context.Background(), id); err != nil || s.Status != timeline.Running {
			t.Fatalf("run %d: %+v, %v", i, s, err)
		}
	}
	before := m.reads
	for _, id := range []store.RunID{"run_599", "run_0"} {
		if _, err := h.Snapshot(context.Background(), id); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.reads - before; got != 2 {
		t.Errorf("%d reads", got)
	}
	if got := stream.FoldsOf(h); got > 256 {
		t.Errorf("%d logs are kept folded", got)
	}
}
