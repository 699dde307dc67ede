package audit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/audit"
)

// Pages of newest entries, across files, give every entry once.
func TestNewest(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	l.SetRoll(2000)
	const all = 40
	for i := range all {
		action := audit.SecretSet
		if i%2 == 1 {
			action = audit.LoginFailed
		}
		if err := l.Append(audit.Event{Action: action, Target: fmt.Sprint("t", i), Outcome: audit.Done,
			Actor: "key:k"}); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl")); err != nil || len(files) < 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, limit := range []int{1, 7, all, 1000} {
		var got []uint64
		for before := uint64(0); ; {
			page, next, err := l.Newest(t.Context(), audit.Filter{}, before, limit)
			if err != nil || len(page) > limit {
				t.Fatal(len(page), err)
			}
			for _, e := range page {
				got = append(got, e.Sequence)
			}
			if before = next; next == 0 {
				break
			}
		}
		if len(got) != all || got[0] != all || got[all-1] != 1 ||
			!slices.IsSortedFunc(got, func(a, b uint64) int { return int(b) - int(a) }) {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	page, next, err := l.Newest(t.Context(), audit.Filter{Action: "login"}, 0, 3)
	if err != nil || len(page) != 3 || page[0].Target != "t39" || page[2].Target != "t35" || next == 0 {
		t.Errorf("filtered: %v, %d, %v", page, next, err)
	}
	if page, next, err := l.Newest(t.Context(), audit.Filter{Target: "nobody"}, 0, 3); err != nil ||
		len(page) > 0 || next != 0 {
		t.Errorf("nothing: %v, %d, %v", page, next, err)
	}
	if page, _, err := l.Newest(t.Context(), audit.Filter{Until: time.Now().Add(-time.Hour)}, 0, 3); err != nil ||
		len(page) > 0 {
		t.Errorf("long ago: %v, %v", page, err)
	}
	if page, next, err := open(t, t.TempDir()).Newest(t.Context(), audit.Filter{}, 0, 3); err != nil ||
		len(page) > 0 || next != 0 {
		t.Errorf("no log: %v, %d, %v", page, next, err)
	}
}

// What other hands put into a file is passed over, however long it is.
func TestNewestBroken(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, "a", "b")
	path := filepath.Join(dir, "audit", "00000001.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	long := append(bytes.Repeat([]byte(`{"sequence":1,"x":"`), 30_000), '\n')
	for name, content := range map[string][]byte{
		"long":  slices.Concat(lines[0], long, lines[1]),
		"first": slices.Concat(long, lines[0], lines[1]),
		"torn":  slices.Concat(lines[0], lines[1], []byte(`{"sequence":3,`)),
		"empty": slices.Concat(lines[0], []byte("\n\n\n"), lines[1]),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		page, _, err := l.Newest(t.Context(), audit.Filter{}, 0, 10)
		if err != nil || len(page) != 2 || page[0].Sequence != 2 || page[1].Sequence != 1 {
			t.Errorf("%s: %v, %v", name, page, err)
		}
	}
}

// No sentence and no value with blanks gets into the log.
func TestFact(t *testing.T) {
	for _, good := range [][2]string{{"scope", "runs:create"}, {"keyId", "key_01ABC"}, {"count", "3"}} {
		if _, ok := audit.Fact(good[0], good[1]); !ok {
			t.Errorf("refused %v", good)
		}
	}
	for _, bad := range [][2]string{{"", "x"}, {"a b", "x"}, {"Key", "x"}, {"k", ""}, {"k", "a b"}, {"k", "a\nb"},
		{"k", `{"a":1}`}, {"k", string(make([]byte, 300))}} {
		if _, ok := audit.Fact(bad[0], bad[1]); ok {
			t.Errorf("took %q", bad)
		}
	}
}
