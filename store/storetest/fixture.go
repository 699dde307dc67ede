package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluicehost/sluice/store"
)

// A bench is a store under test and what the subtests need around it.
type bench struct {
	t   *testing.T
	d   Driver
	s   store.Store
	dir string
	n   int // for ids
}

func open(t *testing.T, d Driver) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, d: d, dir: dir, s: d.Open(t, dir)}
	t.Cleanup(b.close)
	return b
}

func (b *bench) close() {
	b.t.Helper()
	if err := b.s.Close(); err != nil {
		b.t.Errorf("close: %v", err)
	}
}

// reopen continues with the same content; nothing happens in a driver that
// keeps none.
func (b *bench) reopen() {
	b.t.Helper()
	switch {
	case b.d.Reopen != nil:
		b.s = b.d.Reopen(b.t, b.s)
	case !b.d.Forgets:
		b.close()
		b.s = b.d.Open(b.t, b.dir)
	}
}

// restart is reopen for what no image has.
func (b *bench) restart() {
	b.t.Helper()
	if b.d.Reopen == nil {
		b.reopen()
	}
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// run accepts a run of a connection and returns its lease.
func (b *bench) run(c store.ConnectionID) store.Lease {
	b.t.Helper()
	l, err := b.s.Acquire(b.t.Context(), b.newRun(c), "host-1", "boot-1", time.Minute)
	b.must(err)
	return l
}

func (b *bench) newRun(c store.ConnectionID) store.Run {
	b.n++
	return store.Run{
		ID: store.RunID(fmt.Sprintf("run_%026d", b.n)), TraceID: store.TraceID(fmt.Sprintf("trc_%016x", b.n)),
		ConnectorID: "https://example.org/c", ConnectionID: c, Status: "active", Phase: "preparing",
		StartedAt: epoch.Add(time.Duration(b.n) * time.Second), TriggerKind: "manual", Attempt: 1,
	}
}

// event makes an event of the lease's run.
func (b *bench) event(l store.Lease, kind string) store.Event {
	b.n++
	return store.Event{
		ID: store.EventID(fmt.Sprintf("evt_%016x", b.n)), Type: kind, OccurredAt: epoch, RunID: l.RunID, TraceID: l.TraceID,
		ConnectorID: "https://example.org/c", ConnectionID: l.ConnectionID, ActorType: "runtime", ActorID: "sluice",
		Status: "ok", Data: json.RawMessage(`{"n":1}`),
	}
}

// commit submits c and waits for it.
func (b *bench) commit(c *store.Commit) (store.Ack, error) {
	b.t.Helper()
	r, err := b.s.Submit(b.t.Context(), c)
	b.must(err)
	return r.Result()
}

// put commits c and fails the test if that fails.
func (b *bench) put(c *store.Commit) store.Ack {
	b.t.Helper()
	ack, err := b.commit(c)
	b.must(err)
	return ack
}

// end commits the end of a run.
func (b *bench) end(l store.Lease) {
	b.t.Helper()
	b.put(b.ending(l))
}

func (b *bench) ending(l store.Lease) *store.Commit {
	r := b.newRun(l.ConnectionID)
	at := epoch.Add(time.Hour)
	r.ID, r.TraceID, r.Status, r.Phase, r.FinishedAt = l.RunID, l.TraceID, "succeeded", "", &at
	return &store.Commit{Lease: l, Run: &r, End: true, Events: []store.Event{b.event(l, "run.completed")}}
}

// ingest commits batches and their event.
func (b *bench) ingest(l store.Lease, batches ...*store.Batch) store.Ack {
	b.t.Helper()
	return b.put(&store.Commit{Lease: l, Batches: batches, Events: []store.Event{b.event(l, "run.batch_ingested")}})
}

func batch(s store.Stream, changes ...store.Change) *store.Batch {
	b := new(store.Batch)
	b.Reset(s)
	for _, c := range changes {
		b.Append(c)
	}
	return b
}

func up(k, data string) store.Change {
	return store.Change{Op: store.Upsert, EmittedAt: epoch.UnixMicro(), Key: []byte(k), Data: []byte(data)}
}

func del(k string) store.Change {
	return store.Change{Op: store.Delete, EmittedAt: epoch.UnixMicro(), Key: []byte(k)}
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) verify() {
	b.t.Helper()
	b.must(b.s.Verify(context.Background()))
}

func equal(t *testing.T, what string, got, want any, opts ...cmp.Option) {
	t.Helper()
	opts = append(opts, cmpopts.EquateEmpty())
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Fatalf("%s differs (-want +got):\n%s", what, diff)
	}
}

// all lists every record of a stream, page by page.
func (b *bench) all(q store.RecordQuery) []store.Record {
	b.t.Helper()
	var all []store.Record
	for {
		page, err := b.s.Records(b.t.Context(), q)
		b.must(err)
		all = append(all, page.Records...)
		if !page.More {
			return all
		}
		if len(page.Records) == 0 && q.Match == nil {
			b.t.Fatal("a page with More has no record to continue after")
		}
		q.After, q.AfterKey = page.After, page.AfterKey
	}
}

// content is what a stream holds: key to data, tombstones left out.
func (b *bench) content(c store.ConnectionID, s store.Stream) map[string]string {
	b.t.Helper()
	m := make(map[string]string)
	for _, r := range b.all(store.RecordQuery{Connection: c, Stream: s}) {
		m[r.Key] = string(r.Data)
	}
	return m
}

func (b *bench) stats(c store.ConnectionID, s store.Stream) store.StreamStats {
	b.t.Helper()
	all, err := b.s.Streams(b.t.Context(), c)
	b.must(err)
	for _, st := range all {
		if st.Stream == s {
			return st
		}
	}
	return store.StreamStats{Stream: s}
}
