package destination_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/files"
)

// TestBlocked: a stream whose table cannot be fed holds up no other of its destination.
func TestBlocked(t *testing.T) {
	w := newWorld(t)
	fs := w.open()
	path := filepath.Join(t.TempDir(), "out.db")
	w.count(path, "CREATE TABLE mail_items (mine INTEGER)")
	w.collect("a", `{"id":"a"}`)
	w.collectOf("others", "b", `{"id":"b"}`)
	_, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "out", URL: "sqlite:" + path})
	w.must(err)
	d := w.until(fs, "out", "waiting", func(d host.Destination) bool { return d.State == "waiting" })
	if !strings.Contains(d.Error, "Sluice did not make: mail_items") || len(d.Tables) != 2 ||
		d.Tables[0].Table != "" || d.Tables[0].Error != d.Error || d.Tables[0].Behind != 1 ||
		d.Tables[1].Table != "mail_others" || d.Tables[1].Error != "" || d.Behind != 1 {
		t.Errorf("%+v", d)
	}
	w.count(path, "DROP TABLE mail_items")
	d, err = fs.SyncDestination(t.Context(), "out")
	if err != nil || d.Error != "" || w.count(path, "SELECT count(*) FROM mail_items") != 1 {
		t.Errorf("%+v %v", d, err)
	}
	w.count(path, "CREATE INDEX mine ON mail_items (n)")
	w.collect("a", `{"id":"a","n":"none"}`)
	w.collectOf("others", "b", `{"id":"c"}`)
	d, err = fs.SyncDestination(t.Context(), "out")
	if err != nil || !strings.Contains(d.Error, "an index, a view or a trigger uses it; drop that first") ||
		w.count(path, "SELECT count(*) FROM mail_others WHERE id = 'c'") != 1 {
		t.Errorf("%+v %v", d, err)
	}
}

// TestSeveralBlocked: each blocked stream says why, whether it has a table or not, until it can be fed.
func TestSeveralBlocked(t *testing.T) {
	w := newWorld(t)
	fs := w.open()
	path := filepath.Join(t.TempDir(), "out.db")
	w.collect("a", `{"id":"a"}`)
	_, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "out", URL: "sqlite:" + path})
	w.must(err)
	w.until(fs, "out", "current", current)
	w.count(path, "CREATE TABLE mail_first (mine INTEGER)")
	w.count(path, "CREATE VIEW mail_second AS SELECT 1")
	w.count(path, "CREATE INDEX mine ON mail_items (n)")
	w.collectOf("first", "a", `{"id":"a"}`)
	w.collectOf("others", "a", `{"id":"a"}`)
	w.collectOf("second", "a", `{"id":"a"}`)
	w.collect("a", `{"id":"a","n":"none"}`)
	d, err := fs.SyncDestination(t.Context(), "out")
	w.must(err)
	reasons := map[string]string{}
	for _, s := range d.Tables {
		reasons[s.Stream] = s.Error
	}
	if !strings.Contains(reasons["first"], "mail_first") || !strings.Contains(reasons["second"], "mail_second") ||
		!strings.Contains(reasons["items"], "an index, a view or a trigger uses it") || len(d.Tables) != 4 ||
		!strings.Contains(d.Error, "3 streams cannot be written") || d.Behind != 3 {
		t.Errorf("%+v", d)
	}
	w.count(path, "DROP TABLE mail_first")
	if d, err = fs.SyncDestination(t.Context(), "out"); err != nil || d.Behind != 2 || d.Tables[0].Table != "mail_first" ||
		d.Tables[0].Error != "" || d.Tables[1].Error == "" || !strings.Contains(d.Error, "2 streams") {
		t.Errorf("%+v %v", d, err)
	}
	fs.Close()
	fs = w.open()
	d, err = fs.Destination(t.Context(), "out") // also before it is tried again
	if err != nil || len(d.Tables) != 4 || d.Tables[1].Error == "" || d.Tables[3].Error == "" {
		t.Errorf("%+v %v", d, err)
	}
	w.count(path, "DROP VIEW mail_second")
	w.count(path, "DROP INDEX mine")
	d, err = fs.SyncDestination(t.Context(), "out")
	if err != nil || !current(d) || len(d.Tables) != 4 || d.Tables[1].Error+d.Tables[3].Error != "" {
		t.Errorf("%+v %v", d, err)
	}
}

// TestBlockedMeanwhile: while a table is blocked, what is committed to other streams arrives
// by itself, however far away the next try of the blocked one is.
func TestBlockedMeanwhile(t *testing.T) {
	w := newWorld(t)
	hour := time.Now()
	fs, err := destination.Open(t.Context(),
		destination.Options{Store: w.store, Secrets: w.secrets, Kinds: w.kinds, Host: "host-1",
			// Time stands still but for the settling of commits, so that no retry is ever due.
			Now: func() time.Time { return hour }})
	w.must(err)
	t.Cleanup(fs.Close)
	path := filepath.Join(t.TempDir(), "out.db")
	w.count(path, "CREATE TABLE mail_items (mine INTEGER)")
	w.collect("a", `{"id":"a"}`)
	_, err = fs.AddDestination(t.Context(), host.NewDestination{Name: "out", URL: "sqlite:" + path})
	w.must(err)
	for range 12 { // each doubles the wait
		_, err = fs.SyncDestination(t.Context(), "out")
		w.must(err)
	}
	d := w.until(fs, "out", "waiting", func(d host.Destination) bool { return d.State == "waiting" })
	for i := range 3 {
		w.collectOf("others", fmt.Sprint(i), `{"id":"b"}`)
		d = w.until(fs, "out", "fed",
			func(d host.Destination) bool { return len(d.Tables) == 2 && d.Tables[1].Version == uint64(i+1) })
	}
	if !strings.Contains(d.Error, "mail_items") || d.NextTry == nil || !d.NextTry.After(hour.Add(time.Minute)) {
		t.Errorf("the blocked table is told of and tried again later: %+v", d)
	}
}

// TestInTheWay: what is in the way of a file is named, with what to do about it.
func TestInTheWay(t *testing.T) {
	w := newWorld(t, files.JSONL)
	fs := w.open()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	w.must(os.WriteFile(at("plain"), []byte("x"), 0o600))
	w.must(os.Symlink(at("gone/at/all"), at("dead")))
	w.must(os.Mkdir(at("directory"), 0o700))
	for url, want := range map[string]string{
		"sqlite:" + at("plain/x.db"):  at("plain") + " is a file, and a directory has to be there; move it away",
		"sqlite:" + at("dead"):        at("dead") + " is a link to " + at("gone/at/all") + ", which is not there",
		"sqlite:" + at("dead/x.db"):   at("dead") + " is a link to",
		"sqlite:" + at("directory"):   at("directory") + " is a directory, and a file has to be there",
		"sqlite:" + os.DevNull:        os.DevNull + " is no regular file",
		"jsonl:" + at("plain/folder"): at("plain") + " is a file",
		"jsonl:" + at("dead"):         at("dead") + " is a link to",
		"jsonl:" + at("dead/folder"):  at("dead") + " is a link to",
	} {
		if _, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "out", URL: url}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
