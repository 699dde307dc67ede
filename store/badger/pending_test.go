package badger

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehost/sluice/store"
)

// What a question says is shown while its store is open, and stands in no
// file; one that was left by a process that died keeps its id, not its words.
func TestPendingSealed(t *testing.T) {
	dir := t.TempDir()
	open := func() *Store {
		s, err := Open(dir, Options{Small: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if err := s.PutConnection(t.Context(), store.Connection{ID: "mailbox"}); err != nil {
		t.Fatal(err)
	}
	run := store.Run{ID: "run_01K9W3C7RZ5D1N8V5X9M2QH4TB", ConnectionID: "mailbox", Status: "active",
		StartedAt: time.Now()}
	lease, err := s.Acquire(t.Context(), run, "host", "boot", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	q := store.Interaction{
		ID: "int_1", RunID: run.ID, Kind: "otp", Message: "planted question",
		Schema: json.RawMessage(`{"title":"planted schema"}`), OpenedAt: time.Now().UTC(),
	}
	r, err := s.Submit(t.Context(), &store.Commit{Lease: lease, Ask: &q})
	if err == nil {
		_, err = r.Result()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Pending(t.Context(), run.ID); err != nil || len(got) != 1 || got[0].Message != q.Message ||
		string(got[0].Schema) != string(q.Schema) {
		t.Errorf("while it is open: %+v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("planted")) {
			t.Errorf("%s has the question", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	if got, err := s.Pending(t.Context(), run.ID); err != nil || len(got) != 1 || got[0].ID != "int_1" ||
		got[0].Kind != "otp" || got[0].Message != "" || got[0].Schema != nil {
		t.Errorf("after it was opened again: %+v, %v", got, err)
	}
}
