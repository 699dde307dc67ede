package browser

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/host/browser/engine"
)

// Bounds of traces.
const (
	finishTrace  = 10 * time.Second // B165
	captureTime  = 5 * time.Second  // B192 allows 10
	pictureGrade = 60
	mostElements = 500 // of a snapshot
)

// Traces is the directory of the archives of a data directory (B163).
func Traces(data string) string { return filepath.Join(data, "traces") }

// TraceFile is where the archive of a run is, if it has one.
func TraceFile(data, runID string) string { return filepath.Join(Traces(data), TraceName(runID)) }

// TraceArtifact is the type of archives among artifacts (A84).
const TraceArtifact = "browser-trace"

// A recorder keeps what a browser goes through for the owner, where that is wanted.
// Nothing that fails in it changes the run (B160, B164). It is nil for a run that is
// not traced.
type recorder struct {
	s       *Session
	archive *TraceArchive
	busy    atomic.Bool // a picture is being taken

	mu     sync.Mutex        // guards what follows
	loaded map[string]string // documents of the tabs, by tab
}

// record starts the trace of the run, once.
func (s *Session) record(wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !wanted && !s.o.Trace || s.traced || s.finished != nil {
		return
	}
	s.traced = true
	a, err := BeginTrace(Traces(s.host.o.Data), s.runID)
	if err != nil {
		s.traceFailed(err)
		return
	}
	s.trace.Store(&recorder{s: s, archive: a, loaded: map[string]string{}})
	s.back.Progress("browser trace started: " + TraceName(s.runID))
}

func (s *Session) traceFailed(err error) {
	code := "trace_failed"
	var f *TraceFault
	if errors.As(err, &f) {
		code = f.Code
	}
	s.host.o.Log.Warn("a browser trace failed", "run", s.runID, "error", errors.Unwrap(err))
	s.back.Progress("browser trace failed: " + code)
}

// traceVerb keeps the trace of one verb, and what came of it: documents that were
// loaded since the verb before, and the dialog that it met (B163).
func (s *Session) traceVerb(r engine.Record) {
	t := s.trace.Load()
	if t == nil {
		return
	}
	if r.Amended {
		t.archive.Note("reverted", r.Trace)
		return
	}
	t.archive.Action(r.Verb, r.Trace)
	if o := s.current(); o != nil {
		t.navigations(o)
	}
	if r.Result == nil {
		return
	}
	if details, ok := r.Result.Details.(map[string]any); ok && details["dialog"] != nil {
		t.archive.Note("dialog", details["dialog"])
	}
}

// navigations keeps which hosts the tabs went to. The rest of an address is not the
// trace's to tell (B159).
func (t *recorder) navigations(o *opened) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tab := range o.Browser().Tabs() {
		f := tab.Facts()
		if before, known := t.loaded[tab.ID()]; f.Host != "" && (!known || before != f.Loader) {
			t.archive.Note("navigation", map[string]any{"tab_id": tab.ID(), "url_host": f.Host})
		}
		t.loaded[tab.ID()] = f.Loader
	}
}

// traceNote keeps something else that happened.
func (s *Session) traceNote(kind string, data any) {
	if t := s.trace.Load(); t != nil {
		t.archive.Note(kind, data)
	}
}

// actionID is that of a result, "" for none.
func actionID(result any) string {
	if r, ok := result.(*engine.Result); ok && r != nil {
		return r.ActionID
	}
	return ""
}

// finishTrace writes the archive and says so (B164). Nothing is added to it any more.
func (s *Session) finishTrace(ctx context.Context) {
	t := s.trace.Swap(nil)
	if t == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), finishTrace)
	defer stop()
	got, err := t.archive.Finish(ctx)
	if err != nil {
		s.traceFailed(err)
		return
	}
	word := "actions"
	if got.Actions == 1 {
		word = "action"
	}
	s.back.Artifact(Artifact{
		Type: TraceArtifact, Summary: fmt.Sprintf("Browser trace, %d %s", got.Actions, word), MediaType: "application/zip", Size: got.Bytes, Digest: got.Digest,
	})
	s.back.Progress(fmt.Sprintf("browser trace written: %s (%d actions, %d bytes)", got.Name, got.Actions, got.Bytes))
}
