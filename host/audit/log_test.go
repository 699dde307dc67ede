package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehost/sluice/host/audit"
)

func open(t testing.TB, dir string) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func event(target string) audit.Event {
	return audit.Event{Action: audit.SecretSet, Target: target, Outcome: audit.Done}
}

func add(t testing.TB, l *audit.Log, targets ...string) {
	t.Helper()
	for _, name := range targets {
		if err := l.Append(event(name)); err != nil {
			t.Fatal(err)
		}
	}
}

func all(t testing.TB, l *audit.Log, f audit.Filter, from uint64) (out []audit.Entry) {
	t.Helper()
	for e, err := range l.Entries(context.Background(), f, from) {
		if broken := (*audit.BrokenError)(nil); errors.As(err, &broken) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

func targets(entries []audit.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, e.Target)
	}
	return out
}

func verify(t testing.TB, l *audit.Log) audit.Report {
	t.Helper()
	r, err := l.Verify(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sound(t testing.TB, l *audit.Log, entries uint64) {
	t.Helper()
	if r := verify(t, l); !r.OK || r.Entries != entries {
		t.Fatalf("want %d sound entries, got %+v", entries, r)
	}
}

func newest(t testing.TB, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "audit", "*.jsonl"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%v, %v", names, err)
	}
	return names[len(names)-1]
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every field, in a chain that goes on over files.
func TestChain(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	sound(t, l, 0)
	l.SetRoll(1000)
	before := time.Now().Add(-time.Millisecond)
	for i := range 20 {
		e := event(fmt.Sprintf("mail/s%d", i))
		e.RequestID, e.Address, e.Details = "req_1", "192.0.2.1", []audit.Detail{audit.Count(3), audit.Code("x")}
		if i%2 == 1 {
			e.Action, e.Outcome, e.Actor = audit.PolicyRefused, audit.Refused, "key:ci"
		}
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	sound(t, l, 20)
	names, _ := filepath.Glob(filepath.Join(dir, "audit", "*"))
	if len(names) < 5 {
		t.Errorf("the files did not roll: %v", names)
	}
	for _, n := range append(names, filepath.Dir(names[0]), filepath.Join(dir, "witness", "audit.head")) {
		if fi, err := os.Stat(n); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", n, fi.Mode(), err)
		}
	}
	entries := all(t, l, audit.Filter{}, 0)
	prev, ids := audit.Hash{}, map[string]bool{}
	for i, e := range entries {
		if e.Sequence != uint64(i+1) || e.PrevHash != prev || !strings.HasPrefix(e.ID, "aud_") || len(e.ID) != 30 ||
			ids[e.ID] || e.At.Before(before) ||
			e.RequestID != "req_1" || e.Address != "192.0.2.1" || e.Details["count"] != "3" || e.Details["code"] != "x" {
			t.Fatalf("%+v", e)
		}
		prev, ids[e.ID] = e.Hash, true
	}
	if r := verify(t, l); r.Head != prev {
		t.Errorf("head %s, want %s", r.Head, prev)
	}
	if a := entries[0].Actor; !strings.HasPrefix(a, "owner") {
		t.Errorf("at the command line the actor is %q", a)
	}
	for _, tt := range []struct {
		f    audit.Filter
		from uint64
		want int
	}{
		{audit.Filter{Action: "secret.set"}, 0, 10}, {audit.Filter{Action: "secret"}, 0, 10},
		{audit.Filter{Action: "sec"}, 0, 0}, {audit.Filter{Target: "mail"}, 0, 20}, {audit.Filter{Target: "mail/s1"}, 0, 1},
		{audit.Filter{Actor: "key"}, 0, 10}, {audit.Filter{Actor: "owner"}, 16, 2}, {audit.Filter{}, 20, 1},
		{audit.Filter{}, 21, 0}, {audit.Filter{Since: entries[10].At.Time, Until: entries[10].At.Time}, 0, 0},
		{audit.Filter{Since: time.Now().Add(time.Hour)}, 0, 0}, {audit.Filter{Until: before}, 0, 0},
	} {
		if got := all(t, l, tt.f, tt.from); len(got) != tt.want {
			t.Errorf("%+v from %d: %d entries, want %d", tt.f, tt.from, len(got), tt.want)
		}
	}
}

// What names bring along is cleaned and bounded; an action is one of the list.
func TestTexts(t *testing.T) {
	l := open(t, t.TempDir())
	long := strings.Repeat("\"\\\U0001F512", 4000)
	e := audit.Event{Action: audit.SecretSet, Outcome: audit.Done, Target: "a\x1b[31m\nb\xff\u202e\u2028<&>", Actor: long,
		RequestID: long, Address: long}
	for range 20 {
		e.Details = append(e.Details, audit.Run(long), audit.Code(long), audit.Stream(long),
			audit.Version(long), audit.Digest(long))
	}
	if err := l.Append(e); err != nil {
		t.Fatal(err)
	}
	sound(t, l, 1)
	if got := all(t, l, audit.Filter{}, 0)[0].Target; got != "a[31m b\uFFFD<&>" {
		t.Errorf("%q", got)
	}
	for _, e := range []audit.Event{{Action: "secret.seen", Outcome: audit.Done},
		{Action: audit.SecretSet, Outcome: "maybe"}, {}} {
		if err := l.Append(e); err == nil {
			t.Errorf("%+v was written down", e)
		}
	}
	sound(t, l, 1)
}

// Whatever is changed, removed, moved or cut, at any line, is found; and it stays found when
// the log goes on.
func TestTampered(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, "a", "b", "c", "d", "e")
	path := newest(t, dir)
	original, head := read(t, path), read(t, filepath.Join(dir, "witness", "audit.head"))
	lines := bytes.SplitAfter(original, []byte("\n"))[:5]
	try := func(name string, b []byte) {
		t.Helper()
		write(t, path, b)
		write(t, filepath.Join(dir, "witness", "audit.head"), head)
		if r := verify(t, l); r.OK {
			t.Errorf("%s: not found", name)
		}
		add(t, l, "later")
		if r := verify(t, l); r.OK {
			t.Errorf("%s: not found any more after an append", name)
		}
		if got := all(t, l, audit.Filter{Target: "later"}, 0); len(got) != 1 {
			t.Errorf("%s: the log did not go on", name)
		}
	}
	join := func(l ...[]byte) []byte { return bytes.Join(l, nil) }
	at := 0
	for i := range lines {
		others := func(instead ...[]byte) []byte { return join(slices.Concat(lines[:i:i], instead, lines[i+1:])...) }
		for _, off := range []int{0, 10, 60, len(lines[i]) / 2, len(lines[i]) - 20, len(lines[i]) - 1} {
			b := bytes.Clone(original)
			b[at+off] ^= 1
			try(fmt.Sprintf("flip %d of line %d", off, i+1), b)
		}
		at += len(lines[i])
		try(fmt.Sprintf("remove line %d", i+1), others())
		try(fmt.Sprintf("repeat line %d", i+1), others(lines[i], lines[i]))
		try(fmt.Sprintf("truncate before line %d", i+1), join(lines[:i]...))
		try(fmt.Sprintf("truncate in line %d", i+1), join(append(lines[:i:i], lines[i][:30])...))
		try(fmt.Sprintf("empty line before %d", i+1), others([]byte("\n"), lines[i]))
		try(fmt.Sprintf("long line before %d", i+1), others(append(bytes.Repeat([]byte("x"), 70<<10), '\n'), lines[i]))
		if i > 0 {
			try(fmt.Sprintf("swap %d", i), join(slices.Concat(lines[:i-1:i-1], [][]byte{lines[i], lines[i-1]}, lines[i+1:])...))
		}
		e, err := audit.ParseEntry(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		e.Target = "z" // with a hash that fits
		if err := e.Seal(); err != nil {
			t.Fatal(err)
		}
		text, _ := e.Text()
		try(fmt.Sprintf("forge line %d", i+1), others(text))
	}
	write(t, path, original)
	write(t, filepath.Join(dir, "witness", "audit.head"), head)
	sound(t, l, 5)
}

// The witness is evidence, too: without it, with an older one, and without a log.
func TestWitness(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, log, head string){
		"removed": func(t *testing.T, _, head string) { _ = os.Remove(head) },
		"garbage": func(t *testing.T, _, head string) { write(t, head, []byte("x")) },
		"large":   func(t *testing.T, _, head string) { write(t, head, bytes.Repeat([]byte(" "), 1<<20)) },
		"older": func(t *testing.T, log, head string) {
			e, _ := audit.ParseEntry(bytes.SplitAfter(read(t, log), []byte("\n"))[0])
			write(t, head, fmt.Appendf(nil, `{"entries":1,"hash":"%s"}`, e.Hash))
		},
		"log gone":  func(t *testing.T, log, _ string) { _ = os.RemoveAll(filepath.Dir(log)) },
		"file gone": func(t *testing.T, log, _ string) { _ = os.Remove(log) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir)
			add(t, l, "a", "b", "c")
			damage(t, newest(t, dir), filepath.Join(dir, "witness", "audit.head"))
			if r := verify(t, l); r.OK {
				t.Errorf("not found: %+v", r)
			}
			add(t, l, "d")
			if r := verify(t, l); r.OK {
				t.Errorf("not found after an append: %+v", r)
			}
			if got := targets(all(t, l, audit.Filter{Action: "audit.damaged"}, 0)); len(got) != 1 {
				t.Errorf("damage was told %d times", len(got))
			}
		})
	}
}

