package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// Populate puts something of every kind into an empty store, of which much was changed and
// erased again: what copies of it must have.
func Populate(t *testing.T, s store.Store) {
	t.Helper()
	b := &bench{t: t, s: s}
	ctx := t.Context()
	for _, bundled := range []bool{true, false} {
		b.must(s.PutConnector(ctx,
			store.Connector{ID: "https://example.org/c", Name: "c", Bundled: bundled,
				Manifest: json.RawMessage(`{"a": "<b>"}`)}))
	}
	b.must(s.PutPin(ctx, store.Pin{ConnectorID: "https://example.org/c", Signer: store.Signer{Key: "k"}, PinnedAt: epoch}))
	for _, c := range []store.ConnectionID{"a", "long-name", "gone", "kept"} {
		b.must(s.PutConnection(ctx,
			store.Connection{ID: c, Settings: json.RawMessage(`{"é": 1}`),
				Grant: &store.Grant{ID: "g", Status: "active", AccessMode: "continuous"}}))
	}
	b.must(s.Write(ctx,
		store.Write{Kind: store.Schedules, ID: "a", Data: json.RawMessage(`{"every": "1h", "x": "<&>"}`)},
		store.Write{Kind: "n", ID: "\x00\xff binary", Data: json.RawMessage(`1`), ExpiresAt: time.Now().Add(time.Hour)},
		store.Write{Kind: store.Keys, ID: "gone", Data: json.RawMessage(`2`)},
	))
	b.must(s.Write(ctx, store.Write{Kind: store.Schedules, ID: "a", Data: json.RawMessage(`{"every":"2h"}`)},
		store.Write{Kind: store.Keys, ID: "gone"}))
	for n := range 3 {
		b.runOver("a", n)
	}
	b.runOver("gone", 0)
	b.must(s.DeleteConnection(ctx, "gone", true))
	b.runOver("kept", 1)
	b.must(s.DeleteConnection(ctx, "kept", false))
	old := b.run("a")
	b.end(old)
	b.must(s.Prune(ctx, old.RunID))
	b.contents("long-name")

	l := b.run("long-name") // it goes on
	b.put(&store.Commit{
		Lease: l, Grant: "g", Staged: []store.State{{Stream: "s", Cursor: json.RawMessage(`{"a":1}`),
			CommittedAt: epoch, RunID: l.RunID}},
		Ask:    &store.Interaction{ID: "q", RunID: l.RunID, Message: "which?", OpenedAt: epoch},
		Events: []store.Event{b.event(l, "run.interaction_required")},
	})
}

// runOver is a run that ends, with records that supersede those of the runs before.
func (b *bench) runOver(c store.ConnectionID, n int) {
	l := b.run(c)
	bt := batch("s")
	for k := range 4500 {
		bt.Append(up(fmt.Sprint("key", k), fmt.Sprintf(`{"n":%d}`, n)))
		if k%1000 == 999 {
			b.ingest(l, bt)
			bt = batch("s")
		}
	}
	for k := range 100 {
		bt.Append(del(fmt.Sprint("key", k*40+n)))
	}
	compound := up(`["a","b"]`, `{"long":"`+strings.Repeat("x", 20_000)+`"}`)
	compound.Compound = true
	// Its name is longer than "s" and comes before it, which the order of items is not.
	other := batch("other"+store.Stream(fmt.Sprint(n)), compound, up("only "+fmt.Sprint(n), `{"<":"é"}`))
	b.ingest(l, bt, other)
	end := b.ending(l)
	end.Grant = store.GrantID(fmt.Sprint("g", n%2))
	end.Advance = []store.State{{Stream: "s", Cursor: json.RawMessage(fmt.Sprint(n)), CommittedAt: epoch, RunID: l.RunID}}
	for i := range 3 {
		end.Gaps = append(end.Gaps,
			store.DetailGap{ID: fmt.Sprint("gap", i), Stream: "s", Ref: fmt.Sprint(i, n), Status: "pending", CreatedAt: epoch,
				UpdatedAt: epoch, RunID: l.RunID})
	}
	b.put(end)
}

// contents has records hold files: one short, one long, one by two, and one no longer.
func (b *bench) contents(c store.ConnectionID) {
	if _, err := store.FilesOf(b.s); errors.Is(err, store.ErrNoFiles) {
		return
	}
	l := b.run(c)
	var staged []store.StagedFile
	var files []store.File
	for _, content := range []string{"short", strings.Repeat("long ", 200_000), "", "dropped"} {
		x, f := b.stage(c, []byte(content))
		staged, files = append(staged, x), append(files, f)
	}
	bt := holding("docs", map[string][]store.File{"a": files[:1], "b": {files[1]}, "b2": {files[0]},
		"c": {files[2]}, "d": {files[3]}},
		up("a", `{}`), up("b", `{}`), up("b2", `{}`), up("c", `{}`), up("d", `{}`))
	b.put(&store.Commit{Lease: l, Batches: []*store.Batch{bt}, Files: staged,
		Events: []store.Event{b.event(l, "run.batch_ingested")}})
	b.put(&store.Commit{Lease: l, Batches: []*store.Batch{holding("docs", nil, del("d"))},
		Events: []store.Event{b.event(l, "run.batch_ingested")}})
	b.end(l)
}

// GoOn uses what Populate made: the run that went on ends, and the next one of each connection
// goes on where the last one was.
func GoOn(t *testing.T, s store.Store) {
	t.Helper()
	b := &bench{t: t, s: s, n: 1_000_000}
	leases, err := s.Leases(t.Context())
	b.must(err)
	if len(leases) != 1 {
		t.Fatalf("%d leases", len(leases))
	}
	b.put(&store.Commit{Lease: leases[0], Batches: []*store.Batch{batch("s", up("x", `1`))},
		Events: []store.Event{b.event(leases[0], "run.batch_ingested")}})
	b.end(leases[0])
	b.must(s.Verify(t.Context()))
	was := b.stats("a", "s")
	l := b.run("a")
	if l.Fence != 5 {
		t.Errorf("fence %d", l.Fence)
	}
	ack := b.ingest(l, batch("s", up("key1", `{"n":2}`), up("key1", `{"n":3}`), up("key4", `{"n":3}`), up("new", `{}`),
		up("key3", `{"n":2}`)))
	if ack.Changed != 3 || ack.Unchanged != 2 {
		t.Errorf("%+v", ack)
	}
	if now := b.stats("a", "s"); now.LastVersion != was.LastVersion+3 || now.Live != was.Live+1 {
		t.Errorf("%+v, then %+v", was, now)
	}
	page, err := s.Records(t.Context(),
		store.RecordQuery{Connection: "a", Stream: "s", After: was.LastVersion, Deleted: true})
	b.must(err)
	if len(page.Records) != 3 {
		t.Errorf("%d records are new", len(page.Records))
	}
	b.end(l)
	if _, err := store.FilesOf(s); err == nil {
		l := b.run("long-name")
		bt := batch("docs", del("a"), del("b"), del("b2"), del("c"))
		b.put(&store.Commit{Lease: l, Batches: []*store.Batch{bt}, Events: []store.Event{b.event(l, "run.batch_ingested")}})
		b.end(l)
		if u := b.usage("long-name"); u != (store.FileUsage{}) {
			t.Errorf("%+v is left of the files", u)
		}
	}
	b.must(s.DeleteConnection(t.Context(), "a", true))
	b.must(s.Verify(t.Context()))
}
