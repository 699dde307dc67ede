package browser_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/browser"
	"github.com/sluicehost/sluice/host/browser/engine"
	"github.com/sluicehost/sluice/host/browser/page"
)

func begin(t *testing.T) (*browser.TraceArchive, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "traces")
	a, err := browser.BeginTrace(dir, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	return a, dir
}

func unpack(t *testing.T, path string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out[f.Name] = string(b)
	}
	return out
}

// The archive has all traces in order, pictures and snapshots beside them, and a page
// that shows them; nothing is left of its parts.
func TestArchive(t *testing.T) {
	a, dir := begin(t)
	a.Action(engine.Click, engine.Trace{ActionID: "act_1", Outcome: "success", Attempts: 1})
	a.Note("denial", map[string]any{"host": "evil.test"})
	a.Action(engine.Wait, engine.Trace{ActionID: "act_2", Outcome: "failure", Attempts: 1})
	a.Picture("act_1", []byte("JPEG"))
	typed := "a typed text"
	a.Snapshot("act_1", []engine.Element{{ElementID: "el_1", Role: "textbox", Label: strings.Repeat("l", 100), Text: typed,
		State: &page.State{TextValue: &typed}}})
	s, err := a.Finish(t.Context())
	if err != nil || s.Name != "browser-trace-run_1.zip" || s.Actions != 2 {
		t.Fatalf("%+v %v", s, err)
	}
	files := unpack(t, filepath.Join(dir, s.Name))
	var kinds []string
	for text := range strings.Lines(files["trace.jsonl"]) {
		var l struct{ Kind, Verb string }
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, l.Kind+l.Verb)
	}
	if !slices.Equal(kinds, []string{"traceclick", "denial", "tracewait"}) || files["act_1.jpg"] != "JPEG" {
		t.Errorf("%v %v", kinds, files)
	}
	if !strings.Contains(files["act_1.json"], "textbox") || strings.Contains(files["act_1.json"], typed) ||
		strings.Contains(files["act_1.json"], strings.Repeat("l", 81)) {
		t.Errorf("the snapshot is %s", files["act_1.json"])
	}
	if info, err := os.Stat(filepath.Join(dir, s.Name)); err != nil || info.Size() != s.Bytes ||
		info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
}

// What a page or a guest wrote is text in the page of the archive, and no markup.
func TestHostileText(t *testing.T) {
	a, dir := begin(t)
	a.Note("event", map[string]string{"host": `</script><img src=x onerror=alert(1)><!--`})
	s, err := a.Finish(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	index := unpack(t, filepath.Join(dir, s.Name))["index.html"]
	if strings.Contains(index, "<img src=x") || strings.Count(index, "</script>") != 1 ||
		!strings.Contains(index, "onerror") {
		t.Error(index)
	}
}

// The ring: evidence makes room for newer evidence, lines stay.
func TestRing(t *testing.T) {
	a, dir := begin(t)
	large := bytes.Repeat([]byte("x"), 4<<20)
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"} {
		a.Action(engine.Click, engine.Trace{ActionID: id})
		a.Picture(id, large)
	}
	a.Picture("too-large", append(large, 'x'))
	a.Picture("../outside", []byte("x"))
	s, err := a.Finish(t.Context())
	if err != nil || s.Actions != 13 {
		t.Fatalf("%+v %v", s, err)
	}
	files := unpack(t, filepath.Join(dir, s.Name))
	if files["a.jpg"] != "" || files["m.jpg"] == "" || files["b.jpg"] == "" ||
		files["too-large.jpg"] != "" || len(files) != 14 {
		t.Errorf("%d files", len(files))
	}
}

// A trace that cannot be begun or finished is a fault with a code, and leaves
// nothing behind.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	var fault *browser.TraceFault
	for _, run := range []string{"../out", "a/b", ""} {
		if _, err := browser.BeginTrace(dir, run); !errors.As(err, &fault) || fault.Code != "trace_not_started" {
			t.Errorf("%q: %v", run, err)
		}
	}
	a, err := browser.BeginTrace(dir, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := browser.BeginTrace(dir, "run_1"); !errors.As(err, &fault) {
		t.Errorf("twice: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Finish(ended); !errors.As(err, &fault) || fault.Code != "trace_not_finished" {
		t.Errorf("%v", err)
	}
	if _, err := a.Finish(t.Context()); err == nil {
		t.Error("finished twice")
	}
	a.Note("event", "late") // and after its end nothing happens
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
	if _, err := browser.BeginTrace(dir, "run_2"); err != nil {
		t.Fatal(err)
	}
	if err := browser.SweepTraces(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("after the sweep: %v %v", left, err)
	}
}