// A crash leaves half a line, or a line that the witness does not count yet.
func TestCrashed(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	add(t, l, "a")
	head := read(t, filepath.Join(dir, "witness", "audit.head"))
	one := read(t, newest(t, dir))
	add(t, l, "b")
	two := read(t, newest(t, dir))
	for n := len(one); n <= len(two); n += max(1, min(23, len(two)-n)) {
		for _, garbage := range []string{"", "\x00\x00\n"} {
			write(t, newest(t, dir), append(bytes.Clone(two[:n]), garbage...))
			write(t, filepath.Join(dir, "witness", "audit.head"), head)
			if n == len(two) && garbage != "" {
				continue // two lines ahead of the witness are none of a crash
			}
			want := []string{"a", "00000001.jsonl", "c"} // of the note
			switch n {
			case len(two):
				want = []string{"a", "b", "c"}
			case len(one):
				if garbage == "" {
					want = []string{"a", "c"}
				}
			}
			add(t, l, "c")
			if got := targets(all(t, l, audit.Filter{}, 0)); !slices.Equal(got, want) {
				t.Fatalf("cut at %d: %q, want %q", n, got, want)
			}
			sound(t, l, uint64(len(want)))
		}
	}
}

// Goroutines and Logs share one directory; files roll meanwhile.
func TestHammer(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		l := open(t, dir)
		l.SetRoll(2000)
		for w := range 2 {
			wg.Go(func() {
				for range 10 {
					if err := l.Append(event(fmt.Sprint(w)), event("more")); err != nil {
						t.Error(err)
					}
					if w == 0 {
						if r, err := l.Verify(context.Background()); err != nil || !r.OK {
							t.Errorf("%+v, %v", r, err)
						}
					}
				}
			})
		}
	}
	wg.Wait()
	sound(t, open(t, dir), 160)
}

