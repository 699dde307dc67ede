package audit_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehost/sluice/host/audit"
)

// after reads a log from a head on, a few entries at a time.
func after(t *testing.T, l *audit.Log, h audit.Head) (targets []string, end audit.Head) {
	t.Helper()
	for {
		page, err := l.After(t.Context(), h, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return targets, h
		}
		for _, e := range page {
			targets, h = append(targets, e.Target), audit.Head{Entries: e.Sequence, Hash: e.Hash}
		}
	}
}

func appendTargets(t *testing.T, l *audit.Log, targets ...string) {
	t.Helper()
	for _, target := range targets {
		if err := l.Append(audit.Event{Action: audit.SecretSet, Target: target, Outcome: audit.Done}); err != nil {
			t.Fatal(err)
		}
	}
}

func openLog(t *testing.T, dir string) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l.SetRoll(600) // two or three entries a file
	return l
}

// A log is read on from where it was read to, over the ends of its files.
func TestAfter(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	got, end := after(t, l, audit.Head{})
	if len(got) > 0 || end.Entries > 0 {
		t.Fatalf("of no log: %v", got)
	}
	appendTargets(t, l, "a", "b", "c", "d", "e")
	got, end = after(t, l, end)
	if strings.Join(got, "") != "abcde" || end.Entries != 5 {
		t.Fatalf("%v, %+v", got, end)
	}
	appendTargets(t, l, "f", "g", "h")
	got, end = after(t, l, end)
	if strings.Join(got, "") != "fgh" || end.Entries != 8 {
		t.Fatalf("%v, %+v", got, end)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl")); err != nil || len(names) < 3 {
		t.Errorf("the log has %d files, %v", len(names), err)
	}
	if head, err := l.Head(); err != nil || head != end {
		t.Errorf("it ends with %+v, %v", head, err)
	}
}

// What the witness does not count yet may still be taken back.
func TestAfterReadsWhatIsAcknowledged(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	appendTargets(t, l, "a")
	witness := filepath.Join(dir, "witness", "audit.head")
	text, err := os.ReadFile(witness)
	if err != nil {
		t.Fatal(err)
	}
	appendTargets(t, l, "b")
	if err := os.WriteFile(witness, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := after(t, l, audit.Head{}); strings.Join(got, "") != "a" {
		t.Errorf("%v", got)
	}
}

// A line that was altered is passed over, and the rest is read; one that was altered after it was read changes
// nothing.
func TestAfterBrokenLine(t *testing.T) {
	dir := t.TempDir()
	l, err := audit.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	appendTargets(t, l, "a", "b", "c")
	_, end := after(t, l, audit.Head{})
	path := filepath.Join(dir, "audit", "00000001.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	altered := strings.Replace(strings.Replace(string(text), `"target":"b"`, `"target":"x"`, 1), `"target":"c"`,
		`"target":"y"`, 1)
	if err := os.WriteFile(path, []byte(altered), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := after(t, l, audit.Head{}); strings.Join(got, "") != "a" {
		t.Errorf("%v", got)
	}
	appendTargets(t, l, "d")
	if got, _ := after(t, l, end); len(got) != 2 || got[1] != "d" { // the first is the note
		t.Errorf("%v", got)
	}
}

// A log in the place of another is told from one that goes on, however long it is.
func TestAfterOtherLog(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	appendTargets(t, l, "a", "b", "c")
	_, end := after(t, l, audit.Head{})
	for _, path := range []string{"audit", "witness"} {
		if err := os.RemoveAll(filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	if page, err := l.After(t.Context(), end, 2); err != nil || len(page) > 0 {
		t.Errorf("of a log that is gone: %v, %v", page, err)
	}
	for _, target := range []string{"1", "2", "3", "4", "5"} {
		appendTargets(t, l, target)
		if _, err := l.After(t.Context(), end, 2); !errors.Is(err, audit.ErrOtherLog) {
			t.Errorf("after entry %s: %v", target, err)
		}
	}
	if got, _ := after(t, l, audit.Head{}); strings.Join(got, "") != "12345" {
		t.Errorf("%v", got)
	}
}

// A log whose file is gone goes on after its witness, and is the same log.
func TestAfterLostFile(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	appendTargets(t, l, "a", "b")
	_, end := after(t, l, audit.Head{})
	if err := os.RemoveAll(filepath.Join(dir, "audit")); err != nil {
		t.Fatal(err)
	}
	appendTargets(t, l, "c")
	for _, from := range []audit.Head{{}, end} {
		if got, _ := after(t, l, from); len(got) != 2 || got[1] != "c" {
			t.Errorf("from %d: %v", from.Entries, got)
		}
	}
}

// An entry is the same in any encoding of its JSON, and another one is not.
func TestDecode(t *testing.T) {
	l := openLog(t, t.TempDir())
	appendTargets(t, l, "a<b>&")
	page, err := l.After(t.Context(), audit.Head{}, 1)
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	text, err := json.MarshalIndent(page[0], "", " ") // which escapes
	if err != nil {
		t.Fatal(err)
	}
	if e, err := audit.Decode(text); err != nil || e.Hash != page[0].Hash || e.Target != "a<b>&" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, bad := range []string{"", "{}", "null", strings.Replace(string(text), `"done"`, `"failed"`, 1),
		`{"x":"` + strings.Repeat("x", 64<<10) + `"}`} {
		if e, err := audit.Decode([]byte(bad)); err == nil {
			t.Errorf("%.100s is %+v", bad, e)
		}
	}
}
