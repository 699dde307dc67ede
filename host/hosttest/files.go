package hosttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/store"
)

// A Hold has a record of the stream answers hold a file of that content, type and name.
type Hold func(t *testing.T, id store.ConnectionID, key string, content []byte, f store.File) store.File

// HoldIn is a Hold of a store: a run of its own, by a host that is in it.
func HoldIn(st store.Store, hostID, epoch string) Hold {
	return func(t *testing.T, id store.ConnectionID, key string, content []byte, f store.File) store.File {
		t.Helper()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		kept, err := store.FilesOf(st)
		must(err)
		x, err := kept.StageFile(t.Context(), id)
		must(err)
		_, err = x.Write(content)
		must(err)
		f.Digest, f.Size, err = x.Finish()
		must(err)
		row := store.Run{ID: store.RunID("run_" + string(id) + key), ConnectionID: id, Status: "active",
			StartedAt: time.Now(), TriggerKind: "manual"}
		lease, err := st.Acquire(t.Context(), row, hostID, epoch, time.Minute)
		must(err)
		batch := &store.Batch{Stream: "answers"}
		batch.Append(store.Change{Key: []byte(key), Data: []byte(`{"id":"` + key + `"}`), EmittedAt: 1})
		batch.Hold([]store.Held{{Field: "attachment", File: f}})
		now := time.Now()
		row.Status, row.FinishedAt = "succeeded", &now
		receipt, err := st.Submit(t.Context(),
			&store.Commit{Lease: lease, Grant: "another", Batches: []*store.Batch{batch}, Files: []store.StagedFile{x},
				Run: &row, End: true,
				Events: []store.Event{{ID: "evt_0000000000000001", Type: "run.completed", OccurredAt: now, RunID: row.ID,
					ConnectionID: id, Data: json.RawMessage(`{}`)}}})
		must(err)
		_, err = receipt.Result()
		must(err)
		return f
	}
}

// files are listed page by page, and read whole or from anywhere.
func files(s *suite) {
	s.made("filed")
	_, err := s.CreateConnection(s.ctx, host.NewConnection{ConnectorName: "hosttest", ConnectionID: "filed-not"})
	s.must(err)
	defer func() { s.must(s.DeleteConnection(s.ctx, "filed-not", true)) }()
	if page, err := s.Files(s.ctx, store.FileQuery{Connection: "filed"}); err != nil || len(page.Files) > 0 || page.More {
		s.Errorf("%+v, %v", page, err)
	}
	long := bytes.Repeat([]byte("0123456789"), 50_000)
	want := map[string]store.File{
		"a": s.hold(s.T, "filed", "a", long, store.File{MediaType: "application/pdf", Name: "ev\"il \u00fc.pdf"}),
		"b": s.hold(s.T, "filed", "b", nil, store.File{MediaType: "text/plain"}),
		"c": s.hold(s.T, "filed", "c", []byte("short"), store.File{MediaType: "image/png", Name: "c.png"}),
	}
	q, listed := store.FileQuery{Connection: "filed", Limit: 1}, 0
	for more := true; more; listed++ {
		page, err := s.Files(s.ctx, q)
		s.must(err)
		if len(page.Files) != 1 {
			s.Fatalf("%+v", page)
		}
		if f := page.Files[0]; f.File != want[f.Key] || f.Stream != "answers" || f.Field != "attachment" {
			s.Errorf("%+v, want %+v", f, want[f.Key])
		}
		q.After, more = page.After, page.More
	}
	if listed != len(want) {
		s.Errorf("%d files", listed)
	}
	if page, err := s.Files(s.ctx, store.FileQuery{Connection: "filed", Stream: "answers", Key: "c"}); err != nil ||
		len(page.Files) != 1 || page.Files[0].Name != "c.png" {
		s.Errorf("of one record: %+v, %v", page, err)
	}
	for key, content := range map[string][]byte{"a": long, "b": nil, "c": []byte("short")} {
		from, info, err := s.OpenFile(s.ctx, "filed", want[key].Digest)
		s.must(err)
		got, err := io.ReadAll(from)
		if err != nil || !bytes.Equal(got, content) || info != want[key] || from.Size() != int64(len(content)) {
			s.Errorf("%s: %d of %d bytes, %+v, %v", key, len(got), from.Size(), info, err)
		}
		if at, err := from.Seek(-int64(len(content))/2, io.SeekEnd); err != nil || at != int64(len(content)-len(content)/2) {
			s.Errorf("%s: at %d, %v", key, at, err)
		}
		if got, err = io.ReadAll(from); err != nil || !bytes.Equal(got, content[len(content)-len(content)/2:]) {
			s.Errorf("%s: %d bytes of its second half, %v", key, len(got), err)
		}
		if _, err := from.Seek(-1, io.SeekStart); err == nil {
			s.Error("it seeks before the beginning")
		}
		s.must(from.Close())
	}
	// What no record of a connection holds is not there, whoever else holds it.
	for what, open := range map[string]func() error{
		"of another connection": func() error { _, _, err := s.OpenFile(s.ctx, "filed-not", want["a"].Digest); return err },
		"of nobody": func() error {
			_, _, err := s.OpenFile(s.ctx, "filed", store.Digest("sha256:"+strings.Repeat("0", 64)))
			return err
		},
		"no digest": func() error { _, _, err := s.OpenFile(s.ctx, "filed", "../../etc/passwd"); return err },
	} {
		if err := open(); !errors.Is(err, store.ErrNotFound) {
			s.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Files(s.ctx, store.FileQuery{Connection: "filed", After: "!"}); err == nil {
		s.Error("a cursor that is none")
	}
}
