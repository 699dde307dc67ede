package caldav_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/app"
	"github.com/sluicehost/sluice/store"
)

// TestReplay: a recorded run can be replayed without server and password, with the same
// records, and its recording has neither the password nor a cookie.
func TestReplay(t *testing.T) {
	server := startRadicale(t)
	fill(t, server)
	c := open(t, server)
	q := c.request(t)
	q.Record = app.NewRecorder()
	result := c.do(t, q)
	text, review, err := q.Record.Finish(result)
	if err != nil || review.Exchanges < 5 {
		t.Fatalf("%+v, %v", review, err)
	}
	if bytes.Contains(text, []byte(password)) {
		t.Error("the password is in the recording")
	}
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	server.stop()
	recording, err := app.OpenRecording(path)
	if err != nil {
		t.Fatal(err)
	}
	again := c.do(t, app.RunRequest{Connector: c.connector, Connection: "again", Replay: recording})
	if again.Status != abi.Succeeded || again.RecordsEmitted != result.RecordsEmitted {
		t.Fatalf("%s with %d records: %+v; want %d", again.Status, again.RecordsEmitted, again.Failure, result.RecordsEmitted)
	}
	if d := cmp.Diff(c.data(t, "caldav"), c.data(t, "again")); d != "" {
		t.Error(d)
	}
}

// data returns the records of a connection, by stream and key.
func (c *collecting) data(t *testing.T, connection store.ConnectionID) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range c.connector.Manifest.Streams {
		page, err := c.Store.Records(t.Context(),
			store.RecordQuery{Connection: connection, Stream: store.Stream(s.Name), Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Records {
			out[s.Name+" "+r.Key] = string(r.Data)
		}
	}
	if len(out) == 0 {
		t.Fatalf("connection %s has no records", connection)
	}
	return out
}
