package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/sluicehost/sluice/abi"
	"github.com/sluicehost/sluice/host/audit"
)

// What is read is what was written, byte for byte, and fit for a screen.
func FuzzEntry(f *testing.F) {
	l := open(f, f.TempDir())
	add(f, l, "a")
	if err := l.Append(audit.Event{Action: audit.PolicyRefused, Outcome: audit.Refused, Address: "::1",
		Details: []audit.Detail{audit.Count(1)}}); err != nil {
		f.Fatal(err)
	}
	for e, err := range l.Entries(f.Context(), audit.Filter{}, 0) {
		text, err2 := e.Text()
		if err != nil || err2 != nil {
			f.Fatal(err, err2)
		}
		f.Add(text, true)
	}
	f.Add([]byte(`{"sequence":1,"auditId":"\u001b","at":"2026-01-01T00:00:00.000Z","action":"a.b","outcome":"done","details":{"a":"b"}}`), false)
	f.Fuzz(func(t *testing.T, line []byte, as bool) {
		if e := (audit.Entry{}); !as && json.Unmarshal(line, &e) == nil && e.Seal() == nil {
			line, _ = e.Text() // a forger's hash fits
		}
		e, err := audit.ParseEntry(line)
		if err != nil {
			return
		}
		if text, err := e.Text(); err != nil || !bytes.Equal(text, line) {
			t.Errorf("%q reads as %q, %v", line, text, err)
		}
		for _, s := range append(slices.Collect(maps.Values(e.Details)), e.Target, e.Actor, e.ID, string(e.Action),
			string(e.Outcome), e.Address, e.RequestID) {
			if s != abi.Clean(s) || !utf8.ValidString(s) {
				t.Errorf("not clean: %q", s)
			}
		}
	})
}

// Whatever is in the files, reading them ends, and what is wrong stays known
// when the log goes on.
func FuzzLog(f *testing.F) {
	dir := f.TempDir()
	l := open(f, dir)
	add(f, l, "a", "b")
	two, head := read(f, newest(f, dir)), read(f, filepath.Join(dir, "witness", "audit.head"))
	f.Add(two, head)
	f.Add(two[:len(two)-9], head)
	f.Add([]byte(`{"sequence":18446744073709551615,"auditId":"\u001b","at":"2026-01-01T00:00:00.000Z","details":{"a":"b"}}`+"\n"), []byte(`{"entries":18446744073709551615}`))
	f.Add([]byte("\n\n{}"), []byte("{}"))
	f.Fuzz(func(t *testing.T, log, head []byte) {
		dir := t.TempDir()
		for _, d := range []string{"audit", "witness"} {
			if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, "audit", "00000001.jsonl"), log)
		write(t, filepath.Join(dir, "witness", "audit.head"), head)
		l := open(t, dir)
		was := verify(t, l)
		add(t, l, "later")
		if got := all(t, l, audit.Filter{Target: "later"}, 0); len(got) != 1 {
			t.Errorf("%d entries were added", len(got))
		}
		if now := verify(t, l); !was.OK && now.OK {
			t.Errorf("forgotten: %+v, now %+v", was, now)
		}
		for _, err := range audit.OpenRequests(dir).All(context.Background(), "") {
			if err != nil {
				t.Error(err)
			}
		}
	})
}
