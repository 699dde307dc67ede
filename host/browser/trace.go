package browser

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehost/sluice/host/binding"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

// Bounds of traces.
const (
	finishTrace  = 10 * time.Second
	captureTime  = 5 * time.Second
	pictureGrade = 60
	mostElements = 500 // of a snapshot
)

// Traces returns the directory of trace archives in a data directory.
func Traces(data string) string { return filepath.Join(data, "traces") }

// TraceFile returns the path of a run's archive, which may not exist.
func TraceFile(data, runID string) string { return filepath.Join(Traces(data), TraceName(runID)) }

// TraceArtifact is the artifact type of trace archives.
const TraceArtifact = "browser-trace"

// A recorder records what a browser goes through, for the owner. Its failures never affect the run.
// It is nil for a run without a trace.
type recorder struct {
	s       *Session
	archive *TraceArchive
	busy    atomic.Bool // a picture is being taken

	mu     sync.Mutex        // guards what follows
	loaded map[string]string // current document by tab
}

// tracing is the trace of a run, if it has one.
type tracing struct {
	s        *Session
	recorder atomic.Pointer[recorder] // nil: no trace
	begun    bool                     // started, or failed to start; the session's mu guards it
}

// record starts the trace of the run, once.
func (tr *tracing) record(wanted bool) {
	tr.s.mu.Lock()
	defer tr.s.mu.Unlock()
	if !wanted && !tr.s.o.Trace || tr.begun || tr.s.finished != nil {
		return
	}
	tr.begun = true
	a, err := BeginTrace(Traces(tr.s.host.o.Data), tr.s.runID)
	if err != nil {
		tr.traceFailed(err)
		return
	}
	tr.recorder.Store(&recorder{s: tr.s, archive: a, loaded: map[string]string{}})
	tr.s.back.Progress("browser trace started: " + TraceName(tr.s.runID))
}

func (tr *tracing) traceFailed(err error) {
	code := "trace_failed"
	var f *TraceFault
	if errors.As(err, &f) {
		code = f.Code
	}
	tr.s.host.o.Log.Warn("a browser trace failed", "run", tr.s.runID, "error", errors.Unwrap(err))
	tr.s.back.Progress("browser trace failed: " + code)
}

// traceVerb records the trace of a verb and its effects: documents loaded since the previous verb,
// and a dialog.
func (tr *tracing) traceVerb(r engine.Record) {
	t := tr.recorder.Load()
	if t == nil {
		return
	}
	if r.Amended {
		t.archive.Note("reverted", r.Trace)
		return
	}
	t.archive.Action(r.Verb, r.Trace)
	if o := tr.s.current(); o != nil {
		t.navigations(o)
	}
	if r.Result == nil {
		return
	}
	if details, ok := r.Result.Details.(map[string]any); ok && details["dialog"] != nil {
		t.archive.Note("dialog", details["dialog"])
	}
}

// navigations records the hosts that tabs went to, without the rest of the addresses.
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

// traceNote records another event.
func (tr *tracing) traceNote(kind string, data any) {
	if t := tr.recorder.Load(); t != nil {
		t.archive.Note(kind, data)
	}
}

// actionID returns the action id of a result, or "" if it has none.
func actionID(result any) string {
	if r, ok := result.(*engine.Result); ok && r != nil {
		return r.ActionID
	}
	return ""
}

// finishTrace writes the archive and reports it. Nothing is added afterwards.
func (tr *tracing) finishTrace(ctx context.Context) {
	t := tr.recorder.Swap(nil)
	if t == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), finishTrace)
	defer stop()
	got, err := t.archive.Finish(ctx)
	if err != nil {
		tr.traceFailed(err)
		return
	}
	word := "actions"
	if got.Actions == 1 {
		word = "action"
	}
	tr.s.back.Artifact(binding.Artifact{
		Type: TraceArtifact, Summary: fmt.Sprintf("Browser trace, %d %s", got.Actions, word), MediaType: "application/zip",
		Size: got.Bytes, Digest: got.Digest,
	})
	tr.s.back.Progress(fmt.Sprintf("browser trace written: %s (%d actions, %d bytes)", got.Name, got.Actions, got.Bytes))
}

// checkpointed records the page at a checkpoint with its phase, including the page of a session
// that was just opened.
func (tr *tracing) checkpointed(o *opened, phase string) {
	label := "checkpoint-" + strconv.FormatInt(time.Now().UnixMicro(), 10)
	tr.traceNote("checkpoint", map[string]any{"phase": phase, "picture": label})
	tr.capture(o, label)
}

// capture records a picture of the page and its elements after an action or a checkpoint, in the
// background. It contains nothing typed: fields are covered, and elements have no values. Nothing
// is captured while the owner has control or if the page does not answer.
func (tr *tracing) capture(o *opened, label string) {
	t := tr.recorder.Load()
	if t == nil || tr.s.owner.Load() || !t.busy.CompareAndSwap(false, true) {
		return
	}
	tr.s.work.Go(func() {
		defer t.busy.Store(false)
		ctx, stop := context.WithTimeout(tr.s.life, captureTime)
		defer stop()
		tabs := o.Browser().Tabs()
		if len(tabs) == 0 || o.Fault() != nil || tabs[0].Facts().Dialog != nil {
			return
		}
		if err := t.take(ctx, tabs[0], label); err != nil {
			tr.s.note("evidence of a trace was not taken", err)
		}
	})
}

// take adds the evidence of one moment of a tab. The picture is taken last, with every field
// covered that the look found.
func (t *recorder) take(ctx context.Context, tab page.Tab, label string) error {
	id, args := engine.NewIdentity(), &engine.SnapshotArgs{Limit: mostElements}
	q := engine.WantSnapshot(id, args)
	seen, err := tab.Read(ctx, q)
	if err != nil {
		return err
	}
	cover, typed := fields(seen)
	engine.Mask(seen, t.s.seals.Hide)
	snapshot, miss := engine.NewLook(seen, q).Snapshot(id, args)
	picture, err := tab.Screenshot(ctx,
		page.Shot{Format: "jpeg", Quality: pictureGrade, Cover: append(cover, t.s.seals.filled()...)})
	if err != nil || t.s.owner.Load() {
		return err
	}
	t.archive.Picture(label, picture.Data)
	if miss == nil {
		t.archive.Snapshot(label, without(snapshot.Elements, typed))
	}
	return nil
}

// fields returns the text fields of a page and their content.
func fields(seen *page.Observation) (refs []page.Ref, typed []string) {
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if !n.Editable {
			continue
		}
		refs = append(refs, n.Ref)
		for _, v := range []*string{n.State.TextValue, n.State.RawValue} {
			if v != nil && len(*v) >= wholeFrom {
				typed = append(typed, strings.Join(strings.Fields(*v), " "))
			}
		}
	}
	return refs, typed
}

// without clears labels that contain what a field holds, as labels of surrounding elements may.
func without(elements []engine.Element, typed []string) []engine.Element {
	for i := range elements {
		e := &elements[i]
		if slices.ContainsFunc(typed, func(v string) bool { return v != "" && strings.Contains(e.Label, v) }) {
			e.Label = ""
		}
	}
	return elements
}
