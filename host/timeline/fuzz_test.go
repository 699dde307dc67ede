package timeline_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
)

// FuzzFold: no bytes in the data of events make a fold, a document or a view
// fail, and whatever comes out is JSON.
func FuzzFold(f *testing.F) {
	for i, e := range everything().events {
		f.Add(i, []byte(e.Data), "messages", "login-1")
	}
	f.Add(3, []byte(`{"message":1,"count":1e999,"total":"x","attachments":[1,null,{"kind":[]}],"timeout_seconds":-1e308}`),
		"", "")
	types := timeline.Catalogue()
	f.Fuzz(func(t *testing.T, n int, data []byte, stream, id string) {
		all := everything().events
		fold := new(timeline.Fold)
		for i, e := range all {
			if i == len(all)/2 || i == len(all)-1 {
				fold.Add(store.Event{Sequence: fold.Next(), RunID: e.RunID, Type: string(types[abs(n)%len(types)].Type),
					NodeID: id, InteractionID: id,
					Stream: store.Stream(stream), Data: data})
			}
			e.Sequence = fold.Next()
			if i == abs(n)%len(all) {
				e.Data = data
			}
			if raw, err := json.Marshal(timeline.Document(e)); err != nil || !json.Valid(raw) {
				t.Fatalf("document %q: %v", raw, err)
			}
			if raw, err := json.Marshal(timeline.ChunkOf(e)); err != nil || !json.Valid(raw) {
				t.Fatalf("chunk %q: %v", raw, err)
			}
			fold.Add(e)
		}
		for _, i := range fold.Assistance(false) {
			timeline.ViewOf(i)
		}
		if _, err := json.Marshal(fold.Snapshot(store.Run{Request: store.Request{Configurable: data}, Result: data},
			timeline.About{})); err != nil {
			t.Fatalf("snapshot: %v", err)
		}
		if _, err := json.Marshal(new(timeline.Fold).Snapshot(store.Run{Pruned: true, Result: data},
			timeline.About{})); err != nil {
			t.Fatalf("snapshot of a row: %v", err)
		}
	})
}

func abs(n int) int { return int(uint(n) & 0x7fffffff) }
