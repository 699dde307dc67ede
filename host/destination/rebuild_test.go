package destination_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluicehost/sluice/host"
	"github.com/sluicehost/sluice/host/destination"
	"github.com/sluicehost/sluice/host/destination/sqlite"
)

// halting is a kind of which the first batch does not end before its pass is halted.
type halting struct {
	sqlite.Kind
	once    sync.Once
	entered chan struct{}
}

func (*halting) Scheme() string { return "halting:" }

func (*halting) Check(url, _ string) (string, error) { return url, nil }

func (k *halting) Open(ctx context.Context, url string, o destination.Owner) (destination.Sink, error) {
	s, err := k.Kind.Open(ctx, "sqlite:"+url[len("halting:"):], o)
	return &haltingSink{s, k}, err
}

type haltingSink struct {
	destination.Sink
	k *halting
}

func (s *haltingSink) Apply(ctx context.Context, b *destination.Batch) error {
	s.k.once.Do(func() {
		close(s.k.entered)
		<-ctx.Done()
	})
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Sink.Apply(ctx, b)
}

// TestRebuildOfNothing: a rebuild that is refused does not end the pass that was in progress.
func TestRebuildOfNothing(t *testing.T) {
	k := &halting{entered: make(chan struct{})}
	w := newWorld(t, k)
	w.collect("a", `{"id":"a","n":1}`)
	fs := w.open()
	path := filepath.Join(t.TempDir(), "out.db")
	d, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "here", URL: "halting:" + path})
	w.must(err)
	if d.Behind != 1 {
		t.Errorf("%d versions behind where nothing is there yet, want 1", d.Behind)
	}
	<-k.entered
	var r *host.Refusal
	if _, err := fs.RebuildDestination(t.Context(), "here", "mail", "nothing"); !errors.As(err, &r) || r.Code != "validation_error" {
		t.Errorf("%v", err)
	}
	w.until(fs, "here", "brought in", current)
	if n := w.count(path, "SELECT count(*) FROM mail_items"); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestRebuildOfARemovedFile: a rebuild fills anew what somebody has removed.
func TestRebuildOfARemovedFile(t *testing.T) {
	w := newWorld(t)
	w.collect("a", `{"id":"a","n":1}`)
	fs := w.open()
	path := filepath.Join(t.TempDir(), "out.db")
	_, err := fs.AddDestination(t.Context(), host.NewDestination{Name: "here", URL: "sqlite:" + path})
	w.must(err)
	w.until(fs, "here", "brought in", current)
	for _, beside := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + beside); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if d, err := fs.RebuildDestination(t.Context(), "here", "", ""); err != nil || !current(d) {
		t.Errorf("%+v %v", d, err)
	}
	if n := w.count(path, "SELECT count(*) FROM mail_items"); n != 1 {
		t.Errorf("%d rows", n)
	}
}
