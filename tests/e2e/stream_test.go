package e2e

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/daemon"
	"github.com/sluicehost/sluice/host/timeline"
	"github.com/sluicehost/sluice/store"
	"github.com/sluicehost/sluice/tests/e2e/served"
)

// frames opens a stream that the test closes.
func frames(t *testing.T, c *served.Client, id store.RunID, after string) *served.Frames {
	t.Helper()
	f, err := c.Stream(soon(t), id, "?streamMode=debug", after)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A stream shows a run from its first event to its terminal one, and
// is closed by the server behind it.
func TestFollowed(t *testing.T) {
	h, _ := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "emit", "n": 700}, step{"do": "progress", "n": 20, "text": "Going"},
		step{"do": "emit", "n": 1})
	tcp, err := h.TCP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := start(t, h.Client, "one")
	var all sync.WaitGroup
	for range 8 {
		f := frames(t, tcp, id, "")
		all.Go(func() {
			next, last := uint64(0), ""
			for {
				e, err := f.Next()
				if err != nil {
					if !errors.Is(err, io.EOF) || last != string(timeline.RunCompleted) {
						t.Errorf("the stream ended with %v after %s", err, last)
					}
					return
				}
				if e.ID != next {
					t.Errorf("event %d came, want %d", e.ID, next)
					return
				}
				next, last = next+1, e.Event
			}
		})
	}
	all.Wait()
}

// Open streams do not delay the shutdown of the service, and end with it: their run waits on.
func TestShutdownWithStreams(t *testing.T) {
	h, closeIt := open(t, tempDir(t))
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "otp", "text": "Code?"})
	tcp, err := h.TCP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	id := start(t, h.Client, "one")
	if _, err := h.Wait(soon(t), id, served.Asks); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 20 {
		f := frames(t, tcp, id, "")
		first, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			for e := first; ; {
				if timeline.Type(e.Event).Terminal() {
					t.Errorf("the stream shows %s: %s", e.Event, e.Data)
					return
				}
				var err error
				if e, err = f.Next(); err != nil {
					return
				}
			}
		})
	}
	closeIt()
	all.Wait()
}

// A client that reconnects after a restart of the service continues after the last
// event that it saw.
func TestResumeAcrossRestart(t *testing.T) {
	dir := tempDir(t)
	h, closeIt := open(t, dir)
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "stamp", "n": 12}, step{"do": "otp", "text": "Code?"})
	id := start(t, h.Client, "one")
	f := frames(t, h.Client, id, "")
	seen := uint64(0)
	for range 12 {
		e, err := f.Next()
		if err != nil {
			t.Fatal(err)
		}
		seen = e.ID
	}
	asks, err := h.Wait(soon(t), id, served.Asks)
	if err != nil {
		t.Fatal(err)
	}
	closeIt()
	h, _ = open(t, dir)
	if err := h.Answer(soon(t), asks, map[string]any{"answers": map[string]any{"code": "1"}}); err != nil {
		t.Fatal(err)
	}
	f = frames(t, h.Client, id, strconv.FormatUint(seen, 10))
	last := served.Frame{ID: seen}
	for {
		e, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.ID != last.ID+1 {
			t.Fatalf("event %d came after %d", e.ID, last.ID)
		}
		last = e
	}
	if last.Event != string(timeline.RunCompleted) {
		t.Errorf("the last event is %s %s", last.Event, last.Data)
	}
}

// TestDrain: a service that is shutting down still answers reads and streams the end of
// its runs, and refuses changes.
func TestDrain(t *testing.T) {
	h, closeIt := open(t, tempDir(t), func(o *daemon.Options) { o.Service.Grace = time.Minute })
	install(t, h.Client, "tests/e2e/guest")
	connect(t, h.Client, "one", step{"do": "stamp", "n": 30, "ms": 100})
	connect(t, h.Client, "two", step{"do": "otp", "text": "Code?"})
	tcp, err := h.TCP(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	active, waiting := start(t, h.Client, "one"), start(t, h.Client, "two")
	if _, err := h.Wait(soon(t), waiting, served.Asks); err != nil {
		t.Fatal(err)
	}
	f := frames(t, tcp, active, "")
	if _, err := f.Next(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); closeIt() }()
	for {
		if r, _ := tcp.Do(t.Context(), "GET", "/readyz", nil, nil); r != nil &&
			r.StatusCode == http.StatusServiceUnavailable {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if r, err := tcp.Do(t.Context(), "GET", "/healthz", nil, nil); err != nil || r.StatusCode != http.StatusOK {
		t.Errorf("healthz: %v", err)
	}
	if s, err := tcp.Snapshot(t.Context(), active); err != nil || s.RunID == "" {
		t.Errorf("a read while runs end: %v", err)
	}
	r, err := tcp.Do(t.Context(), "POST", "/v1/runs/"+string(active)+"/cancel", map[string]any{}, nil)
	if r == nil || r.StatusCode != http.StatusServiceUnavailable || err == nil ||
		!strings.Contains(err.Error(), "unavailable") {
		t.Errorf("a change while runs end: %v", err)
	}
	last := ""
	for {
		e, err := f.Next()
		if err != nil {
			break
		}
		last = e.Event
	}
	if last != "run.completed" {
		t.Errorf("the last event of a run that ended within the grace is %s", last)
	}
	<-ended
}
