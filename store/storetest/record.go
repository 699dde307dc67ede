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

func exerciseRecords(t *testing.T, d Driver) {
	t.Run("upsert, change, delete, revive, each with the next version", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		steps := []struct {
			c                  store.Change
			changed            bool
			live, dead, latest uint64
		}{
			{del("k"), false, 0, 0, 0},
			{up("k", `{"v":1}`), true, 1, 0, 1},
			{up("k", `{"v":1}`), false, 1, 0, 1},
			{up("k", `{"v":2}`), true, 1, 0, 2},
			{up("j", `{"v":2}`), true, 2, 0, 3},
			{del("k"), true, 1, 1, 4},
			{del("k"), false, 1, 1, 4},
			{up("k", `{"v":2}`), true, 2, 0, 5},
		}
		for i, step := range steps {
			ack := b.ingest(l, batch("s", step.c))
			equal(t, fmt.Sprintf("step %d changed", i), ack.Changed == 1 && ack.Unchanged == 0, step.changed)
			st := b.stats("a", "s")
			equal(t, fmt.Sprintf("step %d counters", i), []uint64{st.Live, st.Tombstones, st.LastVersion},
				[]uint64{step.live, step.dead, step.latest})
			b.reopen()
		}
		b.verify()
	})
	t.Run("emitted again at another time with the same bytes is no change", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		first := up("k", `{"v":1}`)
		b.ingest(l, batch("s", first))
		again := first
		again.EmittedAt += 1e6
		equal(t, "unchanged", b.ingest(l, batch("s", again)).Unchanged, 1)
		r, err := b.s.Record(t.Context(), "a", "s", "k")
		b.must(err)
		equal(t, "emitted at", r.EmittedAt.UnixMicro(), first.EmittedAt)
	})
	t.Run("one key many times in a batch and across batches of a commit", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		ack := b.ingest(l,
			batch("s", up("k", `1`), up("k", `1`), up("k", `2`), del("k"), del("k"), up("k", `2`)),
			batch("s", up("k", `2`), up("k", `3`), up("j", `1`), del("j"), del("i")))
		equal(t, "changed, unchanged", []int{ack.Changed, ack.Unchanged}, []int{7, 4})
		st := b.stats("a", "s")
		equal(t, "counters", []uint64{st.Live, st.Tombstones, st.LastVersion}, []uint64{1, 1, 7})
		equal(t, "content", b.content("a", "s"), map[string]string{"k": `3`})
		b.reopen()
		equal(t, "content", b.content("a", "s"), map[string]string{"k": `3`})
		b.verify()
	})
	t.Run("submitting a batch again is harmless", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		var changes []store.Change
		for i := range 1200 {
			changes = append(changes, up(fmt.Sprintf("key-%05d", i), fmt.Sprintf(`{"i":%d}`, i)))
		}
		equal(t, "changed", b.ingest(l, batch("s", changes...)).Changed, 1200)
		before := b.all(store.RecordQuery{Connection: "a", Stream: "s", Deleted: true})
		b.reopen()
		for range 3 {
			equal(t, "unchanged", b.ingest(l, batch("s", changes...)).Unchanged, 1200)
		}
		equal(t, "records", b.all(store.RecordQuery{Connection: "a", Stream: "s", Deleted: true}), before)
		b.verify()
	})
	t.Run("identity is connection, stream and key", func(t *testing.T) {
		b := open(t, d)
		for _, c := range []store.ConnectionID{"a", "ab"} {
			l := b.run(c)
			for _, s := range []store.Stream{"s", "bs", "s/1"} {
				b.ingest(l, batch(s, up("k", `"`+string(c)+string(s)+`"`)))
			}
		}
		b.reopen()
		for _, c := range []store.ConnectionID{"a", "ab"} {
			for _, s := range []store.Stream{"s", "bs", "s/1"} {
				equal(t, "content", b.content(c, s), map[string]string{"k": `"` + string(c) + string(s) + `"`})
				equal(t, "last version", b.stats(c, s).LastVersion, uint64(1))
			}
		}
	})
	t.Run("a record and a tombstone as they are read back", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		key := `["x","\u0000é"]`
		c := store.Change{Op: store.Upsert, Compound: true, EmittedAt: 1_700_000_000_123_456, Key: []byte(key),
			Data: []byte(`{"a":{"b":[1,2]}}`)}
		ack := b.ingest(l, batch("s", c))
		want := store.Record{
			Stream: "s", Key: key, Compound: true, Data: json.RawMessage(c.Data), EmittedAt: time.UnixMicro(c.EmittedAt).UTC(),
			IngestedAt: ack.RecordedAt.Truncate(time.Microsecond), Version: 1, RunID: l.RunID,
		}
		b.reopen()
		got, err := b.s.Record(t.Context(), "a", "s", key)
		b.must(err)
		equal(t, "record", got, want)
		c.Op, c.Data = store.Delete, nil
		ack = b.ingest(l, batch("s", c))
		want.Data, want.Deleted, want.Version, want.IngestedAt = nil, true, 2, ack.RecordedAt.Truncate(time.Microsecond)
		got, err = b.s.Record(t.Context(), "a", "s", key)
		b.must(err)
		equal(t, "tombstone", got, want)
		for _, absent := range []string{"x", "", key + " "} {
			if _, err := b.s.Record(t.Context(), "a", "s", absent); !errors.Is(err, store.ErrNotFound) {
				t.Fatalf("absent %q: %v", absent, err)
			}
		}
		if _, err := b.s.Record(t.Context(), "a", "t", key); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("absent stream: %v", err)
		}
	})
	t.Run("keys of 1,024 bytes and records of a megabyte", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		want := map[string]string{}
		for i := range 3 {
			k := strings.Repeat(string(rune('a'+i)), 1024)
			want[k] = `"` + strings.Repeat(string(rune('x'+i)), 1<<20) + `"`
			b.ingest(l, batch("s", up(k, want[k])))
		}
		b.reopen()
		equal(t, "content", b.content("a", "s"), want)
		b.verify()
	})
	t.Run("bytes count what was stored, unchanged records do not", func(t *testing.T) {
		b := open(t, d)
		l := b.run("a")
		b.ingest(l, batch("s", up("k", `{"v":1}`)))
		one := b.stats("a", "s").Bytes
		b.ingest(l, batch("s", up("k", `{"v":1}`)))
		equal(t, "bytes", b.stats("a", "s").Bytes, one)
		if one < uint64(len(`{"v":1}`)) {
			t.Fatalf("bytes = %d", one)
		}
	})
}

