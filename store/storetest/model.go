package storetest

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluicehost/sluice/store"
)

// A model is what a connection's streams must hold.
type model struct {
	streams map[store.Stream]*modelStream
}

type modelStream struct {
	last    uint64
	entries map[string]store.Record // by key; only what the model predicts is set
}

func (m *model) apply(b *store.Batch) (changed, unchanged int) {
	s := m.streams[b.Stream]
	if s == nil {
		s = &modelStream{entries: map[string]store.Record{}}
		m.streams[b.Stream] = s
	}
	for _, c := range b.Changes() {
		old, known := s.entries[string(c.Key)]
		deleting := c.Op == store.Delete
		if !known && deleting || known && old.Deleted == deleting && string(old.Data) == string(c.Data) {
			unchanged++
			continue
		}
		changed++
		s.last++
		r := store.Record{Key: string(c.Key), Version: s.last, Deleted: deleting}
		if !deleting {
			r.Data = json.RawMessage(string(c.Data))
		}
		s.entries[r.Key] = r
	}
	return changed, unchanged
}

// exerciseModel drives a store and a map with the same random steps.
func exerciseModel(t *testing.T, d Driver) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		b := &bench{t: t, d: d, dir: dir, s: d.Open(t, dir)}
		defer b.close()
		m := model{streams: map[store.Stream]*modelStream{}}
		l := b.run("a")
		streams := []store.Stream{"s", "t"}
		keys := rapid.IntRange(1, 40).Draw(rt, "keys")
		draw := func() *store.Batch {
			bt := batch(rapid.SampledFrom(streams).Draw(rt, "stream"))
			for range rapid.IntRange(0, 25).Draw(rt, "changes") {
				k := fmt.Sprint("k", rapid.IntRange(0, keys).Draw(rt, "key"))
				if rapid.IntRange(0, 3).Draw(rt, "op") == 0 {
					bt.Append(del(k))
				} else {
					bt.Append(up(k, fmt.Sprint(rapid.IntRange(0, 2).Draw(rt, "data"))))
				}
			}
			return bt
		}
		type expectation struct {
			r                  *store.Receipt
			changed, unchanged int
		}
		var open []expectation
		settle := func() {
			for _, e := range open {
				ack, err := e.r.Result()
				b.must(err)
				equal(t, "ack", []int{ack.Changed, ack.Unchanged}, []int{e.changed, e.unchanged})
			}
			open = nil
		}
		rt.Repeat(map[string]func(*rapid.T){
			"commit": func(*rapid.T) {
				c := &store.Commit{Lease: l}
				var e expectation
				for range rapid.IntRange(1, 3).Draw(rt, "batches") {
					bt := draw()
					changed, unchanged := m.apply(bt)
					e.changed += changed
					e.unchanged += unchanged
					c.Batches = append(c.Batches, bt)
				}
				r, err := b.s.Submit(t.Context(), c)
				b.must(err)
				e.r = r
				open = append(open, e)
			},
			"refused": func(*rapid.T) {
				settle()
				bad := l
				bad.Fence++
				if _, err := b.commit(&store.Commit{Lease: bad, Batches: []*store.Batch{draw()}}); err == nil {
					rt.Fatal("a stale lease committed")
				}
			},
			"reopen": func(*rapid.T) {
				settle()
				b.reopen()
			},
			"next run": func(*rapid.T) {
				settle()
				b.end(l)
				l = b.run("a")
			},
			"": func(*rapid.T) {
				settle()
				m.check(t, b)
			},
		})
		settle()
		m.check(t, b)
		b.verify()
	})
}

func (m *model) check(t *testing.T, b *bench) {
	t.Helper()
	for name, s := range m.streams {
		live, dead := uint64(0), uint64(0)
		for _, r := range s.entries {
			if r.Deleted {
				dead++
			} else {
				live++
			}
		}
		st := b.stats("a", name)
		equal(t, "counters", []uint64{st.Live, st.Tombstones, st.LastVersion}, []uint64{live, dead, s.last})
		got := map[string]store.Record{}
		for _, r := range b.all(store.RecordQuery{Connection: "a", Stream: name, Deleted: true, Limit: 11}) {
			if _, twice := got[r.Key]; twice {
				t.Fatalf("key %q is listed twice", r.Key)
			}
			got[r.Key] = store.Record{Key: r.Key, Version: r.Version, Data: r.Data, Deleted: r.Deleted}
		}
		equal(t, "records", got, s.entries)
		for k, want := range s.entries {
			r, err := b.s.Record(t.Context(), "a", name, k)
			b.must(err)
			equal(t, "record", store.Record{Key: r.Key, Version: r.Version, Data: r.Data, Deleted: r.Deleted}, want)
		}
	}
}