// What others can reach, links and pipes are refused, with the remedy.
func TestUnsafe(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"directory": func(dir string) error { return os.Chmod(filepath.Join(dir, "audit"), 0o750) },
		"file":      func(dir string) error { return os.Chmod(filepath.Join(dir, "audit", "00000001.jsonl"), 0o640) },
		"head":      func(dir string) error { return os.Chmod(filepath.Join(dir, "witness", "audit.head"), 0o644) },
		"link": func(dir string) error {
			p := filepath.Join(dir, "audit", "00000001.jsonl")
			return errors.Join(os.Rename(p, p+".x"), os.Symlink(p+".x", p))
		},
		"linked directory": func(dir string) error {
			p := filepath.Join(dir, "audit")
			return errors.Join(os.Rename(p, p+".x"), os.Symlink(p+".x", p))
		},
	} {
		dir := t.TempDir()
		l := open(t, dir)
		add(t, l, "a")
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if err := l.Append(event("b")); !errors.Is(err, audit.ErrUnsafe) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Ready(); !errors.Is(err, audit.ErrUnsafe) {
			t.Errorf("%s: ready, %v", name, err)
		}
		if _, err := l.Verify(t.Context()); !errors.Is(err, audit.ErrUnsafe) {
			t.Errorf("%s: verified, %v", name, err)
		}
	}
}

// Nothing is made by looking.
func TestLooking(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	l := open(t, dir)
	sound(t, l, 0)
	if err := l.Ready(); err != nil || len(all(t, l, audit.Filter{}, 0)) != 0 {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a data directory was made: %v", err)
	}
}

func BenchmarkAppend(b *testing.B) {
	l := open(b, b.TempDir())
	for b.Loop() {
		add(b, l, "mail/token")
	}
}