func exerciseListing(t *testing.T, d Driver) {
	b := open(t, d)
	l := b.run("a")
	// Ten rounds over 60 keys: most versions are superseded, a third ends deleted.
	type entry struct {
		version uint64
		data    string
		deleted bool
	}
	current := map[string]entry{}
	version := uint64(0)
	for round := range 10 {
		bt := batch("s")
		for i := range 60 {
			k := fmt.Sprintf("k%02d", (i*7+round)%60)
			if (i+round)%3 == 0 && current[k].version != 0 && !current[k].deleted {
				bt.Append(del(k))
				version++
				current[k] = entry{version, "", true}
				continue
			}
			data := fmt.Sprintf(`{"r":%d}`, round)
			bt.Append(up(k, data))
			version++
			current[k] = entry{version, data, false}
		}
		b.ingest(l, bt)
		if round == 4 {
			b.reopen()
		}
	}
	check := func(t *testing.T, q store.RecordQuery, from, to uint64) {
		t.Helper()
		got := b.all(q)
		want := 0
		for _, e := range current {
			if e.version >= from && e.version <= to && (q.Deleted || !e.deleted) {
				want++
			}
		}
		equal(t, "entries", len(got), want)
		for i, r := range got {
			e := current[r.Key]
			if r.Version != e.version || string(r.Data) != e.data || r.Deleted != e.deleted || r.Deleted && !q.Deleted {
				t.Fatalf("entry %d is %+v, want %+v", i, r, e)
			}
			if i > 0 && (r.Version <= got[i-1].Version) != q.Descending {
				t.Fatalf("version %d follows %d", r.Version, got[i-1].Version)
			}
		}
	}
	for _, limit := range []int{1, 7, 1000} {
		for _, deleted := range []bool{false, true} {
			q := store.RecordQuery{Connection: "a", Stream: "s", Limit: limit, Deleted: deleted}
			t.Run(fmt.Sprintf("version order, limit %d, tombstones %v", limit, deleted), func(t *testing.T) {
				check(t, q, 1, version)
				for _, after := range []uint64{1, version / 2, version - 20, version - 1, version} {
					from := q
					from.After = after
					check(t, from, after+1, version)
				}
			})
			t.Run(fmt.Sprintf("newest first, limit %d, tombstones %v", limit, deleted), func(t *testing.T) {
				down := q
				down.Descending = true
				check(t, down, 1, version)
				down.After = version - 20
				check(t, down, 1, version-21)
			})
		}
	}
	t.Run("a page tells the newest version, a point not yet reached has expired", func(t *testing.T) {
		page, err := b.s.Records(t.Context(), store.RecordQuery{Connection: "a", Stream: "s", Limit: 1})
		b.must(err)
		equal(t, "version", page.Version, version)
		if _, err := b.s.Records(t.Context(),
			store.RecordQuery{Connection: "a", Stream: "s", After: version + 1}); !errors.Is(err, store.ErrCursorExpired) {
			t.Fatalf("future point: %v", err)
		}
		page, err = b.s.Records(t.Context(), store.RecordQuery{Connection: "a", Stream: "none"})
		b.must(err)
		equal(t, "page of an unknown stream", page, store.RecordPage{})
	})
	t.Run("pages read while the stream changes reproduce it", func(t *testing.T) {
		model := map[string]string{}
		q := store.RecordQuery{Connection: "a", Stream: "s", Deleted: true, Limit: 9}
		for i := 0; ; i++ {
			page, err := b.s.Records(t.Context(), q)
			b.must(err)
			for _, r := range page.Records {
				q.After = r.Version
				model[r.Key] = string(r.Data)
				if r.Deleted {
					delete(model, r.Key)
				}
			}
			if i < 40 {
				b.ingest(l, batch("s", up(fmt.Sprintf("k%02d", i), fmt.Sprint(i)), del(fmt.Sprintf("k%02d", 59-i))))
			} else if !page.More {
				break
			}
		}
		equal(t, "reproduced", model, b.content("a", "s"))
	})
	t.Run("counters by name", func(t *testing.T) {
		b.ingest(l, batch("b", up("k", `1`)), batch("z", up("k", `1`)))
		all, err := b.s.Streams(t.Context(), "a")
		b.must(err)
		var names []store.Stream
		for _, st := range all {
			names = append(names, st.Stream)
		}
		equal(t, "streams", names, []store.Stream{"b", "s", "z"})
	})
	b.verify()
}
